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
constexpr Duration kListenToRetired{30'000};
constexpr Duration kLookAtRetired{20};
constexpr std::int64_t kLongestSleepMs = 60'000;

class McpStdio final : public McpTransport {
 public:
  McpStdio(const Clock& clock, Catalog& catalog, CallSink& sink)
      : context_{clock, catalog, SinkGate(sink, catalog)},
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    serve(catalog.config());
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
  void reconfigure(const Config& config) override { post(&config); }
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
  using Order = std::variant<Call, CallId, Discover, const Config*>;
  struct Retired {
    std::unique_ptr<StdioServer> server;
    std::optional<Instant> listen_until;  // for late answers, once no call is out
    std::optional<Instant> kill_at;       // asked to end
  };

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
      each([](StdioServer& server) { server.on_time(); });
      end_retired();
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
        each([id](StdioServer& server) { server.cancel(*id); });
      }
      if (const auto* config = std::get_if<const Config*>(&order)) serve(**config);
      if (auto* wanted = std::get_if<Discover>(&order)) {
        const auto found = servers_.find(wanted->server);
        if (found == servers_.end())
          wanted->done();
        else
          found->second->discover(wanted->deadline, std::move(wanted->done));
      }
    }
    return true;
  }

  template <class F>
  void each(F&& f) {
    for (auto& [name, server] : servers_) f(*server);
    for (Retired& retired : retired_) f(*retired.server);
  }

  /// A process per configured server. One that is started as before goes on; one that is not finishes its calls and ends.
  void serve(const Config& config) {
    std::map<std::string, std::unique_ptr<StdioServer>, std::less<>> now;
    for (const auto& [name, server] : config.servers) {
      if (server.transport != ServerConfig::Transport::mcp_stdio) continue;
      const auto known = servers_.find(name);
      if (known != servers_.end() && same_connection(known->second->server(), server)) {
        known->second->adopt(server);
        now.insert(servers_.extract(known));
      } else {
        now.emplace(name, std::make_unique<StdioServer>(context_, server));
      }
    }
    for (auto& [name, server] : servers_) retired_.push_back({std::move(server), std::nullopt, std::nullopt});
    servers_ = std::move(now);
  }

  void end_retired() {
    const Instant now = context_.clock.now();
    std::erase_if(retired_, [now](Retired& retired) {
      StdioServer& server = *retired.server;
      if (!server.quiet(false)) return false;
      if (!retired.listen_until) retired.listen_until = now + kListenToRetired;
      if (!server.quiet(true) && now < *retired.listen_until) return false;
      if (!retired.kill_at) {
        server.begin_stop();
        retired.kill_at = now + kStopWait;
      }
      if (!server.stopped() && now < *retired.kill_at) return false;
      server.kill();
      return true;
    });
  }

  void begin(Call call) {
    const auto found = servers_.find(call.server);
    if (found != servers_.end()) return found->second->start(std::move(call));
    Evidence e;
    e.failure = Failure::process_start;
    e.detail = "no stdio server has this name";
    context_.gate.finished(call.id, std::move(e));
  }

  void wait_and_serve() {
    fds_.assign(1, {wake_.get(), POLLIN, 0});
    Instant next = retired_.empty() ? kEndOfTime : context_.clock.now() + kLookAtRetired;
    each([&](const StdioServer& server) {
      next = std::min(next, server.next_event());
      fds_.push_back({server.output(), POLLIN, 0});
      fds_.push_back({server.wants_to_write() ? server.input() : -1, POLLOUT, 0});
    });
    const std::int64_t sleep_ms =
        std::clamp<std::int64_t>((next - context_.clock.now()).count(), 0, kLongestSleepMs);
    if (poll(fds_.data(), fds_.size(), static_cast<int>(sleep_ms)) <= 0) return;
    eventfd_t count = 0;
    if (fds_[0].revents != 0) [[maybe_unused]]
      const int ignored = eventfd_read(wake_.get(), &count);
    std::size_t at = 1;
    each([&](StdioServer& server) {
      // What was said comes first: a process that answered and ended has answered.
      if (fds_[at].revents != 0 && fds_[at].fd == server.output()) server.on_readable();
      if (fds_[at + 1].revents != 0 && fds_[at + 1].fd == server.input()) server.on_writable();
      at += 2;
    });
  }

  void end_processes() {
    each([](StdioServer& server) { server.begin_stop(); });
    const Instant until = context_.clock.now() + kStopWait;
    const auto all_stopped = [&] {
      bool all = true;
      each([&](const StdioServer& server) { all = all && server.stopped(); });
      return all;
    };
    while (!all_stopped() && context_.clock.now() < until) poll(nullptr, 0, kStopPollMs);
    each([](StdioServer& server) { server.kill(); });
  }

  StdioContext context_;
  Descriptor wake_;
  std::map<std::string, std::unique_ptr<StdioServer>, std::less<>> servers_;
  std::vector<Retired> retired_;
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
