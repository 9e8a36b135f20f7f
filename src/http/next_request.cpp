#include "http/next_request.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "http/admission.h"

namespace holdfast::http {
namespace {

bool has_input(int socket, std::chrono::microseconds within) {
  pollfd p{.fd = socket, .events = POLLIN, .revents = 0};
  const timespec patience{.tv_sec = within.count() / 1'000'000, .tv_nsec = within.count() % 1'000'000 * 1'000};
  return ::ppoll(&p, 1, &patience, nullptr) == 1;
}

std::string read_once(int socket) {
  std::array<char, kLineBytes> buffer;
  const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  return n > 0 ? std::string(buffer.data(), static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

std::unique_ptr<Exchange> next_request(const Exchange& last, const Router& router, const Options& options, std::string& received) {
  if (!has_input(last.socket, options.keep_time)) return nullptr;
  received = read_once(last.socket);
  HeadScanner scanner;
  const auto length = scanner.scan(received);
  if (!length || *length == 0) return nullptr;
  // A wrong token is not counted here: whoever is refused is refused once more, by the poller.
  auto admitted = admit(std::string_view(received).substr(scanner.start(), *length - scanner.start()), router, options, [] { return 0; });
  if (!admitted || received.size() - *length != admitted->body_length) return nullptr;
  std::unique_ptr<Exchange> exchange = std::move(admitted->exchange);
  exchange->request.body = received.substr(*length);
  exchange->request.remote_address = last.request.remote_address;
  exchange->connection = last.connection;
  exchange->socket = last.socket;
  received.clear();
  return exchange;
}

}  // namespace holdfast::http
