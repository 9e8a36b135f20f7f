// What libcurl calls while an exchange goes on: everything that is seen of it comes through here.
#include "tools/http_client_callbacks.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/ascii.h"
#include "core/crash_point.h"
#include "tools/http_client_address.h"

namespace holdfast::tools {
namespace {

constexpr std::uint64_t kMostDrained = 64 * 1024;
constexpr std::size_t kMostReserved = 1 << 20;

// The kernel's numbers of the states in which the peer's end of stream has come; it counts that as a byte.
constexpr int kTimeWait = 6, kCloseWait = 8, kLastAck = 9, kClosing = 11;

std::optional<std::uint64_t> bytes_received(curl_socket_t socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  const int state = info.tcpi_state;
  const bool counts_fin = state == kCloseWait || state == kLastAck || state == kClosing || state == kTimeWait;
  return info.tcpi_bytes_received - (counts_fin && info.tcpi_bytes_received > 0 ? 1 : 0);
}

// --- what leaves
// ----------------------------------------------------------------------------------------------------

void note_sent(Exchange& exchange, std::string_view bytes) {
  Seen& seen = exchange.seen;
  seen.sent += bytes.size();
  std::size_t i = 0;
  if (seen.head_end == 0) {  // nothing of the end before the whole of it, or the last three bytes
    i = std::min(bytes.find("\r\n\r\n"), bytes.size() - std::min<std::size_t>(bytes.size(), 3));
  }
  for (; i < bytes.size() && seen.head_end < 4; ++i) {
    const bool matches = bytes[i] == (seen.head_end % 2 == 0 ? '\r' : '\n');
    seen.head_end = matches ? seen.head_end + 1 : bytes[i] == '\r' ? 1 : 0;
  }
  seen.body_sent += bytes.size() - i;
}

void note_remark(Exchange& exchange, std::string_view text) {
  if (!text.starts_with("Excess found") && !text.starts_with("Leftovers after")) return;
  exchange.seen.bad_framing = true;
  exchange.seen.problem = "more bytes came than the answer's length allows";
  curl_easy_setopt(exchange.easy, CURLOPT_FORBID_REUSE, 1L);
}

}  // namespace

int on_debug(CURL*, curl_infotype type, char* data, std::size_t size, void* self) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  switch (type) {
    case CURLINFO_HEADER_OUT:
    case CURLINFO_DATA_OUT:
      note_sent(exchange, {data, size});
      if (armed_crash_point == CrashPoint::request_sent && all_sent(exchange)) crash_point(CrashPoint::request_sent);
      break;
    case CURLINFO_HEADER_IN:
    case CURLINFO_DATA_IN:
      exchange.seen.received += size;
      break;
    case CURLINFO_SSL_DATA_OUT:
      exchange.seen.tls_started = true;
      break;
    case CURLINFO_TEXT:
      note_remark(exchange, {data, size});
      break;
    default:
      break;
  }
  return 0;
}

namespace {

// --- connections
// ----------------------------------------------------------------------------------------------------

template <class Address>
bool address_allowed(Exchange& exchange, Address address) {
  if (!is_private_address(address) || (exchange.request.allow_private && !is_forbidden_address(address))) return true;
  return exchange.keep_literals && exchange.literal_host;
}

}  // namespace

curl_socket_t on_open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  if (exchange.seen.sent > 0) {
    exchange.seen.resend_stopped = true;
    return CURL_SOCKET_BAD;
  }
  if (!address_allowed(exchange, static_cast<const sockaddr*>(&address->addr))) {
    exchange.seen.address_refused = true;
    return CURL_SOCKET_BAD;
  }
  const int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
  if (fd < 0) {
    exchange.seen.local_resource = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return CURL_SOCKET_BAD;
  }
  exchange.seen.socket_opened = true;
  exchange.opened.push_back(fd);
  exchange.host.sockets.insert_or_assign(
      fd, ExchangeHost::Socket{.maker = exchange.id, .user = nullptr, .route = {}});
  return fd;
}

int on_close_socket(void* self, curl_socket_t socket) {
  ExchangeHost& host = *static_cast<ExchangeHost*>(self);
  if (const auto found = host.sockets.find(socket); found != host.sockets.end()) {
    if (Exchange* user = found->second.user) {
      look_at_socket(*user);
      leave_socket(*user);
    }
    host.routes.erase(found->second.route);
    host.sockets.erase(found);
  }
  return close(socket);
}

namespace {

int port_of(curl_socket_t socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
                                       : -1;
}

std::string route_of(const char* remote_address, const char* local_address, int remote_port, int local_port) {
  std::string out = remote_address;
  ((((out += ' ') += std::to_string(remote_port)) += ' ') += local_address) += ' ';
  return out += std::to_string(local_port);
}

// Which socket the request will leave on; noted for later exchanges that reuse it.
curl_socket_t find_socket(Exchange& exchange, std::string route, int local_port) {
  ExchangeHost& host = exchange.host;
  for (const curl_socket_t socket : exchange.opened) {
    const auto known = host.sockets.find(socket);
    if (known == host.sockets.end() || known->second.maker != exchange.id || port_of(socket) != local_port)
      continue;
    host.routes.insert_or_assign(route, socket);
    known->second.route = std::move(route);
    return socket;
  }
  const auto found = host.routes.find(route);
  return found == host.routes.end() ? CURL_SOCKET_BAD : found->second;
}

void take_socket(Exchange& exchange, curl_socket_t socket) {
  const auto found = exchange.host.sockets.find(socket);
  if (found == exchange.host.sockets.end()) return;
  found->second.user = &exchange;
  exchange.socket = socket;
  exchange.socket_baseline = exchange.seen.reused ? bytes_received(socket).value_or(0) : 0;
}

}  // namespace

namespace {

[[noreturn]] void die_with_half_a_head(const Exchange& exchange) {
  const std::string half = exchange.request.method + " / HTTP/1.1\r\nHo";
  (void)send(exchange.socket, half.data(), half.size(), MSG_NOSIGNAL);
  crash_now();
}

}  // namespace

// Runs right before the request is sent, each time: libcurl sends a request again by itself when a reused
// connection turns out dead, and that would be a request without an attempt row.
int on_ready(void* self, char* remote_address, char* local_address, int remote_port, int local_port) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  Seen& seen = exchange.seen;
  if (seen.sent > 0) {
    seen.resend_stopped = true;
    return CURL_PREREQFUNC_ABORT;
  }
  if (!address_allowed(exchange, std::string_view(remote_address))) {
    seen.address_refused = true;
    return CURL_PREREQFUNC_ABORT;
  }
  seen.ready = true;
  seen.reused = !seen.socket_opened;
  curl_easy_setopt(exchange.easy, CURLOPT_VERBOSE, 1L);
  leave_socket(exchange);
  // TLS records that are no part of an answer would count as one.
  if (!is_tls(exchange))
    take_socket(
        exchange,
        find_socket(exchange, route_of(remote_address, local_address, remote_port, local_port), local_port));
  crash_point(CrashPoint::connected);
  if (armed_crash_point == CrashPoint::half_head && crash_is_due()) die_with_half_a_head(exchange);
  return CURL_PREREQFUNC_OK;
}

namespace {

// --- what comes back
// ----------------------------------------------------------------------------------------------------

// The one length that all Content-Length fields agree on; nullopt when they conflict or are no numbers.
// Saturates.
std::optional<std::uint64_t> agreed_length(std::string_view joined) {
  std::optional<std::uint64_t> agreed;
  while (true) {
    const std::size_t comma = joined.find(',');
    const std::string_view one = ascii::trimmed(joined.substr(0, comma));
    if (one.empty() || !std::ranges::all_of(one, [](char c) { return c >= '0' && c <= '9'; }))
      return std::nullopt;
    std::uint64_t value = 0;
    if (std::from_chars(one.data(), one.data() + one.size(), value).ec != std::errc{}) value = UINT64_MAX;
    if (agreed && *agreed != value) return std::nullopt;
    agreed = value;
    if (comma == std::string_view::npos) return agreed;
    joined.remove_prefix(comma + 1);
  }
}

bool refuse(Seen& seen, bool Seen::*what, std::string problem) {
  seen.*what = true;
  seen.problem = std::move(problem);
  return false;
}

bool check_length(Exchange& exchange) {
  Seen& seen = exchange.seen;
  const std::string joined = seen.headers.all("content-length");
  if (joined.empty() || !seen.headers.get("transfer-encoding").empty()) return true;
  const auto length = agreed_length(joined);
  if (!length)
    return refuse(seen, &Seen::bad_framing, "the answer's Content-Length fields conflict or are no numbers");
  const bool has_body = exchange.request.method != "HEAD" && seen.status != 204 && seen.status != 304;
  if (!has_body || seen.streaming) return true;
  if (*length > exchange.request.max_body_bytes)
    return refuse(seen, &Seen::too_large,
                  "the answer announces " + std::to_string(*length) + " bytes, over the limit of " +
                      std::to_string(exchange.request.max_body_bytes));
  seen.body.reserve(std::min<std::size_t>(*length, kMostReserved));
  return true;
}

bool end_of_head(Exchange& exchange) {
  Seen& seen = exchange.seen;
  seen.in_head = false;
  if (seen.status == 101)
    return refuse(seen, &Seen::bad_framing, "the answer switches protocols, which nobody asked for");
  if (seen.status < 200) return true;
  seen.head_complete = true;
  if (const std::string encoding = seen.headers.all("content-encoding"); is_encoded(encoding))
    seen.decoder = std::make_unique<BodyDecoder>(encoding);
  if (exchange.callbacks.stream && seen.status < 300)
    seen.streaming = exchange.callbacks.stream(seen.status, seen.headers);
  return check_length(exchange);
}

void start_of_head(Seen& seen, std::string_view line) {
  seen.in_head = true;
  seen.headers.list.clear();
  seen.status = 0;
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  const std::string_view digits = line.substr(space + 1, 3);
  std::from_chars(digits.data(), digits.data() + digits.size(), seen.status);
}

void header_line(Seen& seen, std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {
    if (!seen.headers.list.empty()) (seen.headers.list.back().second += ' ') += ascii::trimmed(line);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  seen.headers.list.emplace_back(ascii::lowered(ascii::trimmed(line.substr(0, colon))),
                                 ascii::trimmed(line.substr(colon + 1)));
}

bool take_header(Exchange& exchange, std::string_view line) {
  Seen& seen = exchange.seen;
  seen.header_bytes += line.size();
  if (seen.header_bytes > exchange.request.max_header_bytes) {
    const bool landed = seen.status >= 200 && seen.status < 300;
    return refuse(seen, landed ? &Seen::too_large : &Seen::bad_framing,
                  "the answer's head is over the limit of " +
                      std::to_string(exchange.request.max_header_bytes) + " bytes");
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (seen.head_complete) return true;  // a trailer
  if (line.empty()) return !seen.in_head || end_of_head(exchange);
  if (!seen.in_head)
    start_of_head(seen, line);
  else
    header_line(seen, line);
  return true;
}

}  // namespace

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
  return take_header(*static_cast<Exchange*>(self), {data, size * count}) ? size * count : 0;
}

namespace {

bool take_streamed(Exchange& exchange, std::string_view piece) {
  Seen& seen = exchange.seen;
  if (seen.stopped) {
    seen.drained += piece.size();
    return seen.drained <= kMostDrained;
  }
  if (!exchange.callbacks.chunk || exchange.callbacks.chunk(piece)) return true;
  seen.stopped = true;
  if (exchange.request.fresh_connection) return false;
  exchange.host.stopped(exchange);
  return true;
}

bool take_body(Exchange& exchange, std::string_view piece) {
  Seen& seen = exchange.seen;
  seen.body_bytes += piece.size();
  if (seen.streaming) return take_streamed(exchange, piece);
  if (seen.body_bytes > exchange.request.max_body_bytes) {
    std::string().swap(seen.body);
    return refuse(seen, &Seen::too_large,
                  "the answer is over the limit of " + std::to_string(exchange.request.max_body_bytes) +
                      " bytes; at least " + std::to_string(seen.body_bytes) + " came");
  }
  seen.body.append(piece);
  return true;
}

}  // namespace

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  const std::string_view bytes(data, size * count);
  BodyDecoder* const decoder = exchange.seen.decoder.get();
  const bool goes_on = decoder ? decoder->decode(bytes, [&](std::string_view piece) { return take_body(exchange, piece); })
                               : take_body(exchange, bytes);
  return goes_on ? bytes.size() : 0;
}

void leave_socket(Exchange& exchange) {
  if (const auto found = exchange.host.sockets.find(exchange.socket); found != exchange.host.sockets.end())
    found->second.user = nullptr;
  exchange.socket = CURL_SOCKET_BAD;
}

void drop_unsent(Exchange& exchange) {
  const linger at_once{1, 0};
  const auto drop = [&](curl_socket_t socket, bool mine) {
    if (mine) setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  };
  drop(exchange.socket, exchange.socket != CURL_SOCKET_BAD);
  for (const curl_socket_t socket : exchange.opened) {
    const auto known = exchange.host.sockets.find(socket);
    drop(socket, known != exchange.host.sockets.end() && known->second.maker == exchange.id);
  }
}

void look_at_socket(Exchange& exchange) {
  if (exchange.socket == CURL_SOCKET_BAD || exchange.seen.received > 0) return;
  const auto now = bytes_received(exchange.socket);
  if (!now || *now <= exchange.socket_baseline) return;
  exchange.seen.raw_received = true;
  exchange.seen.received = *now - exchange.socket_baseline;
}

}  // namespace holdfast::tools
