// May a call leave, and what is recorded before it does.
#include <algorithm>

#include "core/canary.h"
#include "holdfast/run/machine.h"
#include "run/machine_detail.h"

namespace holdfast::run {

namespace {

/// Since when the tool may know the step's key. Doubt without a recorded send comes with a restored backup: then the key may be as old as the run.
std::optional<Instant> earliest_send(const Run& run, const Step& step) {
  if (step.write && step.write->first_sent_at) return step.write->first_sent_at;
  return in_doubt(step) ? std::optional<Instant>(run.created_at) : std::nullopt;
}

}  // namespace

Attempt begin(Turn& turn, std::uint32_t index, AttemptKind kind, const CallDeadline& deadline) {
  Step& step = turn.run.steps[index];
  Attempt attempt;
  attempt.run_seq = turn.run.seq;
  attempt.step = index;
  attempt.n = ++step.rows;
  attempt.kind = kind;
  attempt.started_at = turn.now;
  attempt.deadline = deadline.span;
  attempt.clipped = deadline.clipped;
  attempt.counted = (kind == AttemptKind::call || kind == AttemptKind::probe) && !step.ordered;
  step.in_flight = true;
  step.in_flight_n = attempt.n;
  step.in_flight_kind = kind;
  step.sent_at = turn.now;
  turn.changes.touch(index);
  if (kind == AttemptKind::check) return attempt;
  step.status = StepStatus::running;
  step.wait = {};
  if (kind == AttemptKind::fallback) return attempt;
  step.reason = Reason::none;
  step.advice.clear();
  if (attempt.counted && ++step.attempts > 1 && !canary(Canary::budget_debited_after_the_send)) {
    ++turn.run.retry_spent;
    turn.changes.run = true;
  }
  if (step.effect == Effect::write) {
    Write& write = ensure_write(turn.run, index);
    if (!write.first_sent_at) write.first_sent_at = earliest_send(turn.run, step).value_or(turn.now);
    write.last_sent_at = turn.now;
    if (write.state != WriteState::landed) write.state = WriteState::dispatched;
  }
  std::string data = "{\"attempt\":" + std::to_string(attempt.n) + "}";
  add_event(turn, "step.dispatched", step.spec.id, std::move(data));
  return attempt;
}

Kind kind_of(const Step& step, const ToolPolicy& policy) {
  if (step.effect == Effect::read) return Kind::read;
  if (canary(Canary::repeat_plain_write) && policy.kind() == Kind::plain) return Kind::read;
  if (policy.effect == Effect::read) return Kind::plain;
  // Frozen without the key: the tool can't recognise these bytes, whatever its rules say by now.
  const bool frozen = step.write && !step.write->request.head.empty();
  if (policy.kind() == Kind::keyed && frozen && !step.write->keyed)
    return policy.check ? Kind::checkable : Kind::plain;
  return policy.kind();
}

Readiness ready(const Run& run, const Step& step, const ToolPolicy& policy, Instant now,
                std::optional<Duration> tool_deadline) {
  Readiness r;
  r.kind = kind_of(step, policy);
  if (step.effect == Effect::read && policy.effect == Effect::write && policy.declared) {
    r.what = Readiness::What::fail;
    r.reason = Reason::bad_arguments;
    r.detail =
        "the tool was a read when the run was submitted and is declared a write now: submit the run again";
    return r;
  }
  const bool doubtful = in_doubt(step) && !canary(Canary::verdict_not_awaited);
  const bool landed = step.write && step.write->state == WriteState::landed;
  const auto first_sent = earliest_send(run, step);
  const bool expired = r.kind == Kind::keyed && first_sent && now - *first_sent > policy.key->retention &&
                       !canary(Canary::key_used_after_retention);
  if (landed && (r.kind != Kind::keyed || expired)) {
    r.what = Readiness::What::fail;
    r.reason = Reason::result_lost;
    r.detail = "the write landed, its result is lost, and asking again needs a key that the tool still knows";
    return r;
  }
  if (expired && doubtful) {
    if (!policy.check) {
      r.what = Readiness::What::doubt;
      r.reason = Reason::key_expired;
      r.detail = "the key is older than the " + format_duration(policy.key->retention) +
                 " for which the tool keeps it";
      return r;
    }
    r.kind = Kind::checkable;
  }
  if (doubtful && r.kind == Kind::checkable) {
    r.what = Readiness::What::check;
    return r;
  }
  if (doubtful && r.kind == Kind::plain) {
    r.what = Readiness::What::doubt;
    r.reason = step.doubt;
    r.detail = step.doubt_detail;
    return r;
  }
  if (step.attempts > 0 && !step.ordered && run.retry_spent >= run.retry_limit) {
    r.what = Readiness::What::fail;
    r.reason = Reason::retry_budget_exhausted;
    r.detail = "the run's retry budget of " + std::to_string(run.retry_limit) +
               " is spent; the last attempt: " + step.detail;
    return r;
  }
  const Duration allowed = tool_deadline.value_or(policy.deadline);
  const Duration own = step.spec.deadline ? std::min(*step.spec.deadline, allowed) : allowed;
  const Duration left = run.deadline - now;
  if (!enough_time(r.kind, own, left)) {
    r.what = Readiness::What::fail;
    r.reason = Reason::no_time_left;
    r.detail = "a write with a deadline of " + format_duration(own) + " is not started with " +
               format_duration(left) + " left of the run's deadline";
  }
  return r;
}

}  // namespace holdfast::run
