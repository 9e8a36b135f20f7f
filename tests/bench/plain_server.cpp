#include "plain_server.h"

#include <httplib.h>

#include <condition_variable>
#include <mutex>
#include <regex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace holdfast::bench {
namespace {

/// A request that waits on its thread.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
};

class PlainServer final : public http::Server {
 public:
  PlainServer(const Clock& clock, std::size_t threads) : clock_(clock) {
    server_.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
    server_.set_tcp_nodelay(true);  // 44 ms per request without it
    server_.set_keep_alive_max_count(1'000'000);
  }
  ~PlainServer() override { stop(); }

  void route(std::string method, std::string pattern, http::Access, http::Handler handler, http::Glance) override {
    std::vector<std::string> names;
    std::string expression;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const std::size_t end = pattern[i] == '{' ? pattern.find('}', i) : std::string::npos;
      if (end == std::string::npos) {
        expression += pattern[i];
        continue;
      }
      names.push_back(pattern.substr(i + 1, end - i - 1));
      expression += "([^/]+)";
      i = end;
    }
    auto serve = [this, names, handler = std::move(handler)](const httplib::Request& from, httplib::Response& to) {
      answer(names, handler, from, to);
    };
    if (method == "GET") server_.Get(expression, serve);
    if (method == "POST") server_.Post(expression, serve);
  }

  [[nodiscard]] Result<std::string> listen() override {
    const int port = server_.bind_to_any_port("127.0.0.1");
    if (port <= 0) return std::unexpected(Error{"listen_failed", "no port", ""});
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    return "127.0.0.1:" + std::to_string(port);
  }

  void wake(std::string_view topic) override {
    std::vector<std::shared_ptr<Waiter>> woken;
    {
      const std::lock_guard lock(mutex_);
      const auto found = waiters_.find(std::string(topic));
      if (found == waiters_.end()) return;
      woken.assign(found->second.begin(), found->second.end());
      waiters_.erase(found);
    }
    for (const auto& waiter : woken) {
      const std::lock_guard lock(waiter->mutex);
      waiter->woken = true;
      waiter->changed.notify_one();
    }
  }
  void stop_accepting() override {}
  void stop() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void answer(const std::vector<std::string>& names, const http::Handler& handler, const httplib::Request& from,
              httplib::Response& to) {
    http::Request request;
    request.method = from.method;
    request.path = from.path;
    request.body = from.body;
    for (std::size_t i = 0; i < names.size(); ++i) request.parameters[names[i]] = from.matches[static_cast<int>(i) + 1];
    for (const auto& [name, value] : from.params) request.query.emplace(name, value);
    for (const auto& [name, value] : from.headers) {
      std::string lower = name;
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      request.headers.emplace(std::move(lower), value);
    }
    std::any state;
    request.state = &state;
    const auto waiter = std::make_shared<Waiter>();
    request.watch = [&](std::string_view topic) {
      const std::lock_guard lock(mutex_);
      waiters_[std::string(topic)].insert(waiter);
    };
    while (true) {
      http::Outcome outcome = handler(request);
      if (auto* response = std::get_if<http::Response>(&outcome)) {
        to.status = response->status;
        for (const auto& [name, value] : response->headers) to.set_header(name, value);
        to.set_content(response->body, response->content_type);
        return;
      }
      const auto* park = std::get_if<http::Park>(&outcome);
      if (park == nullptr) return;  // no streams here
      std::unique_lock lock(waiter->mutex);
      const auto wait = std::chrono::milliseconds((park->until - clock_.now()).count());
      request.waited_out = !waiter->changed.wait_for(lock, wait, [&] { return waiter->woken; });
      waiter->woken = false;
      request.resumed = true;
    }
  }

  const Clock& clock_;
  httplib::Server server_;
  std::thread thread_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::unordered_set<std::shared_ptr<Waiter>>> waiters_;
};

}  // namespace

std::unique_ptr<http::Server> make_plain_server(const Clock& clock, std::size_t threads) {
  return std::make_unique<PlainServer>(clock, threads);
}

}  // namespace holdfast::bench
