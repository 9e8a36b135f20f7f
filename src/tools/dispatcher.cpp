#include "tools/dispatcher.h"

#include <condition_variable>
#include <mutex>

#include "tools/http_tools.h"
#include "tools/mcp/stdio_session.h"

namespace holdfast::tools {
namespace {

using Kind = ServerConfig::Transport;

/// Shared with the callbacks, which may come after the wait has ended.
struct Countdown {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t left = 0;
};

class DispatcherOverAll final : public Dispatcher {
 public:
  DispatcherOverAll(const Clock& clock, Catalog& catalog, HttpClient& client, CallSink& sink)
      : catalog_(catalog),
        http_tools_(make_http_tools(clock, catalog, client, sink)),
        mcp_http_(mcp::make_mcp_http(clock, catalog, client, sink)),
        mcp_stdio_(mcp::make_mcp_stdio(clock, catalog, sink)) {}

  void start(Call call) override {
    const ServerConfig* server = catalog_.server(call.server);
    transport_of(server == nullptr ? Kind::http : server->transport).start(std::move(call));
  }

  /// Ids are unique across all transports, and each ignores those that it does not know.
  void cancel(CallId id) override {
    http_tools_->cancel(id);
    mcp_http_->cancel(id);
    mcp_stdio_->cancel(id);
  }

  void stop() override {
    http_tools_->stop();
    mcp_http_->stop();
    mcp_stdio_->stop();
  }

  void reconfigure() override {
    const Config& config = catalog_.config();
    mcp_http_->reconfigure(config);
    mcp_stdio_->reconfigure(config);
  }

  void discover_trusted(Duration at_most) override {
    const auto countdown = std::make_shared<Countdown>();
    const auto one_less = [countdown] {
      const std::lock_guard lock(countdown->mutex);
      --countdown->left;
      countdown->changed.notify_all();
    };
    for (const auto& [name, server] : catalog_.config().servers) {
      if (!server.trust_annotations || server.transport == Kind::http) continue;
      {
        const std::lock_guard lock(countdown->mutex);
        ++countdown->left;
      }
      mcp_of(server.transport).discover(name, at_most, one_less);
    }
    std::unique_lock lock(countdown->mutex);
    countdown->changed.wait_for(lock, at_most, [&] { return countdown->left == 0; });
  }

 private:
  mcp::McpTransport& mcp_of(Kind kind) { return kind == Kind::mcp_stdio ? *mcp_stdio_ : *mcp_http_; }
  Transport& transport_of(Kind kind) {
    if (kind == Kind::http) return *http_tools_;
    return mcp_of(kind);
  }

  Catalog& catalog_;
  std::unique_ptr<Transport> http_tools_;
  std::unique_ptr<mcp::McpTransport> mcp_http_;
  std::unique_ptr<mcp::McpTransport> mcp_stdio_;
};

}  // namespace

std::unique_ptr<Dispatcher> make_dispatcher(const Clock& clock, Catalog& catalog, HttpClient& client,
                                            CallSink& sink) {
  return std::make_unique<DispatcherOverAll>(clock, catalog, client, sink);
}

}  // namespace holdfast::tools
