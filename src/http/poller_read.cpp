#include <sys/socket.h>

#include <utility>

#include "http/admission.h"
#include "http/listener.h"
#include "http/poller.h"

namespace holdfast::http {
namespace {

constexpr std::uint64_t kBodyBytes = std::uint64_t{64} << 20;  // of all bodies that are on their way
constexpr std::uint64_t kSmallBody = 64 * 1024;                // always has room
constexpr std::uint64_t kDiscard = std::uint64_t{16} << 20;
constexpr std::size_t kDiscardPerTurn = 256 * 1024;
constexpr std::size_t kKeptCapacity = 4 * 1024;  // of the buffer of an idle connection

}  // namespace

void Poller::advance(Connection& c) {
  switch (c.phase) {
    case Phase::idle:
    case Phase::head:
    case Phase::body:
      return on_input(c);
    case Phase::lingering:
      return discard(c);
    case Phase::writing:
      return flush(c);
    case Phase::running:
    case Phase::parked:
      return;
  }
}

/// One read of at most `most` bytes, appended to `in`. False when there is nothing now.
bool Poller::read_some(Connection& c, std::size_t most) {
  const std::size_t size = std::min(most, scratch_.size());
  const ssize_t n = ::recv(c.socket, scratch_.data(), size, 0);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0) {
    c.readable = false;
    c.broken = errno != EAGAIN && errno != EWOULDBLOCK;
    return false;
  }
  if (n == 0) {
    c.readable = false;
    c.peer_closed = true;
    return false;
  }
  // A short read has emptied the socket; only the end of the stream may still be behind it.
  if (static_cast<std::size_t>(n) < size && !c.peer_closed) c.readable = false;
  c.in.append(scratch_.data(), static_cast<std::size_t>(n));
  return true;
}

void Poller::on_input(Connection& c) {
  const std::uint64_t id = c.id;
  bool received = c.phase == Phase::idle && !c.in.empty();  // by a worker that had the connection before
  while ((received || c.readable) && c.phase != Phase::body) {
    if (!std::exchange(received, false) && !read_some(c, kLineBytes)) break;
    if (c.in.empty()) continue;
    if (c.phase == Phase::idle) {
      c.phase = Phase::head;
      set_deadline(c, now_ + options_.header_time);
    }
    const auto length = c.scanner.scan(c.in);
    if (!length) return refuse(c, length.error());
    if (*length > 0) {
      on_head(c, *length);
      if (!connections_.contains(id) || c.phase != Phase::body) return;
    }
  }
  if (c.phase == Phase::body) return on_body(c);
  if (c.broken || c.peer_closed) close(c);
}

void Poller::on_head(Connection& c, std::size_t length) {
  const std::string_view text = std::string_view(c.in).substr(c.scanner.start(), length - c.scanner.start());
  auto admitted = admit(text, router_, options_,
                        [&] { return strangers_.wrong(address_group(c.remote_address), now_); });
  if (!admitted) return refuse(c, admitted.error());
  c.in.erase(0, length);
  c.scanner = {};
  c.exchange = std::move(admitted->exchange);
  c.exchange->connection = c.id;
  c.exchange->socket = c.socket;
  c.exchange->request.remote_address = c.remote_address;
  c.body_length = admitted->body_length;
  if (c.in.size() > c.body_length) {
    // Requests sent ahead of their answers are not served: what follows the first is dropped with the
    // connection.
    c.exchange->close_after = true;
    c.in.resize(c.body_length);
  }
  c.phase = Phase::body;
  body_bytes_ += c.in.size();
  if (c.in.size() == c.body_length) return;
  set_deadline(c, now_ + options_.body_time);
  if (admitted->expect_continue) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    [[maybe_unused]] const ssize_t n =
        ::send(c.socket, kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void Poller::on_body(Connection& c) {
  while (c.readable && c.in.size() < c.body_length) {
    const std::size_t before = c.in.size();
    if (!read_some(c, c.body_length - before)) break;
    body_bytes_ += c.in.size() - before;
    if (body_bytes_ > kBodyBytes && c.in.size() > kSmallBody) {
      return refuse(c, {.status = 503,
                        .error = {"overloaded", "Too many large bodies are on their way.", ""},
                        .retry_after_s = 1});
    }
  }
  if (c.in.size() == c.body_length) return dispatch(c);
  if (c.broken || c.peer_closed) close(c);
}

void Poller::discard(Connection& c) {
  for (std::size_t turn = 0; c.readable && turn < kDiscardPerTurn;) {
    const bool more = read_some(c, scratch_.size());
    turn += c.in.size();
    c.discarded += c.in.size();
    c.in.clear();
    if (!more) break;
  }
  if (c.peer_closed && !c.readable) return close(c);
  if (c.broken || c.discarded > kDiscard) return close(c);
  if (c.readable) again_.push_back(c.id);
  if (c.in.capacity() > kKeptCapacity) std::string().swap(c.in);
}

void Poller::refuse(Connection& c, const Refusal& refusal) {
  if (c.phase == Phase::body) body_bytes_ -= c.in.size();
  forget_exchange(c);
  std::string().swap(c.in);
  write_out(c, {.next = Step::Next::close, .bytes = processor_.render(to_response(refusal))});
}

}  // namespace holdfast::http
