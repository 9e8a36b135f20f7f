// What only operators see: unknown writes with their evidence, breakers, tools, the audit log.
#include <charconv>

#include "api/render.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"

namespace holdfast::api {
namespace {

/// The call whose outcome is in doubt: the last send that may have arrived, else the last call at all.
const run::Attempt* doubtful_call(const std::vector<run::Attempt>& attempts) {
  const run::Attempt* found = nullptr;
  for (const run::Attempt& attempt : attempts) {
    if (attempt.kind != AttemptKind::call && attempt.kind != AttemptKind::probe) continue;
    const bool arrived = attempt.delivery != Delivery::not_sent;
    if (arrived || !found || found->delivery == Delivery::not_sent) found = &attempt;
  }
  return found;
}

void checks_field(json::Writer& w, const std::vector<run::Attempt>& attempts) {
  w.name("checks");
  w.begin_array();
  for (const run::Attempt& attempt : attempts) {
    if (attempt.kind != AttemptKind::check) continue;
    w.begin_object();
    w.field("at", format_rfc3339(attempt.started_at));
    w.text_or_null("class", word(attempt.klass));
    w.text_or_null("detail", attempt.detail);
    w.end_object();
  }
  w.end_array();
}

void late_answers_field(json::Writer& w, const std::vector<run::Attempt>& attempts) {
  w.name("late_answers");
  w.begin_array();
  for (const run::Attempt& attempt : attempts) {
    if (!attempt.late) continue;
    w.begin_object();
    w.field("n", attempt.n);
    w.text_or_null("detail", attempt.late_detail);
    w.end_object();
  }
  w.end_array();
}

void evidence_field(json::Writer& w, const ledger::UnknownEntry& entry, const run::Run& run, Instant now) {
  const run::Attempt* call = doubtful_call(entry.attempts);
  const run::Write& write = *entry.state.write;
  w.name("evidence");
  w.begin_object();
  w.name("attempts");
  w.begin_array();
  for (const run::Attempt& attempt : entry.attempts) render_attempt(w, run, attempt, now);
  w.end_array();
  w.text_or_null("phase", call ? word(call->phase) : std::string_view{});
  w.field("bytes_sent", call ? call->bytes_sent : std::uint64_t{0});
  time_field(w, "first_sent_at", write.first_sent_at);
  time_field(w, "sent_at", write.last_sent_at);
  w.text_or_null("detail", entry.state.doubt_detail.empty() ? entry.state.detail : entry.state.doubt_detail);
  w.field("request_digest", sha256_hex(write.request.head + write.request.body));
  checks_field(w, entry.attempts);
  late_answers_field(w, entry.attempts);
  w.end_object();
}

void resolution_field(json::Writer& w, const run::Write& write) {
  if (write.resolution == run::Resolution::none) return w.null_field("resolution");
  w.name("resolution");
  w.begin_object();
  w.field("verdict", run::word(write.resolution));
  w.text_or_null("by", write.resolved_by);
  w.text_or_null("note", write.resolution_note);
  time_field(w, "at", write.resolved_at);
  w.end_object();
}

/// A sentence that a person can act on.
std::string suggested_check(const run::Step& step, const tools::Catalog& catalog) {
  const tools::ToolConfig* tool = catalog.find(step.spec.server, step.spec.tool);
  const std::string key = step.write ? step.write->key : std::string{};
  if (tool && tool->policy.check) {
    const CheckRule& check = *tool->policy.check;
    return "Call " + check.tool + " on " + (check.server.empty() ? step.spec.server : check.server) +
           " with " + check.args + " (key " + key + "): the write landed if " +
           (check.found.pointer.empty() ? "the answer" : check.found.pointer) +
           (check.found.negate ? " differs from " : " is ") + check.found.value + ".";
  }
  if (tool && tool->policy.key)
    return "Look on " + step.spec.server + " for the request with key " + key + ", target " + step.target +
           ".";
  return "Look on " + step.spec.server + " whether " + step.spec.tool + " took effect on " + step.target +
         " after the time of sending.";
}

void optional_number(json::Writer& w, std::string_view name, bool known, std::int64_t value) {
  w.name(name);
  if (known) {
    w.integer(value);
  } else {
    w.null();
  }
}

std::string decimal(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// The rule of a sized deadline, null for a fixed one. `from_samples` false: the ceiling holds.
void render_rule(json::Writer& w, const ToolPolicy& policy, bool from_samples) {
  if (!policy.sized) return w.null();
  w.begin_object();
  w.raw_field("percentile", decimal(policy.sized->percentile));
  w.raw_field("factor", decimal(policy.sized->factor));
  w.field("floor_ms", static_cast<std::int64_t>(policy.sized->floor.count()));
  w.field("ceiling_ms", static_cast<std::int64_t>(policy.sized->ceiling.count()));
  w.field("samples_needed", samples_needed(*policy.sized, policy.kind()));
  w.field("from_samples", from_samples);
  w.end_object();
}

}  // namespace

void render_unknown(json::Writer& w, const ledger::UnknownEntry& entry, const tools::Catalog& catalog,
                    Instant now) {
  const run::Step& step = entry.state;
  if (!step.write) return w.null();
  run::Run run;  // only what an attempt's row asks of its run: the id, and the step's name at its place
  run.id = entry.run_id;
  run.steps.resize(entry.step + 1);
  run.steps.back().spec.id = step.spec.id;
  const run::Write& write = *step.write;
  const Reason reason = step.doubt != Reason::none ? step.doubt : step.reason;

  w.begin_object();
  w.field("id", write_id(entry.run_id, entry.step));
  w.field("run", entry.run_id);
  w.text_or_null("run_name", entry.run_name);
  w.text_or_null("owner", entry.owner);
  w.field("step", step.spec.id);
  w.field("server", step.spec.server);
  w.field("tool", step.spec.tool);
  w.text_or_null("target", step.target);
  w.text_or_null("key", write.key);
  w.text_or_null("reason", word(reason));
  time_field(w, "since", write.unknown_since);
  optional_number(w, "age_ms", write.unknown_since.has_value(),
                  write.unknown_since ? std::max<std::int64_t>(0, (now - *write.unknown_since).count()) : 0);
  evidence_field(w, entry, run, now);
  w.text_or_null("suggested_check", suggested_check(step, catalog));
  w.field("state", run::word(write.state));
  w.field("open", write.open);
  resolution_field(w, write);
  w.end_object();
}

void render_breaker(json::Writer& w, const Breaker& breaker) {
  w.begin_object();
  w.field("server", breaker.server);
  w.text_or_null("tool", breaker.tool);
  w.field("state", word(breaker.state));
  w.text_or_null("forced", breaker.forced_open ? "open" : "");
  w.text_or_null("by", breaker.by);
  w.text_or_null("why", breaker.why);
  w.field("generation", breaker.generation);
  time_field(w, "since", breaker.since);
  time_field(w, "until", breaker.until);
  w.field("probe", breaker.probe_until.has_value());
  w.text_or_null("last_cause", breaker.last_cause);
  w.end_object();
}

void render_audit(json::Writer& w, const ledger::AuditEntry& entry) {
  w.begin_object();
  w.field("seq", entry.seq);
  w.field("at", format_rfc3339(entry.at));
  w.field("who", entry.who);
  w.field("action", entry.action);
  w.field("subject", entry.subject);
  w.text_or_null("why", entry.why);
  w.raw_field("data", entry.data.empty() ? "{}" : entry.data);
  w.end_object();
}

void render_tool(json::Writer& w, const tools::ToolConfig& tool, const engine::LatencySummary& latency,
                 const engine::Latencies::InForce& deadline) {
  const ToolPolicy& policy = tool.policy;
  const bool measured = latency.samples > 0;
  w.begin_object();
  w.field("server", policy.server);
  w.field("tool", policy.tool);
  w.field("effect", word(policy.effect));
  w.field("kind", word(policy.kind()));
  w.field("deadline_ms", static_cast<std::int64_t>(deadline.deadline.count()));
  w.name("sized");
  render_rule(w, policy, deadline.measured);
  w.field("max_attempts", policy.max_attempts);
  w.name("backoff");
  w.begin_object();
  w.field("base_ms", static_cast<std::int64_t>(policy.backoff.base.count()));
  w.field("cap_ms", static_cast<std::int64_t>(policy.backoff.cap.count()));
  w.end_object();
  w.text_or_null("target", policy.target);
  w.field("single_step", policy.single_step);
  w.field("linger_ms", static_cast<std::int64_t>(policy.linger.count()));
  w.field("breaker", policy.breaker.enabled);
  w.field("has_fallback", policy.fallback.has_value());
  w.name("sources");
  w.begin_object();
  for (const auto& [field, source] : tool.sources) w.field(field, tools::word(source));
  w.end_object();
  w.field("samples", latency.samples);
  w.field("timeouts", latency.timeouts);
  optional_number(w, "p50_ms", measured, latency.p50.value.count());
  optional_number(w, "p95_ms", measured, latency.p95.value.count());
  optional_number(w, "p99_ms", measured, latency.p99.value.count());
  optional_number(w, "suggested_deadline_ms", latency.suggested.has_value(),
                  latency.suggested.value_or(Duration{0}).count());
  w.field("measured", measured);
  w.end_object();
}

}  // namespace holdfast::api
