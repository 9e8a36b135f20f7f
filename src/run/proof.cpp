// What settles a write after its attempt: the tool's check, and answers that come late.
#include <algorithm>

#include "core/canary.h"
#include "holdfast/core/json.h"
#include "holdfast/run/machine.h"
#include "run/machine_detail.h"

namespace holdfast::run {

namespace {

constexpr Duration kFirstCheckPause{2'000};
constexpr Duration kLongestCheckPause{300'000};

void landed_from_outside(Turn& turn, std::uint32_t index, std::string result, std::string_view by) {
  Step& step = turn.run.steps[index];
  Write& write = ensure_write(turn.run, index);
  write.resolution = Resolution::evidence;
  write.resolution_note = by;
  write.resolved_at = turn.now;
  settle_write(turn, index, WriteState::landed, by);
  land(step, write);
  succeed(turn, index, std::move(result));
}

/// For the operator's check log.
std::string_view words_of(Finding finding, bool settled) {
  switch (finding) {
    case Finding::found:
      return "found: the write landed";
    case Finding::absent:
      return settled ? "absent: the write did not land" : "absent, but it may still arrive: proves nothing yet";
    case Finding::inconclusive:
      break;
  }
  return "inconclusive";
}

}  // namespace

Finding read_check(const Evidence& evidence, const Judgement& judgement, const CheckRule& rule) {
  if (judgement.verdict != Verdict::ok || judgement.action != Action::done)
    return canary(Canary::failed_check_is_absence) ? Finding::absent : Finding::inconclusive;
  const auto document = json::parse(evidence.result);
  if (!document) return Finding::inconclusive;
  const json::Value* seen = json::at(*document, rule.found.pointer);
  if (seen == nullptr) return Finding::inconclusive;
  const bool equal = json::canonical(*seen) == rule.found.value;
  return equal != rule.found.negate ? Finding::found : Finding::absent;
}

void absorb_check(Turn& turn, std::uint32_t index, Attempt& attempt, const Evidence& evidence,
                  const Judgement& judgement, const ToolPolicy& policy, Instant watched_since) {
  Step& step = turn.run.steps[index];
  record(attempt, evidence, judgement, turn.now);
  step.in_flight = false;
  turn.changes.touch(index);
  if (!in_doubt(step) || !step.write || terminal(step.status)) return;
  if (!policy.check) {  // the configuration has lost it since the check left
    step.next_check.reset();
    return doubt(turn, index, step.doubt, step.doubt_detail);
  }
  const CheckRule& rule = *policy.check;
  const Finding finding = read_check(evidence, judgement, rule);
  Write& write = *step.write;
  const Instant last_sent = write.last_sent_at.value_or(turn.now);
  const Instant settled_at = std::max(last_sent, watched_since) + rule.settle;
  const bool settled = attempt.started_at >= settled_at || canary(Canary::absent_at_once);
  ++step.checks;
  attempt.detail = std::string(words_of(finding, settled)) + (attempt.detail.empty() ? "" : "; " + attempt.detail);
  if (finding == Finding::found) return landed_from_outside(turn, index, "null", "check");
  if (finding == Finding::absent && settled) {
    step.doubt = Reason::none;
    step.doubt_detail.clear();
    step.next_check.reset();
    settle_write(turn, index, WriteState::not_landed, "check");
    step.status = StepStatus::running;
    if (turn.run.cancel_requested)
      return settle_step(turn, index, StepStatus::cancelled, Reason::cancelled, "proven absent by the check");
    return try_again(turn, index, policy, WaitFor::backoff, Duration{0}, "proven absent by the check");
  }
  if (!settled) {
    step.next_check = settled_at;
    if (step.status != StepStatus::unknown) wait_until(turn, index, WaitFor::backoff, settled_at);
    return;
  }
  Duration pause = kFirstCheckPause;
  for (std::uint32_t i = 2; i < step.checks && pause < kLongestCheckPause; ++i)
    pause = std::min(pause * 2, kLongestCheckPause);
  const Instant again = turn.now + pause;
  if (again > last_sent + rule.ask_for)
    step.next_check.reset();
  else
    step.next_check = again;
  doubt(turn, index, step.doubt, step.doubt_detail);
}

bool absorb_late(Turn& turn, std::uint32_t index, Attempt& attempt, const Evidence& evidence,
                 const Judgement& judgement) {
  Step& step = turn.run.steps[index];
  const std::string& words = evidence.failure == Failure::none ? evidence.text : evidence.detail;
  attempt.late = true;
  if (canary(Canary::late_answer_rewrites_its_attempt)) attempt.verdict = judgement.verdict;
  attempt.late_detail = "an answer arrived " +
                        format_duration(turn.now - attempt.finished_at.value_or(attempt.started_at)) +
                        " after the call was given up" + (words.empty() ? "" : ": " + words);
  add_event(turn, "attempt.late_answer", step.spec.id, "{\"attempt\":" + std::to_string(attempt.n) + "}");
  const bool positive = judgement.verdict == Verdict::ok;
  if (!positive || step.effect != Effect::write || turn.run.settled() || step.in_flight || !in_doubt(step))
    return false;
  if (step.status != StepStatus::unknown && step.status != StepStatus::waiting) return false;
  landed_from_outside(turn, index, evidence.result, "late answer");
  return true;
}

}  // namespace holdfast::run
