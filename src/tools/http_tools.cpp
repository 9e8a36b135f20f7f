#include "tools/http_tools.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace holdfast::tools {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool has(const HttpRequest& request, std::string_view name) {
  return std::ranges::any_of(request.headers,
                             [&](const auto& field) { return same_name(field.first, name); });
}

std::string joined_url(std::string_view base, std::string_view path) {
  while (base.ends_with('/')) base.remove_suffix(1);
  std::string out(base);
  if (!path.starts_with('/')) out += '/';
  return out += path;
}

void add_headers(HttpRequest& request, const ServerConfig& server, const Call& call) {
  request.headers = server.headers;
  if (request.has_body && !has(request, "content-type"))
    request.headers.emplace_back("Content-Type", "application/json");
  if (!has(request, "accept")) request.headers.emplace_back("Accept", "application/json");
  if (call.key.empty() || !call.key_rule || call.key_rule->place != KeyRule::Place::header) return;
  const std::string& name = call.key_rule->name;
  std::erase_if(request.headers, [&](const auto& field) { return same_name(field.first, name); });
  request.headers.emplace_back(name, call.key);
}

HttpRequest request_of(Call& call, const ServerConfig& server, const Limits& limits) {
  HttpRequest request;
  const std::size_t space = call.request.head.find(' ');
  request.method = call.request.head.substr(0, space);
  request.url = joined_url(
      server.url, space == std::string::npos ? "/" : std::string_view(call.request.head).substr(space + 1));
  request.body = std::move(call.request.body);
  const bool bodiless = request.method == "GET" || request.method == "HEAD" || request.method == "DELETE";
  request.has_body = !bodiless || !request.body.empty();
  add_headers(request, server, call);
  request.deadline = call.deadline;
  request.linger = call.linger;
  request.fresh_connection = call.repeat == Kind::plain || call.repeat == Kind::checkable;
  request.follow_redirects = call.repeat == Kind::read;
  request.allow_private = server.allow_private;
  request.max_body_bytes = limits.result_bytes;
  return request;
}

/// What callbacks share with the transport; they may run after it is gone.
struct Desk {
  Desk(const Catalog& of, CallSink& to) : catalog(of), sink(to) {}
  const Catalog& catalog;
  CallSink& sink;
  std::mutex reporting;  // held around every sink call, so that stop() can wait for the last one
  bool stopped = false;
  std::mutex calls_mutex;
  std::unordered_map<CallId, RequestId> calls;

  [[nodiscard]] Evidence read(HttpOutcome outcome) const {
    const Config& config = catalog.config();
    return read_http_answer(std::move(outcome), {.depth = config.limits.json_depth}, config.secrets);
  }
  void finish(CallId id, HttpOutcome outcome) {
    {
      const std::lock_guard lock(calls_mutex);
      calls.erase(id);
    }
    const std::lock_guard lock(reporting);
    if (!stopped) sink.finished(id, read(std::move(outcome)));
  }
  void late(CallId id, HttpOutcome outcome) {
    const std::lock_guard lock(reporting);
    if (!stopped) sink.late(id, read(std::move(outcome)));
  }
};

class HttpTools final : public Transport {
 public:
  HttpTools(const Clock& clock, const Catalog& catalog, HttpClient& client, CallSink& sink)
      : clock_(clock), client_(client), desk_(std::make_shared<Desk>(catalog, sink)) {}
  ~HttpTools() override { stop(); }

  void start(Call call) override {
    const ServerConfig* server = desk_->catalog.server(call.server);
    if (!server) return refuse(call.id, "no server of this name is configured; nothing sent");
    HttpCallbacks callbacks;
    callbacks.done = [desk = desk_, id = call.id](HttpOutcome outcome) {
      desk->finish(id, std::move(outcome));
    };
    if (call.linger.count() > 0)
      callbacks.late = [desk = desk_, id = call.id](HttpOutcome outcome) {
        desk->late(id, std::move(outcome));
      };
    const CallId id = call.id;
    HttpRequest request = request_of(call, *server, desk_->catalog.config().limits);
    // The lock keeps done() from looking for the call before it is noted.
    const std::lock_guard lock(desk_->calls_mutex);
    desk_->calls.insert_or_assign(id, client_.start(std::move(request), std::move(callbacks)));
  }

  void cancel(CallId id) override {
    const std::lock_guard lock(desk_->calls_mutex);
    if (const auto found = desk_->calls.find(id); found != desk_->calls.end()) client_.cancel(found->second);
  }

  void stop() override {
    {
      const std::lock_guard lock(desk_->reporting);
      desk_->stopped = true;
    }
    const std::lock_guard lock(desk_->calls_mutex);
    for (const auto& [call, request] : desk_->calls) client_.cancel(request);
    desk_->calls.clear();
  }

 private:
  void refuse(CallId id, std::string why) {
    HttpOutcome outcome;
    outcome.failure = Failure::address_refused;
    outcome.detail = std::move(why);
    client_.at(clock_.now(), [desk = desk_, id, outcome = std::move(outcome)] { desk->finish(id, outcome); });
  }

  const Clock& clock_;
  HttpClient& client_;
  std::shared_ptr<Desk> desk_;
};

}  // namespace

std::unique_ptr<Transport> make_http_tools(const Clock& clock, const Catalog& catalog, HttpClient& client,
                                           CallSink& sink) {
  return std::make_unique<HttpTools>(clock, catalog, client, sink);
}

}  // namespace holdfast::tools
