#include "http/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "http/listener.h"

namespace holdfast::http {
namespace {

constexpr std::uint64_t kListener = 1;
constexpr std::uint64_t kMailbox = 2;
constexpr int kAcceptsPerRound = 64;
constexpr std::size_t kLingering = 256;  // connections that were turned away and still drain
constexpr Duration kTurnedAwayTime{1'000};
constexpr Duration kDescriptorPause{100};  // after the process ran out of them
constexpr Duration kStopTime{2'000};
constexpr std::int64_t kLongestWaitMs = 1'000;

constexpr std::uint32_t kClientEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

void add(int epoll, int descriptor, std::uint32_t events, std::uint64_t id) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

void change(int epoll, int descriptor, std::uint32_t events, std::uint64_t id) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event);
}

}  // namespace

Poller::Poller(const Clock& clock, const Options& options, const Router& router, Topics& topics)
    : clock_(clock),
      options_(options),
      router_(router),
      topics_(topics),
      processor_(topics, options.idle_time),
      workers_(
          options, router, topics, [this](const Exchange& exchange) { change(epoll_, exchange.socket, EPOLLET, exchange.connection); },
          [this](std::unique_ptr<Exchange> exchange, Step step) {
            const std::scoped_lock lock(mutex_);
            finished_.push_back({std::move(exchange), std::move(step)});
            signal();
          }),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      now_(clock.now()),
      scratch_(64 * 1024, '\0') {
  // The library fills its tables at its first answer: here, before there are other threads. Its own guard for that is one that ThreadSanitizer can't
  // see, since the library is not instrumented.
  (void)processor_.render({});
  add(epoll_, event_, EPOLLIN | EPOLLET, kMailbox);
}

Poller::~Poller() {
  workers_.stop();
  for (const auto& [id, c] : connections_) ::close(c->socket);
  if (listener_ >= 0) ::close(listener_);
  ::close(event_);
  ::close(epoll_);
}

void Poller::signal() {
  if (std::exchange(signalled_, true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(event_, &one, sizeof one);
}

void Poller::wake(std::vector<std::uint64_t> connections) {
  if (connections.empty()) return;
  const std::scoped_lock lock(mutex_);
  wakes_.insert(wakes_.end(), connections.begin(), connections.end());
  signal();
}

void Poller::stop_accepting() {
  const std::scoped_lock lock(mutex_);
  stop_accepting_asked_ = true;
  signal();
}

void Poller::stop() {
  const std::scoped_lock lock(mutex_);
  stop_asked_ = true;
  signal();
}

void Poller::serve(int listening_socket) {
  listener_ = listening_socket;
  add(epoll_, listener_, EPOLLIN, kListener);
  std::array<epoll_event, 256> events{};
  while (!finished()) {
    const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
    now_ = clock_.now();
    glances_end_.reset();
    for (int i = 0; i < n; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kListener) {
        accept_some();
      } else if (id != kMailbox) {
        on_event(id, events[static_cast<std::size_t>(i)].events);
      }
    }
    for (const std::uint64_t id : std::exchange(again_, {})) {
      if (const auto found = connections_.find(id); found != connections_.end()) advance(*found->second);
    }
    take_mail();
    expire();
  }
  workers_.stop();
  for (const auto& [id, c] : connections_) ::close(c->socket);
  connections_.clear();
}

int Poller::wait_ms() {
  if (!again_.empty()) return 0;
  std::int64_t wait = kLongestWaitMs;
  if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first - now_.ms);
  if (accept_again_ > now_) wait = std::min(wait, (accept_again_ - now_).count());
  if (workers_.relieve()) wait = std::min<std::int64_t>(wait, 1);
  return static_cast<int>(std::max<std::int64_t>(wait, 0));
}

void Poller::take_mail() {
  std::vector<Finished> finished;
  std::vector<std::uint64_t> wakes;
  bool stop_accepting = false;
  bool stop = false;
  {
    const std::scoped_lock lock(mutex_);
    if (!signalled_) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(event_, &count, sizeof count);
    signalled_ = false;
    finished.swap(finished_);
    wakes.swap(wakes_);
    stop_accepting = stop_accepting_asked_;
    stop = stop_asked_;
  }
  // Wakes first: the topic of a run that has just come back counts for its park.
  for (const std::uint64_t id : wakes) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Connection& c = *found->second;
    if (c.phase == Phase::parked) {
      resume(c, false);
    } else {
      c.woken = true;
    }
  }
  for (Finished& one : finished) on_finished(std::move(one));
  if (stop_accepting || stop) close_idle();
  if (stop) wind_up();
}

void Poller::accept_some() {
  for (int i = 0; i < kAcceptsPerRound && listener_ >= 0; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int socket =
        accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // Out of descriptors or memory: the backlog keeps them; asking again at once would only spin.
      epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr);
      accept_again_ = now_ + kDescriptorPause;
      return;
    }
    std::string address = peer_address(&peer);
    if (has_room(address)) {
      open(socket, std::move(address));
    } else {
      turn_away(socket);
    }
  }
}

bool Poller::has_room(const std::string& address) const {
  // A few that only drain are not counted; many are, so that quick offenders cannot pile up.
  if (connections_.size() - std::min(lingering_, kLingering) >= options_.connections) return false;
  if (!options_.connections_per_address && is_loopback(address)) return true;
  const auto found = per_address_.find(address_group(address));
  if (found == per_address_.end()) return true;
  return found->second < options_.connections_per_address.value_or(std::max(1U, options_.connections / 4));
}

/// An empty address: of one that is only turned away.
void Poller::open(int socket, std::string remote_address) {
  const std::uint64_t id = next_id_++;
  auto connection = std::make_unique<Connection>();
  connection->id = id;
  connection->socket = socket;
  if (!remote_address.empty()) {
    connection->counted_as = address_group(remote_address);
    ++per_address_[connection->counted_as];
  }
  connection->remote_address = std::move(remote_address);
  Connection& c = *connections_.emplace(id, std::move(connection)).first->second;
  add(epoll_, socket, kClientEvents, id);
  set_deadline(c, now_ + options_.header_time);
}

/// One connection too many is told so at once, and costs no more than a second of a descriptor.
void Poller::turn_away(int socket) {
  if (lingering_ >= kLingering) {
    ::close(socket);
    return;
  }
  const std::uint64_t id = next_id_;
  open(socket, "");
  Connection& c = *connections_.at(id);
  c.phase = Phase::lingering;
  ++lingering_;
  const std::string answer =
      processor_.render(problem(503, {"overloaded", "Too many connections are open, from this address or in all.", ""}, 1));
  [[maybe_unused]] const ssize_t n =
      ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  set_deadline(c, now_ + kTurnedAwayTime);
}

void Poller::on_event(std::uint64_t id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& c = *found->second;
  if ((events & EPOLLIN) != 0) c.readable = true;
  if ((events & EPOLLRDHUP) != 0) c.peer_closed = c.readable = true;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) c.broken = true;
  const bool gone = c.broken || (c.peer_closed && c.phase == Phase::parked);
  if (c.phase == Phase::running) return;  // its worker may be writing: the exchange comes back first
  if (gone) return close(c);
  advance(c);
}

void Poller::set_deadline(Connection& c, Instant at) {
  c.deadline = at;
  if (at >= c.scheduled) return;  // the entry that is there comes first and is moved then
  if (c.scheduled != kEndOfTime) timers_.erase({c.scheduled.ms, c.id});
  c.scheduled = at;
  timers_.emplace(at.ms, c.id);
}

void Poller::expire() {
  if (accept_again_ != Instant{} && accept_again_ <= now_) {
    accept_again_ = Instant{};
    if (listener_ >= 0) add(epoll_, listener_, EPOLLIN, kListener);
  }
  while (!timers_.empty() && timers_.begin()->first <= now_.ms) {
    const std::uint64_t id = timers_.begin()->second;
    timers_.erase(timers_.begin());
    Connection& c = *connections_.at(id);
    c.scheduled = kEndOfTime;
    if (c.deadline > now_) {
      set_deadline(c, c.deadline);
    } else {
      on_deadline(c);
    }
  }
}

void Poller::on_deadline(Connection& c) {
  c.deadline = kEndOfTime;
  switch (c.phase) {
    case Phase::head:
    case Phase::body:
      return refuse(c,
                    {.status = 408, .error = {"request_timeout", "The request did not arrive in time.", ""}});
    case Phase::parked:
      return resume(c, true);
    case Phase::running:
      return;
    case Phase::idle:
    case Phase::writing:
    case Phase::lingering:
      return close(c);
  }
}

void Poller::close(Connection& c) {
  forget_exchange(c);
  if (c.phase == Phase::lingering) --lingering_;
  if (const auto found = per_address_.find(c.counted_as); found != per_address_.end() && --found->second == 0)
    per_address_.erase(found);
  if (c.phase == Phase::body) body_bytes_ -= c.in.size();
  forget_answer(c);
  if (c.scheduled != kEndOfTime) timers_.erase({c.scheduled.ms, c.id});
  ::close(c.socket);
  connections_.erase(c.id);
}

/// What came while the socket was quiet is told at the next turn.
void Poller::hear_again(const Connection& c) {
  change(epoll_, c.socket, kClientEvents, c.id);
}

void Poller::close_idle() {
  if (!accepting_) return;
  accepting_ = false;
  workers_.keep_none();
  ::close(listener_);
  listener_ = -1;
  std::vector<Connection*> idle;
  for (const auto& [id, c] : connections_) {
    if (c->phase == Phase::idle) idle.push_back(c.get());
  }
  for (Connection* c : idle) close(*c);
}

void Poller::wind_up() {
  if (stopping_) return;
  stopping_ = true;
  stop_by_ = now_ + kStopTime;
  std::vector<Connection*> parked;
  std::vector<Connection*> useless;
  for (const auto& [id, c] : connections_) {
    if (c->phase == Phase::parked) parked.push_back(c.get());
    if (c->phase == Phase::head || c->phase == Phase::body || c->phase == Phase::lingering)
      useless.push_back(c.get());
  }
  for (Connection* c : useless) close(*c);
  for (Connection* c : parked) resume(*c, true);
}

bool Poller::finished() const {
  return stopping_ && running_ == 0 && (connections_.empty() || now_ >= stop_by_);
}

}  // namespace holdfast::http
