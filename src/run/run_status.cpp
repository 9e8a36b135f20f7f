// The run's status, from its steps.
#include <algorithm>
#include <utility>

#include "core/canary.h"
#include "holdfast/run/machine.h"
#include "run/machine_detail.h"

namespace holdfast::run {

namespace {

/// The step that decided the run's state, for reason and detail.
const Step* decisive(const Run& run, RunStatus status) {
  for (const Step& step : run.steps) {
    if (status == RunStatus::failed && stops(run, step)) return &step;
    if (status == RunStatus::unknown && step.status == StepStatus::unknown) return &step;
  }
  return nullptr;
}

Wait earliest_wait(const Run& run) {
  Wait best;
  for (const Step& step : run.steps) {
    if (step.status != StepStatus::waiting || step.wait.what == WaitFor::none) continue;
    const bool better =
        best.what == WaitFor::none || (step.wait.until && (!best.until || *step.wait.until < *best.until));
    if (better) best = step.wait;
  }
  return best;
}

RunStatus status_of(const Run& run, Instant now, Wait& wait) {
  bool flying = false, waiting = false, unknown = false, pending = false;
  for (const Step& step : run.steps) {
    // A check of an unknown write runs beside the doubt: it does not make the run busy again.
    if (step.status == StepStatus::running ||
        (step.in_flight && step.status != StepStatus::unknown && !terminal(step.status)))
      flying = true;
    waiting |= step.status == StepStatus::waiting;
    unknown |= step.status == StepStatus::unknown;
    pending |= step.status == StepStatus::pending;
  }
  if (flying) return RunStatus::running;
  if (waiting) {
    wait = earliest_wait(run);
    return wait.what == WaitFor::none ? RunStatus::running : RunStatus::waiting;
  }
  if (unknown) {
    wait = Wait{WaitFor::human, std::nullopt};
    return RunStatus::unknown;
  }
  if (pending) return RunStatus::queued;
  if (run.cancel_requested) return RunStatus::cancelled;
  if (stopping(run) && !canary(Canary::failed_plan_succeeds)) return RunStatus::failed;
  if (run.mode == Mode::plan) return RunStatus::succeeded;
  if (now >= run.deadline) return RunStatus::failed;
  wait = Wait{WaitFor::client, std::nullopt};
  return RunStatus::waiting;
}

void announce(Turn& turn, RunStatus status) {
  Run& run = turn.run;
  if (status == RunStatus::unknown) add_event(turn, "run.unknown", "", status_data(word(status), run.reason));
  if (status == RunStatus::waiting) add_event(turn, "run.waiting", "", wait_data(run.wait));
  if (run.settled()) add_event(turn, "run.settled", "", status_data(word(status), run.reason));
}

}  // namespace

void refresh(Turn& turn) {
  Run& run = turn.run;
  if (run.settled()) return;
  Wait wait;
  const RunStatus status = status_of(run, turn.now, wait);
  if (!run.started_at &&
      std::any_of(run.steps.begin(), run.steps.end(), [](const Step& s) { return s.rows > 0; })) {
    run.started_at = turn.now;
    turn.changes.run = true;
  }
  if (status == run.status && wait == run.wait && status != RunStatus::unknown) return;
  const bool entered = status != run.status;
  run.status = status;
  run.wait = wait;
  const Reason old_reason = std::exchange(run.reason, Reason::none);
  const std::string old_detail = std::exchange(run.detail, {});
  if (const Step* step = decisive(run, status)) {
    run.reason = step->reason;
    run.detail = "step " + step->spec.id + ": " +
                 (step->detail.empty() ? std::string(word(step->reason)) : step->detail);
  } else if (status == RunStatus::cancelled) {
    run.reason = Reason::cancelled;
    run.detail = run.cancel_reason;
  } else if (status == RunStatus::failed) {
    run.reason = Reason::deadline_exceeded;
    run.detail = "the run's deadline " + format_rfc3339(run.deadline) + " passed";
  }
  if (run.settled()) {
    run.finished_at = turn.now;
    if (run.mode == Mode::plan && status == RunStatus::succeeded) run.result = plan_result(run);
  }
  if (!entered && status == RunStatus::unknown) {
    turn.changes.run |= run.reason != old_reason || run.detail != old_detail;
    return;
  }
  turn.changes.run = true;
  announce(turn, status);
}

}  // namespace holdfast::run
