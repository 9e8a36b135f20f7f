#include "api/cursor.h"
#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"
#include "holdfast/core/ids.h"

namespace holdfast::api {

Error run_not_found(std::string_view id) {
  return Error{"run_not_found", "there is no run " + std::string(id.substr(0, 64)), ""};
}

Result<RunPtr> run_by_id(const Service& service, const std::string& id) {
  if (!is_run_id(id)) return std::unexpected(run_not_found(id));
  if (RunPtr known = service.known.settled(id)) return known;
  auto found = service.reader.run(id);
  if (!found) return std::unexpected(std::move(found.error()));
  if (!*found) return std::unexpected(run_not_found(id));
  show_storage(service, **found);
  return std::make_shared<const run::Run>(std::move(**found));
}

Result<RunPtr> find_run(const Service& service, const http::Request& request) {
  return run_by_id(service, request.parameters.at("id"));
}

void show_storage(const Service& service, run::Run& run) {
  if (service.commands.storage_ok() || run.settled() || run.status == run::RunStatus::unknown) return;
  run.status = run::RunStatus::waiting;
  run.wait = {run::WaitFor::storage, std::nullopt};
  const auto hold = [&](auto... statuses) {
    bool any = false;
    for (run::Step& step : run.steps) {
      if (((step.status != statuses) && ...)) continue;
      step.status = run::StepStatus::waiting;
      step.wait = run.wait;
      any = true;
    }
    return any;
  };
  if (!hold(run::StepStatus::running, run::StepStatus::waiting)) hold(run::StepStatus::pending);
}

http::Outcome run_response(const Service& service, const http::Request& request) {
  const auto run = find_run(service, request);
  if (!run) return failure(run.error());
  return json_response(run_json(**run, service.clock.now()));
}

http::Response json_response(std::string body, int status) {
  http::Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

Result<Slice> slice(const http::Request& request, char list, std::size_t total) {
  const auto limit = read_limit(request);
  if (!limit) return std::unexpected(limit.error());
  Slice part;
  if (const auto cursor = request.query_value("cursor")) {
    const auto numbers = read_cursor(list, 1, *cursor);
    if (!numbers) return std::unexpected(numbers.error());
    part.begin = std::min(total, static_cast<std::size_t>(std::max<std::int64_t>(0, numbers->front())));
  }
  part.end = std::min(total, part.begin + *limit);
  if (part.end < total) part.next_cursor = make_cursor(list, {static_cast<std::int64_t>(part.end)});
  return part;
}

void add_health_routes(http::Server& server, const Service& service) {
  const auto alive = [](http::Request&) -> http::Outcome { return json_response(R"({"status":"ok"})"); };
  const auto ready = [&service](http::Request&) -> http::Outcome {
    if (service.commands.ready()) return json_response(R"({"status":"ready"})");
    return failure(Error{"not_ready",
                         "nothing can be written now: the storage refuses writes, or the server is stopping",
                         ""});
  };
  server.route("GET", "/healthz", http::Access::open, alive, alive);
  server.route("GET", "/readyz", http::Access::open, ready, ready);
}

void add_client_listener(http::Server& server, const Service& service) {
  add_health_routes(server, service);
  add_error_pages(server);
  add_run_routes(server, service, http::Access::client);
  add_open_run_routes(server, service, http::Access::client);
  add_event_routes(server, service, http::Access::client);
}

void add_admin_listener(http::Server& server, const Service& service) {
  add_health_routes(server, service);
  add_error_pages(server);
  add_run_routes(server, service, http::Access::operate);
  add_open_run_routes(server, service, http::Access::operate);
  add_event_routes(server, service, http::Access::operate);
  add_unknown_routes(server, service);
  add_breaker_routes(server, service);
  add_operator_routes(server, service);
}

}  // namespace holdfast::api
