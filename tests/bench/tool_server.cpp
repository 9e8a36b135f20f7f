#include "tool_server.h"

#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "wire.h"

namespace holdfast::bench {
namespace {

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    "23\r\n\r\n{\"ok\":true,\"charge\":42}";

}  // namespace

ToolServer::ToolServer()
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  const int on = 1;
  setsockopt(listener_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 4096) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the tool server cannot listen");
  }
  port_ = ntohs(address.sin_port);
  watch(epoll_, listener_, EPOLLIN, static_cast<std::uint64_t>(listener_));
  watch(epoll_, stop_, EPOLLIN, static_cast<std::uint64_t>(stop_));
  thread_ = std::thread([this] { serve(); });
}

ToolServer::~ToolServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(stop_, &one, sizeof one);
  thread_.join();
  for (const auto& [socket, text] : input_) ::close(socket);
  for (const int descriptor : {listener_, epoll_, stop_}) ::close(descriptor);
}

void ToolServer::serve() {
  std::array<epoll_event, 128> events{};
  while (true) {
    const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int socket = static_cast<int>(events[static_cast<std::size_t>(i)].data.u64);
      if (socket == stop_) return;
      if (socket == listener_) {
        accept_all();
      } else {
        on_input(socket);
      }
    }
  }
}

void ToolServer::accept_all() {
  while (true) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    input_[socket].clear();
    watch(epoll_, socket, EPOLLIN, static_cast<std::uint64_t>(socket));
  }
}

void ToolServer::on_input(int socket) {
  std::array<char, 16384> buffer;
  const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (n <= 0) {
    if (n == 0 || errno != EAGAIN) drop(socket);
    return;
  }
  std::string& text = input_[socket];
  text.append(buffer.data(), static_cast<std::size_t>(n));
  while (const std::size_t size = message_size(text)) {
    text.erase(0, size);
    ++requests_;
    if (::send(socket, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) < 0) return drop(socket);
  }
}

void ToolServer::drop(int socket) {
  input_.erase(socket);
  ::close(socket);
}

}  // namespace holdfast::bench
