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
  explicit Generator(const Load& load) : load_(load), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~Generator() {
    for (const Client& client : clients_) close(client.socket);
    close(epoll_);
  }

  LoadResult run() {
    from_ = Clock::now() + load_.warm_up;
    clients_.resize(load_.concurrency);
    for (Client& client : clients_) connect(client);
    for (Client& client : clients_) next_run(client);
    while (under_way_ > 0) wait();
    result_.seconds = std::chrono::duration<double>(ended_ - begun_).count();
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
    send(client, load_.request);
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
      on_answer(client, std::string_view(client.in).substr(0, size));
      client.in.erase(0, size);
    }
  }

  void on_answer(Client& client, std::string_view answer) {
    const Verdict verdict = load_.judge(answer);
    if (verdict.kind == Verdict::Kind::kAskAgain) return send(client, verdict.request);
    --under_way_;
    const auto now = Clock::now();
    mark_time(now);
    if (verdict.kind == Verdict::Kind::kSucceeded) {
      ++result_.succeeded;
      if (now > begun_ && now <= ended_) {
        result_.latencies_ms.push_back(std::chrono::duration<double, std::milli>(now - client.since).count());
      }
    } else if (result_.errors++ == 0) {
      result_.first_error = answer;
    }
    next_run(client);
  }

  /// The measured time lies between two answers, so that the count of answers in it and its length belong together.
  void mark_time(Clock::time_point now) {
    if (begun_ == Clock::time_point::max() && now >= from_) {
      begun_ = ended_ = now;
      until_ = now + load_.time;
      if (load_.meter) load_.meter();
    }
    if (now <= begun_ || over_) return;
    ended_ = now;
    over_ = now >= until_;
    if (over_ && load_.meter) load_.meter();
  }

  static void send(const Client& client, std::string_view bytes) {
    if (::send(client.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("the service takes no request");
    }
  }

  const Load& load_;
  const int epoll_;
  Clock::time_point from_, begun_ = Clock::time_point::max(), ended_ = begun_;
  Clock::time_point until_ = Clock::time_point::max();  // not known before the first answer after the warm-up
  bool over_ = false;
  std::vector<Client> clients_;
  std::size_t under_way_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const Load& load) {
  return Generator(load).run();
}

}  // namespace holdfast::bench
