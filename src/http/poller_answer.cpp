#include <sys/socket.h>

#include "http/poller.h"

namespace holdfast::http {
namespace {

constexpr std::uint64_t kOutBytes = std::uint64_t{64} << 20;  // of all answers that clients have not taken
constexpr std::uint64_t kLargeAnswer = 64 * 1024;  // smaller ones need not give way
constexpr std::size_t kPushPerTurn = 256 * 1024;
constexpr std::size_t kKeptCapacity = 4 * 1024;
constexpr std::chrono::milliseconds kGlancesPerTurn{1};  // more go to the workers, which are on other processors
constexpr std::size_t kGlanceBody = 16 * 1024;  // a longer one takes too long to read as JSON
constexpr Duration kLingerTime{2'000};
constexpr Duration kShortestPark{10};  // keeps a handler that parks into the past from spinning

}  // namespace

void Poller::dispatch(Connection& c) {
  body_bytes_ -= c.in.size();
  c.exchange->request.body = std::move(c.in);
  c.in = {};
  answer(c);
}

void Poller::resume(Connection& c, bool waited_out) {
  topics_.unwatch(c.id, c.exchange->topics);
  c.exchange->topics.clear();
  c.exchange->request.resumed = true;
  c.exchange->request.waited_out = waited_out;
  answer(c);
}

void Poller::answer(Connection& c) {
  c.phase = Phase::running;
  c.woken = false;
  set_deadline(c, kEndOfTime);
  if (!accepting_) c.exchange->close_after = true;
  if (may_glance(*c.exchange)) {
    if (auto step = processor_.glance(*c.exchange)) return on_step(c, std::move(*step));
  }
  hand_over(c);
}

/// Whoever is many, or sends much, is served by the workers, so that a turn stays short. What needs no token (health above all) is always
/// answered here: a server whose handlers all hang still says that it lives.
bool Poller::may_glance(const Exchange& exchange) {
  if (!exchange.route->glance) return false;
  if (exchange.route->access == Access::open) return true;
  if (exchange.request.body.size() > kGlanceBody) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!glances_end_) glances_end_ = now + kGlancesPerTurn;  // so the first is answered here, however late the turn began
  return now < *glances_end_;
}

void Poller::hand_over(Connection& c) {
  ++running_;
  workers_.submit(std::move(c.exchange));
}

void Poller::on_finished(Finished finished) {
  --running_;
  Connection& c = *connections_.at(finished.exchange->connection);
  c.exchange = std::move(finished.exchange);
  c.in = std::move(finished.step.received);
  if (std::exchange(c.exchange->quiet, false)) hear_again(c);
  on_step(c, std::move(finished.step));
}

void Poller::on_step(Connection& c, Step step) {
  c.park_until = step.until;
  if (c.broken) return close(c);
  if (step.all_sent()) return after_step(c, step.next);
  write_out(c, std::move(step));
}

void Poller::after_step(Connection& c, Step::Next next) {
  switch (next) {
    case Step::Next::park:
      return park(c);
    case Step::Next::close:
      return linger(c);
    case Step::Next::finish:
      return next_request(c);
  }
}

void Poller::park(Connection& c) {
  if (c.peer_closed) return close(c);
  if (stopping_) {
    if (c.exchange->streaming) return close(c);
    forget_exchange(c);
    return write_out(
        c, {.next = Step::Next::close,
            .bytes = processor_.render(problem(503, {"shutting_down", "The service is being stopped.", ""}, 1))});
  }
  c.phase = Phase::parked;
  if (c.woken) return resume(c, false);
  set_deadline(c, std::max(c.park_until, now_ + kShortestPark));
}

void Poller::write_out(Connection& c, Step step) {
  c.out = std::move(step.bytes);
  c.out_sent = 0;
  c.tail = std::move(step.tail);
  c.tail_sent = step.tail_sent;
  c.out_counted = c.out.size() + (c.tail && !step.tail_is_shared ? c.tail->size() : 0);
  out_bytes_ += c.out_counted;
  c.after_write = step.next;
  c.phase = Phase::writing;
  set_deadline(c, now_ + options_.write_time);
  make_room(c);
  flush(c);
}

/// Whoever has been taking a large answer for longest gives way to `newest`.
void Poller::make_room(const Connection& newest) {
  while (out_bytes_ > kOutBytes) {
    Connection* slowest = nullptr;
    for (const auto& [id, c] : connections_) {
      if (c.get() != &newest && c->phase == Phase::writing && c->out_counted >= kLargeAnswer &&
          (slowest == nullptr || c->deadline < slowest->deadline))
        slowest = c.get();
    }
    if (slowest == nullptr) return;
    close(*slowest);
  }
}

void Poller::forget_answer(Connection& c) {
  out_bytes_ -= std::exchange(c.out_counted, 0);
  std::string().swap(c.out);
  c.tail.reset();
}

/// Sends from `sent` on. False when the socket takes no more now, the others have their turn, or the connection has
/// been closed.
bool Poller::push(Connection& c, std::string_view bytes, std::size_t& sent) {
  const std::size_t stop = std::min(bytes.size(), sent + kPushPerTurn);
  while (sent < stop) {
    const ssize_t n = ::send(c.socket, bytes.data() + sent, stop - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (n < 0) {
      close(c);
      return false;
    }
    sent += static_cast<std::size_t>(n);
  }
  if (sent == bytes.size()) return true;
  again_.push_back(c.id);
  return false;
}

void Poller::flush(Connection& c) {
  if (!push(c, c.out, c.out_sent)) return;
  if (c.tail && !push(c, *c.tail, c.tail_sent)) return;
  forget_answer(c);
  set_deadline(c, kEndOfTime);
  after_step(c, c.after_write);
}

void Poller::next_request(Connection& c) {
  const bool over = c.exchange != nullptr && c.exchange->close_after;
  forget_exchange(c);
  if (over || !accepting_) return linger(c);
  c.phase = Phase::idle;
  c.body_length = 0;
  if (c.in.empty() && c.in.capacity() > kKeptCapacity) std::string().swap(c.in);
  set_deadline(c, now_ + options_.idle_time);
  if (c.readable || !c.in.empty()) again_.push_back(c.id);
}

void Poller::linger(Connection& c) {
  forget_exchange(c);
  ::shutdown(c.socket, SHUT_WR);
  c.phase = Phase::lingering;
  ++lingering_;
  set_deadline(c, now_ + kLingerTime);
  const std::uint64_t id = c.id;
  discard(c);
  if (stopping_ && connections_.contains(id)) close(c);
}

void Poller::forget_exchange(Connection& c) {
  if (c.exchange == nullptr) return;
  topics_.unwatch(c.id, c.exchange->topics);
  c.exchange.reset();
}

}  // namespace holdfast::http
