#include "load.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "wire.h"

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStall{60};  // without any answer

struct Client {
  int socket = -1;
  std::string in;
  Clock::time_point since;
};

class Generator {
 public:
  explicit Generator(const Load& load) : load_(load), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    submit_ = "POST /v1/runs HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(load.submission.size()) + "\r\n\r\n" + load.submission;
  }
  ~Generator() {
    for (const Client& client : clients_) close(client.socket);
    close(epoll_);
  }

  LoadResult run() {
    const auto started = Clock::now();
    until_ = started + load_.time;
    clients_.resize(load_.concurrency);
    for (Client& client : clients_) connect(client);
    for (Client& client : clients_) next_run(client);
    while (under_way_ > 0) wait();
    result_.seconds = std::chrono::duration<double>(Clock::now() - started).count();
    return std::move(result_);
  }

 private:
  void connect(Client& client) {
    client.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = loopback(load_.port);
    if (::connect(client.socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error("the service takes no connection");
    }
    const int on = 1;
    setsockopt(client.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(epoll_, client.socket, EPOLLIN, static_cast<std::uint64_t>(&client - clients_.data()));
  }

  void next_run(Client& client) {
    client.since = Clock::now();
    if (client.since >= until_) return;
    ++under_way_;
    send(client, submit_);
  }

  void wait() {
    std::array<epoll_event, 128> events{};
    const int timeout_ms = static_cast<int>(std::chrono::milliseconds(kStall).count());
    const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
    if (n == 0) throw std::runtime_error("no answer for a minute");
    for (int i = 0; i < n; ++i) on_input(clients_[events[static_cast<std::size_t>(i)].data.u64]);
  }

  void on_input(Client& client) {
    std::array<char, 16384> buffer;
    const ssize_t n = ::recv(client.socket, buffer.data(), buffer.size(), 0);
    if (n <= 0) throw std::runtime_error("the service closed a kept connection");
    client.in.append(buffer.data(), static_cast<std::size_t>(n));
    if (const std::size_t size = message_size(client.in)) {
      const std::string answer = client.in.substr(0, size);
      client.in.erase(0, size);
      on_answer(client, answer);
    }
  }

  void on_answer(Client& client, const std::string& answer) {
    const std::size_t id = answer.find("\"id\":\"run_");
    const bool good = answer.starts_with("HTTP/1.1 20") && id != std::string::npos;
    if (good && answer.find("\"settled\":true") == std::string::npos &&
        answer.find("\"status\":\"unknown\"") > answer.find("\"steps\"")) {
      return send(client,
                  "GET /v1/runs/" + answer.substr(id + 6, 30) + "?wait=30s HTTP/1.1\r\nHost: bench\r\n\r\n");
    }
    --under_way_;
    if (good && answer.find("\"status\":\"succeeded\"") != std::string::npos) {
      result_.latencies_ms.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - client.since).count());
    } else {
      if (result_.errors++ == 0) result_.first_error = answer;
    }
    next_run(client);
  }

  static void send(const Client& client, std::string_view bytes) {
    if (::send(client.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("the service takes no request");
    }
  }

  const Load load_;
  const int epoll_;
  std::string submit_;
  Clock::time_point until_;
  std::vector<Client> clients_;
  std::size_t under_way_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const Load& load) {
  return Generator(load).run();
}

}  // namespace holdfast::bench
