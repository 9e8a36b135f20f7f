// What a step and its write become, with the events that tell of it.
#include "core/canary.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"
#include "holdfast/core/json.h"
#include "holdfast/run/machine.h"
#include "run/machine_detail.h"

namespace holdfast::run {

void add_event(Turn& turn, std::string_view type, std::string_view step, std::string data) {
  Event event;
  event.run_seq = turn.run.seq;
  turn.run.last_event += canary(Canary::event_number_skipped) && type == "step.settled" ? 2 : 1;
  event.seq = turn.run.last_event;
  event.at = turn.now;
  event.type = type;
  event.step = step;
  event.data = std::move(data);
  turn.changes.events.push_back(std::move(event));
  // Of an open run the newest event's row tells; the run's own row is not written again for it.
  if (turn.run.settled()) turn.changes.run = true;
}

std::string status_data(std::string_view status, Reason reason) {
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("status", status);
  w.text_or_null("reason", word(reason));
  w.end_object();
  return data;
}

std::string wait_data(const Wait& wait) {
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("for", word(wait.what));
  w.text_or_null("until", wait.until ? format_rfc3339(*wait.until) : std::string{});
  w.end_object();
  return data;
}

Write& ensure_write(Run& run, std::uint32_t index) {
  Step& step = run.steps[index];
  if (!step.write) {
    if (step.target.empty()) step.target = step.spec.server + "/" + step.spec.tool;
    step.write.emplace();
    step.write->key = step.spec.key.empty() ? intent_key(run.id, step.spec.id, step.target) : step.spec.key;
  }
  return *step.write;
}

void settle_write(Turn& turn, std::uint32_t index, WriteState state, std::string_view by) {
  Write& write = ensure_write(turn.run, index);
  const bool was_open = write.open;
  write.state = state;
  if (state != WriteState::unknown) write.open = false;
  turn.changes.touch(index);
  if (!was_open) return;
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("write", write_id(turn.run.id, index));
  w.field("state", word(state));
  w.field("by", by);
  w.end_object();
  add_event(turn, "write.settled", turn.run.steps[index].spec.id, std::move(data));
}

std::string advice_of(const Step& step, Reason reason, std::optional<Instant> when) {
  return advice(reason, step.spec.server + "/" + step.spec.tool,
                when ? format_rfc3339(*when) : std::string{});
}

void settle_step(Turn& turn, std::uint32_t index, StepStatus status, Reason reason, std::string detail,
                 std::optional<Instant> when) {
  Step& step = turn.run.steps[index];
  // Given up before its fallback was asked: what was said then, with its instant, stands.
  const bool said = status == StepStatus::failed && step.reason == reason && !when && !step.advice.empty();
  step.status = status;
  step.reason = reason;
  step.detail = std::move(detail);
  step.wait = {};
  step.next_check.reset();
  step.ordered = false;
  if (status == StepStatus::succeeded)
    step.advice.clear();
  else if (!said)
    step.advice = advice_of(step, reason, when);
  turn.changes.touch(index);
  const StepStatus told = canary(Canary::event_tells_otherwise) ? StepStatus::succeeded : status;
  add_event(turn, "step.settled", step.spec.id, status_data(word(told), reason));
}

void succeed(Turn& turn, std::uint32_t index, std::string result) {
  Step& step = turn.run.steps[index];
  step.result = std::move(result);
  step.doubt = Reason::none;
  step.doubt_detail.clear();
  settle_step(turn, index, StepStatus::succeeded, Reason::none, {});
}

void fail(Turn& turn, std::uint32_t index, Reason reason, std::string detail, std::optional<Instant> when) {
  Step& step = turn.run.steps[index];
  if (step.effect == Effect::write) {
    if (step.write && step.write->state == WriteState::landed) {
      reason = reason == Reason::result_too_large ? reason : Reason::result_lost;
    } else if (in_doubt(step)) {
      return doubt(turn, index, step.doubt, step.doubt_detail);
    } else {
      settle_write(turn, index, WriteState::not_landed, "tool");
    }
  }
  settle_step(turn, index, StepStatus::failed, reason, std::move(detail), when);
}

void distrust(Turn& turn, Instant newest_known) {
  if (turn.run.settled()) return;
  for (std::uint32_t i = 0; i < turn.run.steps.size(); ++i) {
    Step& step = turn.run.steps[i];
    if (step.effect != Effect::write || terminal(step.status)) continue;
    if (step.write) step.write->last_sent_at = turn.now;
    if (step.doubt == Reason::none) {
      step.doubt = Reason::crashed;
      step.doubt_detail = "the ledger was restored from a backup: this may have been sent after " + format_rfc3339(newest_known) +
                          ", the last that the backup knows";
    }
    turn.changes.touch(i);
  }
}

void doubt(Turn& turn, std::uint32_t index, Reason reason, std::string detail) {
  Step& step = turn.run.steps[index];
  Write& write = ensure_write(turn.run, index);
  if (step.doubt == Reason::none) {
    step.doubt = reason;
    step.doubt_detail = detail;
  }
  step.status = StepStatus::unknown;
  step.reason = reason;
  step.detail = std::move(detail);
  step.wait = {};
  step.advice = advice_of(step, reason, std::nullopt);
  turn.changes.touch(index);
  if (write.open) return;
  write.state = WriteState::unknown;
  write.open = true;
  write.unknown_since = turn.now;
  write.resolution = Resolution::none;
  write.resolution_note.clear();
  write.resolved_by.clear();
  write.resolved_at.reset();
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("write", write_id(turn.run.id, index));
  w.field("reason", word(reason));
  w.end_object();
  add_event(turn, "write.unknown", step.spec.id, std::move(data));
}

void degrade(Turn& turn, std::uint32_t index, std::string result, std::string detail) {
  Step& step = turn.run.steps[index];
  step.degraded = true;
  succeed(turn, index, std::move(result));
  step.detail = std::move(detail);
  turn.changes.degraded.push_back(index);
}

void hold(Turn& turn, std::uint32_t index, Wait wait) {
  Step& step = turn.run.steps[index];
  if (step.status == StepStatus::waiting && step.wait == wait) return;
  step.status = StepStatus::waiting;
  step.wait = wait;
  if (!given_up(step)) step.advice = advice_of(step, Reason::none, wait.until);
  turn.changes.touch(index);
  add_event(turn, "step.waiting", step.spec.id, wait_data(wait));
}

void wait_until(Turn& turn, std::uint32_t index, WaitFor what, Instant until) {
  hold(turn, index, Wait{what, until});
}

}  // namespace holdfast::run
