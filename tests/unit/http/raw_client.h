#pragma once
// A client that sends exactly the bytes it is told to.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::http {

class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawClient() { hang_up(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_), in_(std::move(other.in_)) {}

  [[nodiscard]] bool connected() const { return connected_; }

  /// Sends until everything is gone or the server takes no more for `patience_ms`. Returns what was sent.
  std::size_t send(std::string_view bytes, int patience_ms = 2000) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      pollfd p{.fd = socket_, .events = POLLOUT, .revents = 0};
      if (::poll(&p, 1, patience_ms) <= 0) break;
      const ssize_t n =
          ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    return sent;
  }

  void half_close() { ::shutdown(socket_, SHUT_WR); }
  /// The connection ends with a reset, not with an end.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    hang_up();
  }
  void hang_up() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  /// The next answer: head and the body of its Content-Length. Empty when the connection ends first or
  /// nothing comes in time.
  std::string answer(int patience_ms = 5000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (true) {
      const std::size_t head = in_.find("\r\n\r\n");
      if (head != std::string::npos && in_.starts_with("HTTP/1.1 100")) {
        in_.erase(0, head + 4);
        saw_continue_ = true;
        continue;
      }
      if (head != std::string::npos && in_.size() >= head + 4 + length_of(in_.substr(0, head))) {
        const std::size_t size = head + 4 + length_of(in_.substr(0, head));
        std::string one = in_.substr(0, size);
        in_.erase(0, size);
        return one;
      }
      if (!read_more(until)) return "";
    }
  }

  /// Reads until `text` was received; what came so far stays in the buffer.
  bool receives(std::string_view text, int patience_ms = 5000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (in_.find(text) == std::string::npos) {
      if (!read_more(until)) return false;
    }
    return true;
  }

  /// True when the server ends the connection in time; what still comes is dropped.
  bool ends(int patience_ms = 5000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (read_more(until)) in_.clear();
    return ended_;
  }

  [[nodiscard]] bool saw_continue() const { return saw_continue_; }
  [[nodiscard]] const std::string& buffer() const { return in_; }

 private:
  static std::size_t length_of(std::string_view head) {
    const std::size_t at = head.find("Content-Length: ");
    return at == std::string_view::npos ? 0 : std::stoul(std::string(head.substr(at + 16, 12)));
  }

  bool read_more(std::chrono::steady_clock::time_point until) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now())
            .count();
    pollfd p{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, static_cast<int>(std::max<long>(left, 0))) <= 0) return false;
    char buffer[16384];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n <= 0) {
      ended_ = true;
      return false;
    }
    in_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int socket_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  bool saw_continue_ = false;
  std::string in_;
};

inline int status_of(std::string_view answer) {
  return answer.size() < 12 ? 0 : std::stoi(std::string(answer.substr(9, 3)));
}

inline std::string body_of(std::string_view answer) {
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string_view::npos ? "" : std::string(answer.substr(head + 4));
}

}  // namespace holdfast::http
