#include "api/render.h"

#include "holdfast/core/ids.h"
#include "holdfast/run/plan.h"

namespace holdfast::api {
namespace {

void wait_field(json::Writer& w, const run::Wait& wait, bool shown) {
  if (!shown || wait.what == run::WaitFor::none) return w.null_field("waiting");
  w.name("waiting");
  w.begin_object();
  w.field("for", run::word(wait.what));
  time_field(w, "until", wait.until);
  w.end_object();
}

bool needs_person(const run::Run& run) {
  return run.status == run::RunStatus::unknown ||
         (run.status == run::RunStatus::waiting && run.wait.what == run::WaitFor::human);
}

void urls_field(json::Writer& w, std::string_view id) {
  const std::string self = "/v1/runs/" + std::string(id);
  w.name("urls");
  w.begin_object();
  w.field("self", self);
  w.field("events", self + "/events");
  w.field("attempts", self + "/attempts");
  w.field("cancel", self + "/cancel");
  w.end_object();
}

void write_field(json::Writer& w, const run::Run& run, std::size_t index) {
  const auto& write = run.steps[index].write;
  if (!write) return w.null_field("write");
  w.name("write");
  w.begin_object();
  w.field("id", write_id(run.id, index));
  w.text_or_null("key", write->key);
  w.field("state", run::word(write->state));
  w.end_object();
}

std::string attempt_id(const run::Run& run, const run::Attempt& attempt) {
  const std::string_view tail = std::string_view(run.id).substr(std::min<std::size_t>(4, run.id.size()));
  return "at_" + std::string(tail) + "_" + std::to_string(attempt.step) + "_" + std::to_string(attempt.n);
}

}  // namespace

void time_field(json::Writer& w, std::string_view name, const std::optional<Instant>& at) {
  w.name(name);
  if (at) {
    w.string(format_rfc3339(*at));
  } else {
    w.null();
  }
}

namespace {

/// The members of a step.
void step_fields(json::Writer& w, const run::Run& run, std::size_t index, Instant now) {
  const run::Step& step = run.steps[index];
  const bool waits = step.status == run::StepStatus::waiting || step.status == run::StepStatus::unknown;
  w.field("id", step.spec.id);
  w.field("server", step.spec.server);
  w.field("tool", step.spec.tool);
  w.field("effect", word(step.effect));
  w.text_or_null("target", step.target);
  w.field("status", run::word(step.status));
  w.text_or_null("reason", word(step.reason));
  w.text_or_null("detail", step.detail);
  w.text_or_null("advice", step.advice);
  w.field("attempts", step.attempts);
  w.field("max_attempts", step.max_attempts);
  wait_field(w, step.wait, waits);
  w.name("attempt_age_ms");
  if (step.in_flight && step.sent_at) {
    w.integer(std::max<std::int64_t>(0, (now - *step.sent_at).count()));
  } else {
    w.null();
  }
  w.raw_or_null("result", step.result);
  w.field("degraded", step.degraded);
  write_field(w, run, index);
}

}  // namespace

void render_step(json::Writer& w, const run::Run& run, std::size_t index, Instant now) {
  w.begin_object();
  step_fields(w, run, index, now);
  w.end_object();
}

void render_run(json::Writer& w, const run::Run& run, Instant now) {
  w.begin_object();
  w.field("id", run.id);
  w.text_or_null("name", run.name);
  w.text_or_null("owner", run.owner);
  w.field("mode", run::word(run.mode));
  w.field("status", run::word(run.status));
  w.text_or_null("reason", word(run.reason));
  w.text_or_null("detail", run.detail);
  wait_field(w, run.wait, run.status == run::RunStatus::waiting);
  w.field("settled", run.settled());
  w.text_or_null("needs", needs_person(run) ? "human" : "");
  w.field("created_at", format_rfc3339(run.created_at));
  time_field(w, "started_at", run.started_at);
  time_field(w, "finished_at", run.finished_at);
  w.field("deadline", format_rfc3339(run.deadline));
  w.field("remaining_ms", remaining_ms(run.deadline, now));
  w.name("retry_budget");
  w.begin_object();
  w.field("limit", run.retry_limit);
  w.field("spent", run.retry_spent);
  w.end_object();
  w.raw_field("labels", run.labels.empty() ? "{}" : run.labels);
  w.raw_field("warnings", run.warnings.empty() ? "[]" : run.warnings);
  w.name("steps");
  w.begin_array();
  for (std::size_t i = 0; i < run.steps.size(); ++i) render_step(w, run, i, now);
  w.end_array();
  w.raw_or_null("result", run.result);
  urls_field(w, run.id);
  w.end_object();
}

void render_attempt(json::Writer& w, const run::Run& run, const run::Attempt& attempt, Instant now) {
  const bool named = attempt.step < run.steps.size();
  w.begin_object();
  w.field("id", attempt_id(run, attempt));
  w.text_or_null("step", named ? std::string_view(run.steps[attempt.step].spec.id) : std::string_view{});
  w.field("n", attempt.n);
  w.field("started_at", format_rfc3339(attempt.started_at));
  w.field("deadline_ms", static_cast<std::int64_t>(attempt.deadline.count()));
  w.field("waited_ms",
          std::max<std::int64_t>(0, (attempt.finished_at.value_or(now) - attempt.started_at).count()));
  w.field("kind", word(attempt.kind));
  w.field("delivery", word(attempt.delivery));
  w.field("phase", word(attempt.phase));
  w.text_or_null("verdict", word(attempt.verdict));
  w.text_or_null("class", word(attempt.klass));
  w.field("late", attempt.late);
  w.name("http_status");
  if (attempt.http_status > 0) {
    w.integer(attempt.http_status);
  } else {
    w.null();
  }
  w.name("rpc_code");
  if (attempt.rpc_code) {
    w.integer(*attempt.rpc_code);
  } else {
    w.null();
  }
  w.text_or_null("detail", attempt.detail);
  w.field("bytes_sent", attempt.bytes_sent);
  w.field("bytes_received", attempt.bytes_received);
  w.end_object();
}

void render_event(json::Writer& w, const run::Event& event) {
  w.begin_object();
  w.field("seq", event.seq);
  w.field("at", format_rfc3339(event.at));
  w.field("type", event.type);
  w.text_or_null("step", event.step);
  w.raw_field("data", event.data.empty() ? "{}" : event.data);
  w.end_object();
}

std::string run_json(const run::Run& run, Instant now) {
  std::string out;
  std::size_t bytes = run.result.size() + 1024;
  for (const run::Step& step : run.steps) bytes += step.result.size() + 1024;
  out.reserve(bytes);  // a large result is not copied again and again while the text grows
  json::Writer w(out);
  render_run(w, run, now);
  return out;
}

std::string step_json(const run::Run& run, std::size_t index, Instant now) {
  std::string out;
  out.reserve(run.steps[index].result.size() + 1024);
  json::Writer w(out);
  render_step(w, run, index, now);
  return out;
}

std::string added_step_json(const run::Run& run, std::size_t index, Instant now) {
  std::string out;
  json::Writer w(out);
  w.begin_object();
  step_fields(w, run, index, now);
  w.raw_field("warnings", run::warnings_of(run, run.steps[index].spec.id));
  w.end_object();
  return out;
}

}  // namespace holdfast::api
