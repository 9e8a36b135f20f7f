#pragma once
// Values with anything in every member, and what makes two of them the same.
#include <rapidcheck.h>

#include "support.h"

namespace holdfast::ledger::test {

inline std::string any_text() {
  return *rc::gen::container<std::string>(
      rc::gen::weightedOneOf<char>({{8, rc::gen::inRange<char>('a', 'z')},
                                    {1, rc::gen::just('\0')},
                                    {1, rc::gen::element('\'', '"', ',', '\n')}}));
}
template <class I>
I any_number() {
  return *rc::gen::inRange<I>(0, std::numeric_limits<I>::max());
}
inline std::uint32_t any_count() {
  return any_number<std::uint32_t>();
}
inline bool any_bool() {
  return *rc::gen::arbitrary<bool>();
}
inline Instant any_instant() {
  return Instant{*rc::gen::inRange<std::int64_t>(0, kEndOfTime.ms)};
}
inline std::optional<Instant> maybe_instant() {
  return any_bool() ? std::optional(any_instant()) : std::nullopt;
}
inline Duration any_duration() {
  return Duration{*rc::gen::inRange<std::int64_t>(0, kLongestDuration.count())};
}
template <class E>
E any_of(E last) {
  return static_cast<E>(*rc::gen::inRange(0, static_cast<int>(last) + 1));
}
inline Reason any_reason() {
  return any_of(Reason::deadline_in_flight);
}
inline std::vector<std::uint32_t> any_indices() {
  return *rc::gen::resize(
      12, rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 4'000'000'000u)));
}
inline run::Wait any_wait() {
  return {any_of(run::WaitFor::client), maybe_instant()};
}

inline run::Write any_write() {
  run::Write w;
  w.key = any_text();
  w.state = any_of(run::WriteState::unknown);
  w.request = {any_text(), any_text()};
  w.keyed = any_bool();
  w.first_sent_at = maybe_instant();
  w.last_sent_at = maybe_instant();
  w.unknown_since = maybe_instant();
  w.resolution = any_of(run::Resolution::evidence);
  w.resolution_note = any_text();
  w.resolved_by = any_text();
  w.resolved_at = maybe_instant();
  w.open = any_bool();
  return w;
}

inline run::StepSpec any_spec() {
  run::StepSpec s;
  for (std::string* text : {&s.id, &s.server, &s.tool, &s.target, &s.args, &s.key, &s.digest})
    *text = any_text();
  s.after = any_indices();
  if (any_bool()) s.deadline = any_duration();
  if (any_bool()) s.max_attempts = any_count();
  s.on_failure = any_of(run::OnFailure::proceed);
  s.on_circuit_open = any_of(run::OnCircuitOpen::fail);
  return s;
}

/// Changes what may change after the insert.
inline void fill_state(run::Step& s) {
  for (std::string* text : {&s.target, &s.detail, &s.advice, &s.result, &s.doubt_detail, &s.once_rows})
    *text = any_text();
  for (std::uint32_t* count : {&s.max_attempts, &s.attempts, &s.rows, &s.checks, &s.crashes})
    *count = any_count();
  for (bool* flag : {&s.degraded, &s.hinted_wait_used, &s.session_repaired, &s.ordered}) *flag = any_bool();
  s.effect = any_of(Effect::write);
  s.status = any_of(run::StepStatus::cancelled);
  s.reason = any_reason();
  s.doubt = any_reason();
  s.wait = any_wait();
  s.next_check = maybe_instant();
  if (s.effect == Effect::write && (s.write || any_bool())) s.write = any_write();
  if (s.effect == Effect::read) s.write.reset();
}

inline void fill_state(run::Run& r) {
  for (std::string* text : {&r.detail, &r.warnings, &r.result, &r.cancel_reason, &r.finish_digest})
    *text = any_text();
  r.status = any_of(run::RunStatus::cancelled);
  r.reason = any_reason();
  r.wait = any_wait();
  r.started_at = maybe_instant();
  r.finished_at = maybe_instant();
  r.deadline = any_instant();
  r.retry_spent = any_count();
  r.cancel_requested = any_bool();
  r.last_event = any_number<std::int64_t>();
}

inline run::Run any_run(std::uint64_t n) {
  run::Run r;
  r.id = run_id(n);
  for (std::string* text : {&r.owner, &r.submit_digest, &r.name, &r.labels, &r.result_template})
    *text = any_text();
  if (any_bool()) r.submit_key = "key-" + std::to_string(n);
  r.mode = any_of(run::Mode::open);
  r.created_at = any_instant();
  r.retry_limit = any_count();
  fill_state(r);
  const int steps = *rc::gen::inRange(0, 4);
  for (int i = 0; i < steps; ++i) {
    run::Step& step = r.steps.emplace_back();
    step.spec = any_spec();
    fill_state(step);
  }
  return r;
}

inline run::Attempt any_attempt(std::uint32_t step, std::uint32_t n) {
  run::Attempt a;
  a.step = step;
  a.n = n;
  a.kind = any_of(AttemptKind::probe);
  a.counted = any_bool();
  a.started_at = any_instant();
  a.deadline = any_duration();
  a.clipped = any_bool();
  a.finished_at = maybe_instant();
  a.delivery = any_of(Delivery::answered);
  a.phase = any_of(Phase::parsed);
  a.verdict = any_of(Verdict::landed);
  a.klass = any_of(AttemptClass::crashed);
  a.row = any_text();
  a.late = any_bool();
  a.late_detail = any_text();
  a.http_status = *rc::gen::inRange(0, 1000);
  if (any_bool()) a.rpc_code = -*rc::gen::inRange<std::int64_t>(0, 40'000);
  a.detail = any_text();
  a.bytes_sent = any_number<std::uint64_t>() >> 1;
  a.bytes_received = any_number<std::uint64_t>() >> 1;
  return a;
}

inline void same(const run::Attempt& a, const run::Attempt& b) {
  CHECK(std::tie(a.run_seq, a.step, a.n, a.kind, a.counted, a.started_at, a.deadline, a.clipped,
                 a.finished_at, a.delivery, a.phase) == std::tie(b.run_seq, b.step, b.n, b.kind, b.counted,
                                                                 b.started_at, b.deadline, b.clipped,
                                                                 b.finished_at, b.delivery, b.phase));
  CHECK(std::tie(a.verdict, a.klass, a.row, a.late, a.late_detail, a.http_status, a.rpc_code, a.detail,
                 a.bytes_sent, a.bytes_received) == std::tie(b.verdict, b.klass, b.row, b.late, b.late_detail,
                                                             b.http_status, b.rpc_code, b.detail,
                                                             b.bytes_sent, b.bytes_received));
}

inline void same(const run::Write& a, const run::Write& b) {
  CHECK(std::tie(a.key, a.state, a.request.head, a.request.body, a.keyed, a.first_sent_at, a.last_sent_at,
                 a.unknown_since, a.resolution, a.resolution_note, a.resolved_by, a.resolved_at, a.open) ==
        std::tie(b.key, b.state, b.request.head, b.request.body, b.keyed, b.first_sent_at, b.last_sent_at,
                 b.unknown_since, b.resolution, b.resolution_note, b.resolved_by, b.resolved_at, b.open));
}

inline void same(const run::Step& a, const run::Step& b) {
  const run::StepSpec& x = a.spec;
  const run::StepSpec& y = b.spec;
  CHECK(std::tie(x.id, x.server, x.tool, x.target, x.args, x.after, x.deadline, x.max_attempts, x.on_failure,
                 x.on_circuit_open, x.key,
                 x.digest) == std::tie(y.id, y.server, y.tool, y.target, y.args, y.after, y.deadline,
                                       y.max_attempts, y.on_failure, y.on_circuit_open, y.key, y.digest));
  CHECK(std::tie(a.effect, a.target, a.max_attempts, a.status, a.reason, a.detail, a.advice, a.attempts,
                 a.rows, a.wait, a.result,
                 a.degraded) == std::tie(b.effect, b.target, b.max_attempts, b.status, b.reason, b.detail,
                                         b.advice, b.attempts, b.rows, b.wait, b.result, b.degraded));
  CHECK(std::tie(a.doubt, a.doubt_detail, a.hinted_wait_used, a.session_repaired, a.ordered, a.once_rows,
                 a.checks, a.next_check, a.crashes) == std::tie(b.doubt, b.doubt_detail, b.hinted_wait_used,
                                                                b.session_repaired, b.ordered, b.once_rows,
                                                                b.checks, b.next_check, b.crashes));
  REQUIRE(a.write.has_value() == b.write.has_value());
  if (a.write) same(*a.write, *b.write);
}

inline void same(const run::Run& a, const run::Run& b) {
  CHECK(std::tie(a.seq, a.id, a.owner, a.submit_key, a.submit_digest, a.name, a.mode, a.status, a.reason,
                 a.detail, a.wait, a.created_at, a.started_at, a.finished_at, a.deadline) ==
        std::tie(b.seq, b.id, b.owner, b.submit_key, b.submit_digest, b.name, b.mode, b.status, b.reason,
                 b.detail, b.wait, b.created_at, b.started_at, b.finished_at, b.deadline));
  CHECK(std::tie(a.retry_limit, a.retry_spent, a.labels, a.warnings, a.result, a.result_template,
                 a.cancel_requested, a.cancel_reason, a.finish_digest, a.last_event) ==
        std::tie(b.retry_limit, b.retry_spent, b.labels, b.warnings, b.result, b.result_template,
                 b.cancel_requested, b.cancel_reason, b.finish_digest, b.last_event));
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) same(a.steps[i], b.steps[i]);
}

}  // namespace holdfast::ledger::test
