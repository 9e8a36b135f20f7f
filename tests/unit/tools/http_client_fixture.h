#pragma once
// A raw-socket server on threads, and a client whose outcomes can be waited for.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/tools/http_client.h"

namespace holdfast::tools::testing {

/// One accepted connection, as the server's script sees it.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  ~Peer() { shut(); }
  Peer(const Peer&) = delete;

  /// Reads one whole request (head and Content-Length body); empty at end of stream.
  std::string request() {
    while (true) {
      const auto head = buffer_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const std::size_t length = head + 4 + content_length(buffer_.substr(0, head));
        if (buffer_.size() >= length) {
          std::string out = buffer_.substr(0, length);
          buffer_.erase(0, length);
          return out;
        }
      }
      char piece[65536];
      const ssize_t n = read(fd_, piece, sizeof piece);
      if (n <= 0) return {};
      buffer_.append(piece, static_cast<std::size_t>(n));
    }
  }
  bool write(std::string_view data) {
    while (!data.empty()) {
      const ssize_t n = send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      data.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    shut();
  }
  void shut() {
    const std::lock_guard lock(mutex_);
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  /// From another thread: ends whatever the script waits for.
  void interrupt() {
    const std::lock_guard lock(mutex_);
    if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
  }
  /// Waits until the client has gone; false after `most_ms`.
  bool client_gone(int most_ms = 5000) {
    pollfd p{fd_, POLLRDHUP, 0};
    return poll(&p, 1, most_ms) > 0;
  }
  /// True when the client is gone within `ms`; a pause for drips.
  bool pause(int ms) { return client_gone(ms); }

 private:
  static std::size_t content_length(const std::string& head) {
    const auto at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
  }
  std::mutex mutex_;
  int fd_;
  std::string buffer_;
};

/// Runs `script` for each accepted connection, each on a thread of its own, or one after the other.
class RawServer {
 public:
  explicit RawServer(std::function<void(Peer&, int nth)> script, bool one_by_one = false)
      : script_(std::move(script)), one_by_one_(one_by_one) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(fd_, 2048);
    socklen_t size = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~RawServer() {
    stopping_ = true;
    shutdown(fd_, SHUT_RDWR);
    acceptor_.join();
    close(fd_);
    for (auto& peer : peers_) peer->interrupt();
    for (auto& thread : threads_) thread.join();
  }
  [[nodiscard]] std::string url(const std::string& path = "/x") const {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  }

  int port = 0;
  std::atomic<int> accepted{0};

 private:
  void accept_all() {
    while (!stopping_) {
      const int fd = accept(fd_, nullptr, nullptr);
      if (fd < 0) return;
      const int nth = accepted++;
      auto peer = std::make_shared<Peer>(fd);
      if (one_by_one_) {
        script_(*peer, nth);
        continue;
      }
      peers_.push_back(peer);
      threads_.emplace_back([this, peer, nth] {
        script_(*peer, nth);
        peer->shut();
      });
    }
  }

  std::function<void(Peer&, int)> script_;
  bool one_by_one_ = false;
  int fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  std::vector<std::shared_ptr<Peer>> peers_;
  std::vector<std::thread> threads_;
};

/// A client on the system clock; run() waits for one outcome.
struct Client {
  SystemClock clock;
  std::unique_ptr<HttpClient> http = make_curl_client(clock);

  [[nodiscard]] HttpRequest post(const std::string& url, std::string body = "{}",
                                 Duration within = Duration{3000}) const {
    HttpRequest request;
    request.url = url;
    request.body = std::move(body);
    request.has_body = true;
    request.deadline = clock.now() + within;
    return request;
  }
  [[nodiscard]] HttpRequest get(const std::string& url, Duration within = Duration{3000}) const {
    HttpRequest request;
    request.method = "GET";
    request.url = url;
    request.deadline = clock.now() + within;
    return request;
  }
  std::future<HttpOutcome> begin(HttpRequest request, RequestId* id = nullptr, HttpCallbacks callbacks = {}) {
    auto promise = std::make_shared<std::promise<HttpOutcome>>();
    callbacks.done = [promise](HttpOutcome outcome) { promise->set_value(std::move(outcome)); };
    const RequestId given = http->start(std::move(request), std::move(callbacks));
    if (id) *id = given;
    return promise->get_future();
  }
  HttpOutcome run(HttpRequest request) { return begin(std::move(request)).get(); }
};

inline std::string ok(const std::string& body, const std::string& more = "") {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// A host name that only these tests can resolve; see http_client_names.cpp.
inline std::string named_url(const std::string& name, int port) {
  return "http://" + name + ":" + std::to_string(port) + "/x";
}

}  // namespace holdfast::tools::testing
