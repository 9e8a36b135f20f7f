#include "tools/mcp/http_session.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "tools/mcp/http_call.h"

namespace holdfast::tools::mcp {
namespace {

/// Everything but the inbox belongs to the client's thread.
class State : public std::enable_shared_from_this<State> {
 public:
  State(const Clock& clock, Catalog& catalog, HttpClient& http, CallSink& sink)
      : context_(new HttpCallContext{http, clock, catalog, SinkGate(sink, catalog)}) {
    connect_to(catalog.config());
  }

  /// A link per configured server. One that is reached as before keeps its session; one that is not lives on for its calls.
  void connect_to(const Config& config) {
    std::map<std::string, std::shared_ptr<HttpLink>, std::less<>> links;
    for (const auto& [name, server] : config.servers) {
      if (server.transport != ServerConfig::Transport::mcp_http) continue;
      const auto known = links_.find(name);
      if (known != links_.end() && same_connection(known->second->server(), server)) {
        known->second->adopt(server);
        links.insert(*known);
      } else {
        links.emplace(name, std::make_shared<HttpLink>(context_->http, context_->clock, context_->catalog, server));
      }
    }
    links_ = std::move(links);
  }

  /// Runs `task` on the client's thread, in the order of the calls to post().
  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      inbox_.push_back(std::move(task));
      if (std::exchange(woken_, true)) return;
    }
    context_->http.at(Instant{}, [self = shared_from_this()] { self->drain(); });
  }

  void start(Call call) {
    const CallId id = call.id;
    const auto link = links_.find(call.server);
    if (link == links_.end()) {
      Evidence e;
      e.failure = Failure::process_start;
      e.detail = "no MCP server over HTTP has this name";
      return context_->gate.finished(id, std::move(e));
    }
    const auto made = std::make_shared<HttpCall>(context_, link->second, std::move(call),
                                                 [weak = weak_from_this()](CallId gone) {
                                                   if (const auto self = weak.lock())
                                                     self->calls_.erase(gone);
                                                 });
    calls_[id] = made;
    made->begin();
  }

  void cancel(CallId id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    const std::shared_ptr<HttpCall> call = found->second;
    call->cancel();
  }

  /// Connects and lists; `done` runs at the first of: listed, failed, out of time.
  void discover(const std::string& server, Duration at_most, std::function<void()> done) {
    const auto found = links_.find(server);
    if (found == links_.end()) return done();
    const std::shared_ptr<HttpLink> link = found->second;
    constexpr std::uint64_t waiter = ~std::uint64_t{0} - 1;
    const Instant deadline = context_->clock.now() + at_most;
    const auto once = [called = std::make_shared<bool>(false), done = std::move(done)] {
      if (!std::exchange(*called, true)) done();
    };
    context_->http.at(deadline, [link, once] {
      link->abandon(waiter);
      once();
    });
    link->await(waiter, deadline, [link, once, deadline](const Evidence* failed) {
      if (failed != nullptr) return once();
      link->await_list(waiter, deadline, [once](const Evidence*) { once(); });
    });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      inbox_.clear();
      inbox_.push_back([this] {
        for (const auto& [id, call] : std::exchange(calls_, {})) call->cancel();
      });
      stopped_ = true;
    }
    context_->gate.close();
    context_->http.at(Instant{}, [self = shared_from_this()] { self->drain(); });
  }

 private:
  void drain() {
    std::deque<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(inbox_);
      woken_ = false;
    }
    for (const auto& task : tasks) task();
  }

  std::shared_ptr<HttpCallContext> context_;
  std::map<std::string, std::shared_ptr<HttpLink>, std::less<>> links_;
  std::unordered_map<CallId, std::shared_ptr<HttpCall>> calls_;
  std::mutex mutex_;
  std::deque<std::function<void()>> inbox_;
  bool woken_ = false;
  bool stopped_ = false;
};

class McpHttp final : public McpTransport {
 public:
  explicit McpHttp(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~McpHttp() override { state_->stop(); }

  void start(Call call) override {
    // std::function wants a copyable task.
    const auto held = std::make_shared<Call>(std::move(call));
    state_->post([state = state_.get(), held] { state->start(std::move(*held)); });
  }
  void cancel(CallId id) override {
    state_->post([state = state_.get(), id] { state->cancel(id); });
  }
  void stop() override { state_->stop(); }
  void reconfigure(const Config& config) override {
    state_->post([state = state_.get(), &config] { state->connect_to(config); });
  }
  void discover(const std::string& server, Duration at_most, std::function<void()> done) override {
    state_->post([state = state_.get(), server, at_most, done = std::move(done)] {
      state->discover(server, at_most, done);
    });
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<McpTransport> make_mcp_http(const Clock& clock, Catalog& catalog, HttpClient& http,
                                            CallSink& sink) {
  return std::make_unique<McpHttp>(std::make_shared<State>(clock, catalog, http, sink));
}

}  // namespace holdfast::tools::mcp
