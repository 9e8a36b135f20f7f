#include "tools/mcp/stdio_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <variant>

#include "holdfast/core/thread_name.h"
#include "tools/mcp/stdio_server.h"

namespace holdfast::tools::mcp {
namespace {

constexpr Duration kStopWait{1'000};
constexpr int kStopPollMs = 5;
constexpr std::int64_t kLongestSleepMs = 60'000;

class McpStdio final : public McpTransport {
 public:
  McpStdio(const Clock& clock, Catalog& catalog, CallSink& sink)
      : context_{clock, catalog, SinkGate(sink, catalog.config().secrets)},
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    for (const auto& [name, server] : catalog.config().servers) {
      if (server.transport == ServerConfig::Transport::mcp_stdio)
        servers_.try_emplace(name, context_, server);
    }
    thread_ = std::thread([this] {
      name_this_thread("stdio");
      run();
    });
  }
  ~McpStdio() override { stop(); }

  void start(Call call) override { post(std::move(call)); }
  void cancel(CallId id) override { post(id); }
  void discover(const std::string& server, Duration at_most, std::function<void()> done) override {
    post(Discover{server, context_.clock.now() + at_most, std::move(done)});
  }
  void stop() override {
    context_.gate.close();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    const std::lock_guard lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Discover {
    std::string server;
    Instant deadline;
    std::function<void()> done;
  };
  using Order = std::variant<Call, CallId, Discover>;

  void post(Order order) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      inbox_.push_back(std::move(order));
    }
    wake();
  }
  void wake() const { [[maybe_unused]] const int ignored = eventfd_write(wake_.get(), 1); }

  void run() {
    // Signals belong to other threads; a blocked SIGPIPE turns into EPIPE.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (obey()) {
      wait_and_serve();
      for (auto& [name, server] : servers_) server.on_time();
    }
    end_processes();
  }

  /// False when it is time to stop.
  bool obey() {
    std::deque<Order> orders;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      orders.swap(inbox_);
    }
    for (Order& order : orders) {
      if (auto* call = std::get_if<Call>(&order)) begin(std::move(*call));
      if (const auto* id = std::get_if<CallId>(&order)) {
        for (auto& [name, server] : servers_) server.cancel(*id);
      }
      if (auto* wanted = std::get_if<Discover>(&order)) {
        const auto found = servers_.find(wanted->server);
        if (found == servers_.end())
          wanted->done();
        else
          found->second.discover(wanted->deadline, std::move(wanted->done));
      }
    }
    return true;
  }

  void begin(Call call) {
    const auto found = servers_.find(call.server);
    if (found != servers_.end()) return found->second.start(std::move(call));
    Evidence e;
    e.failure = Failure::process_start;
    e.detail = "no stdio server has this name";
    context_.gate.finished(call.id, std::move(e));
  }

  void wait_and_serve() {
    fds_.assign(1, {wake_.get(), POLLIN, 0});
    Instant next = kEndOfTime;
    for (const auto& [name, server] : servers_) {
      next = std::min(next, server.next_event());
      fds_.push_back({server.output(), POLLIN, 0});
      fds_.push_back({server.wants_to_write() ? server.input() : -1, POLLOUT, 0});
    }
    const std::int64_t sleep_ms =
        std::clamp<std::int64_t>((next - context_.clock.now()).count(), 0, kLongestSleepMs);
    if (poll(fds_.data(), fds_.size(), static_cast<int>(sleep_ms)) <= 0) return;
    eventfd_t count = 0;
    if (fds_[0].revents != 0) [[maybe_unused]]
      const int ignored = eventfd_read(wake_.get(), &count);
    std::size_t at = 1;
    for (auto& [name, server] : servers_) {
      // What was said comes first: a process that answered and ended has answered.
      if (fds_[at].revents != 0 && fds_[at].fd == server.output()) server.on_readable();
      if (fds_[at + 1].revents != 0 && fds_[at + 1].fd == server.input()) server.on_writable();
      at += 2;
    }
  }

  void end_processes() {
    for (auto& [name, server] : servers_) server.begin_stop();
    const Instant until = context_.clock.now() + kStopWait;
    const auto all_stopped = [&] {
      return std::ranges::all_of(servers_, [](const auto& pair) { return pair.second.stopped(); });
    };
    while (!all_stopped() && context_.clock.now() < until) poll(nullptr, 0, kStopPollMs);
    for (auto& [name, server] : servers_) server.kill();
  }

  StdioContext context_;
  Descriptor wake_;
  std::map<std::string, StdioServer, std::less<>> servers_;
  std::vector<pollfd> fds_;
  std::mutex mutex_;
  std::deque<Order> inbox_;
  bool stopping_ = false;
  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<McpTransport> make_mcp_stdio(const Clock& clock, Catalog& catalog, CallSink& sink) {
  return std::make_unique<McpStdio>(clock, catalog, sink);
}

}  // namespace holdfast::tools::mcp
