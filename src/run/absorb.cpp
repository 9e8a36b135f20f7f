// What one observation changes.
#include <algorithm>

#include "core/canary.h"
#include "holdfast/core/json.h"
#include "holdfast/run/machine.h"
#include "run/machine_detail.h"

namespace holdfast::run {

namespace {

constexpr std::size_t kOwnWords = 4096;

/// What the tool said about its error. Under a `success` rule the whole answer is that.
std::string own_words(const Evidence& evidence, const Judgement& judgement) {
  if (!evidence.text.empty() || judgement.klass != AttemptClass::tool_error) return evidence.text;
  std::size_t end = std::min(evidence.result.size(), kOwnWords);
  while (end > 0 && end < evidence.result.size() && (evidence.result[end] & '\xc0') == '\x80') --end;
  return evidence.result.substr(0, end);
}

/// The words for step and run: what was seen, and the tool's own text.
std::string sentence(const Evidence& evidence, const Judgement& judgement) {
  std::string text = evidence.detail;
  const std::string words = own_words(evidence, judgement);
  if (!words.empty() && text.find(words) == std::string::npos) text += (text.empty() ? "" : ": ") + words;
  if (!evidence.location.empty() && text.find(evidence.location) == std::string::npos)
    text += " (Location: " + evidence.location + ")";
  return text;
}

bool used_once(Step& step, std::string_view row) {
  std::size_t at = step.once_rows.find(row);
  while (at != std::string::npos) {
    const std::size_t end = at + row.size();
    if ((at == 0 || step.once_rows[at - 1] == ' ') &&
        (end == step.once_rows.size() || step.once_rows[end] == ' '))
      return true;
    at = step.once_rows.find(row, end);
  }
  if (!step.once_rows.empty()) step.once_rows += ' ';
  step.once_rows += row;
  return false;
}

void start_checking(Turn& turn, std::uint32_t index) {
  Step& step = turn.run.steps[index];
  step.checks = 0;
  step.next_check = turn.now;
  step.status = StepStatus::waiting;
  step.wait = Wait{WaitFor::backoff, turn.now};
  turn.changes.touch(index);
}

/// The attempt was refused or never left, and nothing says so about an earlier one.
void stop_or_keep_doubt(Turn& turn, std::uint32_t index, const ToolPolicy& policy, Reason reason,
                        const std::string& detail) {
  const Step& step = turn.run.steps[index];
  if (!in_doubt(step)) {
    const bool by_the_tool = reason == Reason::tool_refused || reason == Reason::tool_error ||
                             reason == Reason::tool_not_found || reason == Reason::bad_arguments ||
                             reason == Reason::result_too_large;
    return by_the_tool ? fail(turn, index, reason, detail) : give_up(turn, index, policy, reason, detail);
  }
  if (policy.check) return start_checking(turn, index);
  doubt(turn, index, step.doubt, step.doubt_detail);
}

void rate_limited(Turn& turn, std::uint32_t index, const ToolPolicy& policy, const Evidence& evidence,
                  const std::string& last) {
  Step& step = turn.run.steps[index];
  const auto asked = retry_after_wait(evidence.retry_after, evidence.date, turn.now);
  if (step.hinted_wait_used && !in_doubt(step))
    return give_up(turn, index, policy, Reason::rate_limited,
                   "limited again after the wait that the server asked for; " + last,
                   asked ? std::optional<Instant>(turn.now + *asked) : std::nullopt);
  if (!asked)
    return try_again(turn, index, policy, WaitFor::backoff,
                     backoff_wait(policy.backoff, std::max(1u, step.attempts), turn.random), last);
  step.hinted_wait_used = true;
  try_again(turn, index, policy, WaitFor::retry_after, *asked, last);
}

void act(Turn& turn, std::uint32_t index, const Evidence& evidence, const Judgement& judgement,
         const ToolPolicy& policy) {
  Step& step = turn.run.steps[index];
  const std::string seen = sentence(evidence, judgement);
  const auto backoff = [&] { return backoff_wait(policy.backoff, std::max(1u, step.attempts), turn.random); };
  switch (judgement.action) {
    case Action::done:
      if (step.effect == Effect::write) settle_write(turn, index, WriteState::landed, "tool");
      return succeed(turn, index, evidence.result);
    case Action::retry:
    case Action::resend:
      return try_again(turn, index, policy, WaitFor::backoff, backoff(), seen);
    case Action::retry_once:
    case Action::resend_once:
      if (!used_once(step, judgement.row))
        return try_again(turn, index, policy, WaitFor::backoff, backoff(), seen);
      return stop_or_keep_doubt(
          turn, index, policy,
          judgement.failure == Reason::none ? Reason::attempts_exhausted : judgement.failure, seen);
    case Action::wait_once:
      return rate_limited(turn, index, policy, evidence, seen);
    case Action::wait_resend: {
      const auto asked = retry_after_wait(evidence.retry_after, evidence.date, turn.now);
      return try_again(turn, index, policy, asked ? WaitFor::retry_after : WaitFor::backoff,
                       asked ? *asked : backoff(), seen);
    }
    case Action::check:
      if (in_doubt(step)) return start_checking(turn, index);
      return stop_or_keep_doubt(
          turn, index, policy,
          judgement.failure == Reason::none ? Reason::attempts_exhausted : judgement.failure, seen);
    case Action::unknown:
      if (!in_doubt(step))
        return fail(turn, index, Reason::result_lost,
                    seen);  // it landed: the join knows more than this attempt
      return doubt(turn, index, step.doubt, step.doubt_detail);
    case Action::stop:
      return stop_or_keep_doubt(turn, index, policy, judgement.failure, seen);
    case Action::result_lost:
      settle_write(turn, index, WriteState::landed, "tool");
      return fail(turn, index, Reason::result_lost, seen);
    case Action::result_too_large:
      if (step.effect == Effect::write) settle_write(turn, index, WriteState::landed, "tool");
      return fail(turn, index, Reason::result_too_large, seen);
    case Action::repair_session:
      if (step.session_repaired) return stop_or_keep_doubt(turn, index, policy, Reason::tool_refused, seen);
      step.session_repaired = true;
      step.ordered = true;  // the one repeat is a row and does not count
      step.status = StepStatus::pending;
      step.wait = {};
      return turn.changes.touch(index);
  }
}

/// A verdict on the write before what to do about it: the join of this attempt with the earlier ones.
void join(Turn& turn, std::uint32_t index, const Evidence& evidence, const Judgement& judgement,
          const Attempt& attempt) {
  Step& step = turn.run.steps[index];
  if (step.effect != Effect::write) return;
  Write& write = ensure_write(turn.run, index);
  switch (judgement.verdict) {
    case Verdict::ambiguous:
      write.last_sent_at = turn.now;
      if (canary(Canary::doubt_taken_for_landed)) return land(step, write);
      if (write.state == WriteState::landed) return;
      if (step.doubt == Reason::none) {
        step.doubt = attempt.clipped && evidence.failure == Failure::timeout ? Reason::deadline_in_flight
                                                                             : judgement.doubt;
        if (step.doubt == Reason::none) step.doubt = Reason::ambiguous_answer;
        step.doubt_detail = sentence(evidence, judgement);
      }
      return;
    case Verdict::landed:
    case Verdict::ok:
      return land(step, write);
    case Verdict::not_sent:
    case Verdict::refused:
      if (canary(Canary::forget_doubt)) step.doubt = Reason::none;
      if (canary(Canary::refusal_taken_for_doubt)) step.doubt = Reason::ambiguous_answer;
      // Nothing of this key was ever delivered: its retention has not begun.
      if (!in_doubt(step) && write.state != WriteState::landed) write.first_sent_at.reset();
      return;
    case Verdict::none:
      return;
  }
}

}  // namespace

void record(Attempt& attempt, const Evidence& evidence, const Judgement& judgement, Instant now) {
  attempt.finished_at = now;
  attempt.delivery = judgement.delivery;
  attempt.phase = evidence.phase;
  attempt.verdict = judgement.verdict;
  if (canary(Canary::doubt_not_recorded) && judgement.verdict == Verdict::ambiguous) attempt.verdict = Verdict::none;
  attempt.klass = judgement.klass;
  attempt.row = judgement.row;
  attempt.http_status = evidence.http_status;
  attempt.rpc_code = evidence.rpc_code;
  // What a success says is its result, and kept there.
  const bool said_elsewhere = judgement.klass == AttemptClass::ok;
  attempt.detail = evidence.detail.empty() && !said_elsewhere ? evidence.text : evidence.detail;
  attempt.bytes_sent = evidence.bytes_sent;
  attempt.bytes_received = evidence.bytes_received;
}

void land(Step& step, Write& write) {
  step.doubt = Reason::none;
  step.doubt_detail.clear();
  if (write.state != WriteState::landed) write.state = WriteState::landed;
}

void give_up(Turn& turn, std::uint32_t index, const ToolPolicy& policy, Reason reason, std::string detail,
             std::optional<Instant> when) {
  Step& step = turn.run.steps[index];
  if (reason == Reason::retry_budget_exhausted) ++turn.changes.over_budget;
  if (step.effect == Effect::write || !policy.fallback)
    return fail(turn, index, reason, std::move(detail), when);
  step.status = StepStatus::waiting;
  step.wait = {};
  step.reason = reason;
  step.detail = std::move(detail);
  step.advice = advice_of(step, reason, when);
  turn.changes.touch(index);
}

namespace {

std::string with_numbers(const Step& step, const std::string& last) {
  std::string text =
      std::to_string(step.attempts) + " of " + std::to_string(step.max_attempts) + " attempts made";
  if (!last.empty()) text += "; the last one: " + last;
  return text;
}

}  // namespace

/// Again after a wait, as attempts, budget and time allow.
void try_again(Turn& turn, std::uint32_t index, const ToolPolicy& policy, WaitFor what, Duration wait,
               const std::string& last) {
  Step& step = turn.run.steps[index];
  if (step.attempts >= step.max_attempts + (canary(Canary::one_attempt_too_many) ? 1 : 0)) {
    const bool crashes_only = step.crashes >= step.attempts && step.crashes > 0;
    return give_up(turn, index, policy, crashes_only ? Reason::crash_loop : Reason::attempts_exhausted,
                   crashes_only ? "ended by a crash " + std::to_string(step.crashes) + " times"
                                : with_numbers(step, last));
  }
  if (turn.run.retry_spent >= turn.run.retry_limit)
    return give_up(turn, index, policy, Reason::retry_budget_exhausted,
                   "the run's retry budget of " + std::to_string(turn.run.retry_limit) +
                       " is spent; the last attempt: " + last);
  const Instant at = turn.now + wait;
  if (turn.now >= turn.run.deadline)
    return give_up(
        turn, index, policy, Reason::deadline_exceeded,
        "the run's deadline " + format_rfc3339(turn.run.deadline) + " passed; the last attempt: " + last);
  if (at >= turn.run.deadline) {
    const bool asked = what == WaitFor::retry_after;
    return give_up(turn, index, policy, asked ? Reason::rate_limited : Reason::no_time_left,
                   (asked ? "the server asks to wait until " : "the next attempt would leave at ") +
                       format_rfc3339(at) + " (" + format_duration(wait) + " from now), and " +
                       format_duration(turn.run.deadline - turn.now) +
                       " are left of the run's deadline; the last attempt: " + last,
                   asked ? std::optional<Instant>(at) : std::nullopt);
  }
  step.status = StepStatus::running;  // so that hold() records the wait also after an equal one
  wait_until(turn, index, what, at);
  step.reason = Reason::none;
  step.detail = last;
}

void absorb_call(Turn& turn, std::uint32_t index, Attempt& attempt, const Evidence& evidence,
                 const Judgement& judgement, const ToolPolicy& policy) {
  Step& step = turn.run.steps[index];
  record(attempt, evidence, judgement, turn.now);
  step.in_flight = false;
  step.ordered = false;
  turn.changes.touch(index);
  if (evidence.failure == Failure::crashed && attempt.counted) ++step.crashes;
  if (judgement.action != Action::repair_session) step.session_repaired = false;
  const bool answered = evidence.failure != Failure::crashed && attempt.counted && step.attempts > 1;
  if (canary(Canary::budget_debited_after_the_send) && answered)
    ++turn.run.retry_spent, turn.changes.run = true;

  if (terminal(step.status)) return;

  join(turn, index, evidence, judgement, attempt);
  if (turn.run.cancel_requested && evidence.failure == Failure::cancelled)
    return apply(turn, {MoveKind::cancel, index});
  const bool timed_out_by_run = attempt.clipped && evidence.failure == Failure::timeout;
  if (timed_out_by_run && judgement.verdict != Verdict::landed)
    return fail(turn, index, Reason::deadline_exceeded,
                "the run's deadline " + format_rfc3339(turn.run.deadline) +
                    " passed while the call was out; " + sentence(evidence, judgement));
  act(turn, index, evidence, judgement, policy);
}

void interrupt(Turn& turn, std::uint32_t index, Attempt& attempt, const Evidence& evidence,
               const Judgement& judgement) {
  Step& step = turn.run.steps[index];
  record(attempt, evidence, judgement, turn.now);
  step.in_flight = false;
  turn.changes.touch(index);
  if (terminal(step.status)) return;
  if (attempt.kind == AttemptKind::check) {
    step.next_check = turn.now;
    return;
  }
  step.wait = {};
  step.status = attempt.kind == AttemptKind::fallback ? StepStatus::waiting : StepStatus::pending;
  step.ordered = attempt.kind != AttemptKind::fallback;
}

void absorb_fallback(Turn& turn, std::uint32_t index, Attempt& attempt, const Evidence& evidence,
                     const Judgement& judgement) {
  Step& step = turn.run.steps[index];
  record(attempt, evidence, judgement, turn.now);
  step.in_flight = false;
  turn.changes.touch(index);
  if (terminal(step.status)) return;
  if (judgement.verdict == Verdict::ok && judgement.action == Action::done)
    return degrade(turn, index, evidence.result, "the fallback tool answered: " + step.detail);
  fail(turn, index, step.reason == Reason::none ? Reason::attempts_exhausted : step.reason,
       step.detail + "; the fallback tool did not answer: " + sentence(evidence, judgement));
}

}  // namespace holdfast::run
