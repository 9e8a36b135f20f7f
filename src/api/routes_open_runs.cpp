// Open runs: an agent adds steps as it decides, and says when it is done.
#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"
#include "api/waiting.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"

namespace holdfast::api {
namespace {

bool still_going(const run::Step& step) {
  return step.status == run::StepStatus::pending || step.status == run::StepStatus::running ||
         step.status == run::StepStatus::waiting;
}

std::optional<std::size_t> index_of(const run::Run& run, std::string_view step_id) {
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (run.steps[i].spec.id == step_id) return i;
  }
  return std::nullopt;
}

Error step_not_found(std::string_view id) {
  return Error{"step_not_found", "the run has no step " + std::string(id.substr(0, 128)), ""};
}

/// What an accepted step's request keeps while it waits for the outcome.
struct AddedState {
  std::string step_id;
  int status = 201;
  std::optional<Instant> until;
};

/// What an operator does to somebody else's run is written into the audit log before it is done.
Result<void> note_foreign(const Service& service, const http::Request& request, std::string action) {
  const http::Identity& by = request.identity;
  if (!by.operate || by.name.empty()) return {};
  const auto run = find_run(service, request);
  if (!run) return std::unexpected(run.error());
  if ((*run)->owner == by.name) return {};
  return service.commands.note(who(by), std::move(action), (*run)->id, "");
}

/// Posts the step; the state says which step to wait for and how to answer.
Result<AddedState> add_step(const Service& service, const http::Request& request,
                            std::optional<Duration> wait) {
  const auto body = read_body(request, service.catalog.config().limits.json_depth);
  if (!body) return std::unexpected(body.error());
  const json::Value* id = (*body)->root.find("id");
  if (!id || !id->is(json::Kind::string) || !is_name(id->text())) {
    return std::unexpected(Error{
        "bad_submission", "id must be a name of letters, digits, '_', '.' and '-', at most 128", "/id"});
  }
  const std::string& run_id = request.parameters.at("id");
  if (!is_run_id(run_id)) return std::unexpected(run_not_found(run_id));
  auto bind = [body = *body, context = service.plan_context()](const run::Run& run) {
    return run::plan_step(body->root, run, context);
  };
  if (const auto noted = note_foreign(service, request, "step"); !noted) return std::unexpected(noted.error());
  AddedState state{.step_id = id->text()};
  const auto added = service.commands.add_step(run_id, owner_scope(request.identity), state.step_id,
                                               run::step_digest((*body)->root), std::move(bind));
  if (!added) return std::unexpected(added.error());
  state.status = added->replayed ? 200 : 201;
  if (wait && wait->count() > 0) state.until = service.clock.now() + *wait;
  return state;
}

http::Outcome post_step(const Service& service, http::Request& request) {
  if (auto ok = check_query(request, {"wait"}); !ok) return failure(ok.error());
  const AddedState* kept = request.state ? std::any_cast<AddedState>(request.state) : nullptr;
  AddedState state;
  if (kept) {
    state = *kept;
  } else {
    const auto wait = read_wait(request);
    if (!wait) return failure(wait.error());
    auto added = add_step(service, request, *wait);
    if (!added) return failure(added.error());
    state = std::move(*added);
    if (request.state) *request.state = state;
  }
  request.watch(request.parameters.at("id"));
  const auto run = find_run(service, request);
  if (!run) return failure(run.error());
  const auto index = index_of(**run, state.step_id);
  if (!index) return failure(step_not_found(state.step_id));
  const Instant now = service.clock.now();
  if (still_going((*run)->steps[*index]) && state.until && *state.until > now && !request.waited_out)
    return http::Park{*state.until};
  http::Response response = json_response(added_step_json(**run, *index, now), state.status);
  response.headers.emplace_back("Location", "/v1/runs/" + (*run)->id + "/steps/" + state.step_id);
  if (state.status == 200) response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

http::Outcome get_step(const Service& service, http::Request& request) {
  if (auto ok = check_query(request, {"wait"}); !ok) return failure(ok.error());
  const auto wait = read_wait(request);
  if (!wait) return failure(wait.error());
  request.watch(request.parameters.at("id"));
  const auto run = find_run(service, request);
  if (!run) return failure(run.error());
  const auto index = index_of(**run, request.parameters.at("step"));
  if (!index) return failure(step_not_found(request.parameters.at("step")));
  const Instant now = service.clock.now();
  if (still_going((*run)->steps[*index])) {
    if (const auto until = wait_until(request, *wait, now)) return http::Park{*until};
  }
  return json_response(step_json(**run, *index, now));
}

struct Finish {
  run::RunStatus status = run::RunStatus::succeeded;
  std::string result, reason, digest;
};

Result<Finish> read_finish(const http::Request& request, std::size_t depth) {
  const auto body = read_body(request, depth);
  if (!body) return std::unexpected(body.error());
  const json::Value& root = (*body)->root;
  if (auto ok = check_members(root, {"status", "result", "reason"}); !ok) return std::unexpected(ok.error());
  const auto status = read_text(root, "status");
  if (!status || (*status != "succeeded" && *status != "failed")) {
    return std::unexpected(Error{"bad_request", "status must be succeeded or failed", "/status"});
  }
  Finish finish;
  finish.status = *status == "succeeded" ? run::RunStatus::succeeded : run::RunStatus::failed;
  auto reason = read_text(root, "reason");
  if (!reason) return std::unexpected(reason.error());
  finish.reason = std::move(*reason);
  if (const json::Value* result = root.find("result")) finish.result = std::string(result->raw);
  finish.digest = sha256_hex(json::canonical(root));
  return finish;
}

http::Outcome finish_run(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {}); !ok) return failure(ok.error());
  auto finish = read_finish(request, service.catalog.config().limits.json_depth);
  if (!finish) return failure(finish.error());
  const std::string& id = request.parameters.at("id");
  if (!is_run_id(id)) return failure(run_not_found(id));
  if (const auto noted = note_foreign(service, request, "finish"); !noted) return failure(noted.error());
  const auto done =
      service.commands.finish(id, owner_scope(request.identity), finish->status, std::move(finish->result),
                              std::move(finish->reason), std::move(finish->digest));
  if (!done) return failure(done.error());
  return run_response(service, request);
}

}  // namespace

void add_open_run_routes(http::Server& server, const Service& service, http::Access access) {
  server.route("POST", "/v1/runs/{id}/steps", access,
               [&service](http::Request& r) { return post_step(service, r); });
  server.route("GET", "/v1/runs/{id}/steps/{step}", access,
               [&service](http::Request& r) { return get_step(service, r); });
  server.route("POST", "/v1/runs/{id}/finish", access,
               [&service](http::Request& r) { return finish_run(service, r); });
}

}  // namespace holdfast::api
