#include "api/cursor.h"
#include "api/hub.h"
#include "api/later.h"
#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"
#include "api/waiting.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"

namespace holdfast::api {
namespace {

constexpr std::size_t kPageBytes = 1 << 20;  // a longer page ends early; its cursor goes on
constexpr std::uint32_t kMostInPortion = 16;
constexpr std::size_t kSmallRun = 16 * 1024;  // bytes in memory; a larger one takes too long to render at a glance

/// The submit key: none, or exactly one that is well-formed.
Result<std::string> submit_key(const http::Request& request) {
  const auto [first, last] = request.headers.equal_range("idempotency-key");
  if (first == last) return std::string{};
  if (std::next(first) != last) {
    return std::unexpected(Error{"bad_key", "Idempotency-Key is given more than once; give exactly one", ""});
  }
  if (!is_key(first->second)) {
    return std::unexpected(
        Error{"bad_key", "Idempotency-Key must be 1 to 255 printable ASCII characters, not all blanks", ""});
  }
  return first->second;
}

/// What a request submits: the run, or why it can't be planned.
struct Submission {
  std::string key;
  std::shared_ptr<const Body> body;
  Result<run::Run> planned;
};

Result<Submission> read_submission(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {}); !ok) return std::unexpected(ok.error());
  auto key = submit_key(request);
  if (!key) return std::unexpected(key.error());
  auto body = read_body(request, service.catalog.config().limits.json_depth);
  if (!body) return std::unexpected(body.error());
  auto planned = run::plan((*body)->root, service.plan_context());
  if (planned) {
    planned->owner = request.identity.name;
    planned->submit_key = *key;
  }
  return Submission{std::move(*key), std::move(*body), std::move(planned)};
}

http::Outcome submitted_response(const Service& service, const Result<engine::Submitted>& submitted) {
  if (!submitted) return failure(submitted.error());
  RunPtr run = submitted->run;
  if (!run) {
    auto stored = run_by_id(service, submitted->run_id);
    if (!stored) return failure(stored.error());
    run = std::move(*stored);
  }
  http::Response response =
      json_response(run_json(*run, service.clock.now()), submitted->replayed ? 200 : 201);
  response.headers.emplace_back("Location", "/v1/runs/" + submitted->run_id);
  if (submitted->replayed) response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

using Answer = Later<engine::Submitted>;

std::shared_ptr<Answer> post_submission(http::Server& server, const Service& service, http::Request& request,
                                        run::Run planned) {
  return ask_later<engine::Submitted>(server, request, service.clock.now(), [&](auto answer) {
    service.commands.submit(std::move(planned), std::move(answer));
  });
}

http::Outcome submitted_or_park(const Service& service, const http::Request& request, Answer& answer) {
  return answer_or_park(request, answer,
                        [&](const Result<engine::Submitted>& value) { return submitted_response(service, value); });
}

/// A run that can be planned is given to the engine, and a new one is answered for; what an earlier request made has to be
/// looked up.
std::optional<http::Outcome> glance_submission(http::Server& server, const Service& service, http::Request& request) {
  auto answer = asked_later<engine::Submitted>(request);
  if (!answer) {
    auto submission = read_submission(service, request);
    if (!submission || !submission->planned) return std::nullopt;
    answer = post_submission(server, service, request, std::move(*submission->planned));
  }
  if (answered_with(*answer, [](const engine::Submitted& submitted) { return submitted.run == nullptr; }))
    return std::nullopt;
  return submitted_or_park(service, request, *answer);
}

http::Outcome submit(http::Server& server, const Service& service, http::Request& request) {
  if (const auto answer = asked_later<engine::Submitted>(request)) return submitted_or_park(service, request, *answer);
  auto submission = read_submission(service, request);
  if (!submission) return failure(submission.error());
  if (!submission->planned && !submission->key.empty()) {
    // What was accepted once stays so, also when its deadline has passed or its tools have gone since.
    const auto before = service.commands.replay(request.identity.name, submission->key,
                                                sha256_hex(json::canonical(submission->body->root)));
    if (!before) return failure(before.error());
    if (*before) return submitted_response(service, **before);
  }
  if (!submission->planned) return failure(submission->planned.error());
  const auto answer = post_submission(server, service, request, std::move(*submission->planned));
  return submitted_or_park(service, request, *answer);
}

bool nothing_to_wait_for(const run::Run& run) {
  return run.settled() || run.status == run::RunStatus::unknown;
}

/// A settled run's text, but for the time that is left.
http::Response with_remaining(const LargeAnswers::Text& text, Instant now) {
  http::Response response = json_response(text.before + std::to_string(remaining_ms(text.deadline, now)));
  response.shared_body = text.after;
  return response;
}

/// The answer from what is kept of large ones; nullopt: the ledger has to be asked.
std::optional<http::Response> kept_response(const Service& service, const http::Request& request) {
  const auto kept = service.large.find(request.parameters.at("id"));
  if (!kept.after) return std::nullopt;
  return with_remaining(kept, service.clock.now());
}

http::Outcome large_response(const Service& service, const run::Run& run, LargeAnswers::Ticket ticket, std::string text,
                             Instant now) {
  service.large.was_large(run.id);
  if (!run.settled()) return json_response(std::move(text));
  const std::string mark = "\"remaining_ms\":";
  const std::size_t at = text.find(mark) + mark.size();
  const LargeAnswers::Text kept{.deadline = run.deadline,
                                .before = text.substr(0, at),
                                .after = std::make_shared<const std::string>(text, text.find(',', at))};
  service.large.keep(ticket, run.id, kept);
  return with_remaining(kept, now);
}

/// A moving run's pollers are parked, and a run that has settled lately is told.
std::optional<http::Outcome> glance_run(const Service& service, http::Request& request) {
  if (auto ok = check_query(request, {"wait"}); !ok) return failure(ok.error());
  const auto wait = read_wait(request);
  if (!wait) return failure(wait.error());
  const std::string& id = request.parameters.at("id");
  const Instant now = service.clock.now();
  if (*wait) request.watch(rest_topic(id));
  if (service.known.moving(id)) {
    if (const auto until = wait_until(request, *wait, now)) return http::Park{*until};
  }
  if (auto kept = kept_response(service, request)) return std::move(*kept);
  if (const RunPtr known = service.known.settled(id, kSmallRun)) return json_response(run_json(*known, now));
  return std::nullopt;
}

http::Outcome get_run(const Service& service, http::Request& request) {
  if (auto known = glance_run(service, request)) return std::move(*known);
  const std::optional<Duration> wait = *read_wait(request);  // a wrong one has been answered
  const std::string& id = request.parameters.at("id");
  const Instant now = service.clock.now();
  const auto making = service.large.one_at_a_time(id);
  if (making) {
    if (auto kept = kept_response(service, request)) return std::move(*kept);
  }
  const auto ticket = service.large.before_reading(id);
  const auto run = find_run(service, request);
  if (!run) return failure(run.error());
  if (!nothing_to_wait_for(**run)) {
    if (const auto until = wait_until(request, wait, now)) return http::Park{*until};
  }
  std::string text = run_json(**run, now);
  if (LargeAnswers::is_large(text)) return large_response(service, **run, ticket, std::move(text), now);
  return json_response(std::move(text));
}

Result<ledger::RunFilter> read_filter(const http::Request& request) {
  if (auto ok = check_query(request, {"status", "name", "label", "limit", "cursor"}); !ok)
    return std::unexpected(ok.error());
  ledger::RunFilter filter;
  const auto limit = read_limit(request);
  if (!limit) return std::unexpected(limit.error());
  filter.limit = *limit;
  if (const std::string owner = owner_scope(request.identity); !owner.empty()) filter.owner = owner;
  filter.name = request.query_value("name");
  if (const auto status = request.query_value("status")) {
    filter.status = run::from_word<run::RunStatus>(*status);
    if (!filter.status) {
      return std::unexpected(
          Error{"bad_parameter",
                "status must be one of queued, running, waiting, unknown, succeeded, failed, cancelled", ""});
    }
  }
  const auto [first, last] = request.query.equal_range("label");
  for (auto it = first; it != last; ++it) {
    const auto colon = it->second.find(':');
    if (colon == std::string::npos || colon == 0)
      return std::unexpected(Error{"bad_parameter", "label must be name:value", ""});
    filter.labels.emplace_back(it->second.substr(0, colon), it->second.substr(colon + 1));
  }
  if (const auto cursor = request.query_value("cursor")) {
    const auto numbers = read_cursor('r', 1, *cursor);
    if (!numbers) return std::unexpected(numbers.error());
    if (numbers->front() <= 0)
      return std::unexpected(Error{"bad_cursor", "this cursor was not made by this list", ""});
    filter.before_seq = numbers->front();
  }
  return filter;
}

/// Read and told in portions, so that the memory of a page does not depend on how large the results of 200 runs are; and pages
/// that turned out large are made one at a time.
http::Outcome list_runs(const Service& service, const http::Request& request) {
  auto filter = read_filter(request);
  if (!filter) return failure(filter.error());
  const auto making = service.large.one_at_a_time("lists");
  const std::uint32_t limit = filter->limit;
  const Instant now = service.clock.now();
  std::uint32_t count = 0;
  bool more = true;
  std::string out;
  json::Writer w(out);
  w.begin_object();
  w.name("items");
  w.begin_array();
  for (std::uint32_t portion = 1; more && count < limit && out.size() < kPageBytes; portion = std::min(2 * portion, kMostInPortion)) {
    filter->limit = std::min(portion, limit - count);
    auto runs = service.reader.runs(*filter);
    if (!runs) return failure(runs.error());
    for (run::Run& run : *runs) {
      show_storage(service, run);
      render_run(w, run, now);
      filter->before_seq = run.seq;
    }
    count += static_cast<std::uint32_t>(runs->size());
    more = runs->size() == filter->limit;
  }
  w.end_array();
  w.text_or_null("next_cursor", more ? make_cursor('r', {filter->before_seq}) : "");
  w.end_object();
  if (LargeAnswers::is_large(out)) service.large.was_large("lists");
  return json_response(std::move(out));
}

http::Outcome list_attempts(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {"limit", "cursor"}); !ok) return failure(ok.error());
  const auto limit = read_limit(request);
  if (!limit) return failure(limit.error());
  std::int64_t after_row = 0;
  if (const auto cursor = request.query_value("cursor")) {
    const auto numbers = read_cursor('a', 1, *cursor);
    if (!numbers) return failure(numbers.error());
    after_row = numbers->front();
  }
  const auto run = find_run(service, request);
  if (!run) return failure(run.error());
  const auto rows = service.reader.attempts((*run)->seq, after_row, *limit);
  if (!rows) return failure(rows.error());
  const Instant now = service.clock.now();
  const std::string next =
      rows->size() < *limit ? "" : make_cursor('a', {after_row + static_cast<std::int64_t>(rows->size())});
  return json_response(render_page(
      rows->size(), next, [&](json::Writer& w, std::size_t i) { render_attempt(w, **run, (*rows)[i], now); }));
}

http::Outcome cancel_run(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {}); !ok) return failure(ok.error());
  const auto body = read_body(request, service.catalog.config().limits.json_depth, true);
  if (!body) return failure(body.error());
  if (auto ok = check_members((*body)->root, {"reason"}); !ok) return failure(ok.error());
  auto reason = read_text((*body)->root, "reason");
  if (!reason) return failure(reason.error());
  const std::string& id = request.parameters.at("id");
  if (!is_run_id(id)) return failure(run_not_found(id));
  const auto done =
      service.commands.cancel(id, owner_scope(request.identity), who(request.identity), std::move(*reason));
  if (!done) return failure(done.error());
  return run_response(service, request);
}

}  // namespace

void add_run_routes(http::Server& server, const Service& service, http::Access access) {
  server.route("POST", "/v1/runs", access, [&server, &service](http::Request& r) { return submit(server, service, r); },
               [&server, &service](http::Request& r) { return glance_submission(server, service, r); });
  server.route("GET", "/v1/runs", access, [&service](http::Request& r) { return list_runs(service, r); });
  server.route("GET", "/v1/runs/{id}", access, [&service](http::Request& r) { return get_run(service, r); },
               [&service](http::Request& r) { return glance_run(service, r); });
  server.route("GET", "/v1/runs/{id}/attempts", access,
               [&service](http::Request& r) { return list_attempts(service, r); });
  server.route("POST", "/v1/runs/{id}/cancel", access,
               [&service](http::Request& r) { return cancel_run(service, r); });
}

}  // namespace holdfast::api
