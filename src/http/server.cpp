#include "http/server.h"

#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "holdfast/core/thread_name.h"
#include "http/listener.h"
#include "http/poller.h"
#include "http/router.h"
#include "http/topics.h"

namespace holdfast::http {
namespace {

/// Every connection is a descriptor, and the usual soft limit of 1,024 is below the usual number of
/// connections.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class PolledServer final : public Server {
 public:
  PolledServer(const Clock& clock, Options options)
      : options_(std::move(options)), poller_(clock, options_, router_, topics_) {}
  ~PolledServer() override { stop(); }

  void route(std::string method, std::string pattern, Access access, Handler handler, Glance glance) override {
    router_.add(std::move(method), std::move(pattern), access, std::move(handler), std::move(glance));
  }

  Result<std::string> listen() override {
    raise_descriptor_limit();
    auto listener = open_listener(options_.listen, options_.socket_mode);
    if (!listener) return std::unexpected(std::move(listener.error()));
    thread_ = std::thread([this, socket = listener->socket] {
      name_this_thread((options_.name + " listener").c_str());
      poller_.serve(socket);
    });
    return std::move(listener->address);
  }

  void wake(std::string_view topic) override { poller_.wake(topics_.take(topic)); }
  void stop_accepting() override {
    if (thread_.joinable() && !removed_.exchange(true)) remove_unix_socket(options_.listen);
    poller_.stop_accepting();
  }

  void stop() override {
    stop_accepting();
    poller_.stop();
    const std::scoped_lock lock(stopping_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  const Options options_;
  Router router_;
  Topics topics_;
  Poller poller_;
  std::thread thread_;
  std::mutex stopping_;
  std::atomic<bool> removed_{false};
};

}  // namespace

std::unique_ptr<Server> make_server(const Clock& clock, Options options) {
  return std::make_unique<PolledServer>(clock, std::move(options));
}

}  // namespace holdfast::http
