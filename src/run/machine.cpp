#include "holdfast/run/machine.h"

#include <algorithm>
#include <utility>

#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"
#include "holdfast/core/json.h"
#include "run/machine_detail.h"

namespace holdfast::run {

void Changes::touch(std::uint32_t step) {
  if (std::find(steps.begin(), steps.end(), step) == steps.end()) steps.push_back(step);
}

void Changes::clear() {
  run = false;
  steps.clear();
  events.clear();
  cancel_calls.clear();
}

bool terminal(StepStatus status) {
  return status == StepStatus::succeeded || status == StepStatus::failed || status == StepStatus::skipped ||
         status == StepStatus::cancelled;
}

bool stops_run(const Step& step) {
  return step.status == StepStatus::failed &&
         (step.spec.on_failure == OnFailure::stop || step.reason == Reason::abandoned ||
          step.reason == Reason::deadline_exceeded);
}

bool stops(const Run& run, const Step& step) {
  if (run.mode == Mode::plan) return stops_run(step);
  return step.status == StepStatus::failed && step.reason == Reason::abandoned;
}

bool stopping(const Run& run) {
  if (run.cancel_requested) return true;
  return std::any_of(run.steps.begin(), run.steps.end(), [&](const Step& step) { return stops(run, step); });
}

bool in_doubt(const Step& step) {
  return step.effect == Effect::write && step.doubt != Reason::none;
}

bool fallback_due(const Step& step) {
  return step.status == StepStatus::waiting && step.wait.what == WaitFor::none &&
         step.reason != Reason::none && !step.in_flight;
}

namespace {

bool dependencies_met(const Run& run, const Step& step) {
  return std::all_of(step.spec.after.begin(), step.spec.after.end(),
                     [&](std::uint32_t before) { return terminal(run.steps[before].status); });
}

bool startable(const Run& run, const Step& step, Instant now) {
  if (step.status == StepStatus::pending) return dependencies_met(run, step);
  return step.status == StepStatus::waiting && step.wait.until && *step.wait.until <= now &&
         step.wait.what != WaitFor::human && step.wait.what != WaitFor::slot;
}

bool check_due(const Step& step, Instant now) {
  return in_doubt(step) && !step.in_flight && step.next_check && *step.next_check <= now &&
         (step.status == StepStatus::waiting ||
          (step.status == StepStatus::unknown && step.write && step.write->open));
}

std::optional<Move> move_of(const Run& run, std::uint32_t index, bool expired, bool stop, bool any_unknown,
                            Instant now) {
  const Step& step = run.steps[index];
  if (terminal(step.status) || step.in_flight) return std::nullopt;
  if (check_due(step, now) && (step.status == StepStatus::unknown || !(expired || run.cancel_requested)))
    return Move{MoveKind::check, index};
  if (step.status == StepStatus::unknown) return std::nullopt;
  if (run.cancel_requested) return Move{MoveKind::cancel, index};
  if (stop) return Move{MoveKind::skip, index};
  if (expired) {
    // Steps not begun wait for the verdict on an unknown write: it may come with a new deadline.
    if (step.status == StepStatus::pending && (any_unknown || !dependencies_met(run, step)))
      return std::nullopt;
    return Move{MoveKind::expire, index};
  }
  if (fallback_due(step)) return Move{MoveKind::fallback, index};
  if (startable(run, step, now)) return Move{MoveKind::start, index};
  return std::nullopt;
}

bool all_over(const Run& run) {
  return std::all_of(run.steps.begin(), run.steps.end(),
                     [](const Step& s) { return terminal(s.status) && !s.in_flight; });
}

}  // namespace

std::vector<Move> next(const Run& run, Instant now) {
  std::vector<Move> moves;
  if (run.settled()) return moves;
  const bool expired = now >= run.deadline;
  const bool stop = stopping(run);
  const bool any_unknown = std::any_of(run.steps.begin(), run.steps.end(),
                                       [](const Step& s) { return s.status == StepStatus::unknown; });
  for (std::uint32_t i = 0; i < run.steps.size(); ++i)
    if (const auto move = move_of(run, i, expired, stop, any_unknown, now)) moves.push_back(*move);
  if (!moves.empty() || !all_over(run)) return moves;
  if (run.mode == Mode::plan || stop || expired) moves.push_back(Move{MoveKind::settle});
  return moves;
}

std::optional<Instant> wake_at(const Run& run) {
  if (run.settled()) return std::nullopt;
  std::optional<Instant> earliest;
  const auto consider = [&](std::optional<Instant> at) {
    if (at && (!earliest || *at < *earliest)) earliest = at;
  };
  bool someone_can_expire = run.mode == Mode::open && all_over(run);
  const bool any_unknown = std::any_of(run.steps.begin(), run.steps.end(),
                                       [](const Step& s) { return s.status == StepStatus::unknown; });
  for (const Step& step : run.steps) {
    if (terminal(step.status) || step.in_flight) continue;
    if (in_doubt(step)) consider(step.next_check);
    if (step.status == StepStatus::unknown) continue;
    // Steps not begun outlive the deadline while a verdict is awaited.
    someone_can_expire |= step.status != StepStatus::pending || !any_unknown;
    if (step.status == StepStatus::waiting) consider(step.wait.until);
  }
  if (someone_can_expire) consider(run.deadline);
  return earliest;
}

void add_event(Turn& turn, std::string_view type, std::string_view step, std::string data) {
  Event event;
  event.run_seq = turn.run.seq;
  event.seq = ++turn.run.last_event;
  event.at = turn.now;
  event.type = type;
  event.step = step;
  event.data = std::move(data);
  turn.changes.events.push_back(std::move(event));
  turn.changes.run = true;
}

namespace {

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

}  // namespace

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

void settle_step(Turn& turn, std::uint32_t index, StepStatus status, Reason reason, std::string detail) {
  Step& step = turn.run.steps[index];
  step.status = status;
  step.reason = reason;
  step.detail = std::move(detail);
  step.wait = {};
  step.next_check.reset();
  step.ordered = false;
  step.advice = status == StepStatus::succeeded ? std::string{}
                                                : advice(reason, step.spec.server + "/" + step.spec.tool, "");
  turn.changes.touch(index);
  add_event(turn, "step.settled", step.spec.id, status_data(word(status), reason));
}

void succeed(Turn& turn, std::uint32_t index, std::string result) {
  Step& step = turn.run.steps[index];
  step.result = std::move(result);
  step.doubt = Reason::none;
  step.doubt_detail.clear();
  settle_step(turn, index, StepStatus::succeeded, Reason::none, {});
}

void fail(Turn& turn, std::uint32_t index, Reason reason, std::string detail) {
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
  settle_step(turn, index, StepStatus::failed, reason, std::move(detail));
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
  step.advice = advice(reason, step.spec.server + "/" + step.spec.tool, "");
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
}

void hold(Turn& turn, std::uint32_t index, Wait wait) {
  Step& step = turn.run.steps[index];
  if (step.status == StepStatus::waiting && step.wait == wait) return;
  step.status = StepStatus::waiting;
  step.wait = wait;
  turn.changes.touch(index);
  add_event(turn, "step.waiting", step.spec.id, wait_data(wait));
}

void wait_until(Turn& turn, std::uint32_t index, WaitFor what, Instant until) {
  hold(turn, index, Wait{what, until});
}

namespace {

/// An attempt landed or may have: fail() then says landed or unknown.
bool known_sent(const Step& step) {
  return in_doubt(step) || (step.write && step.write->state == WriteState::landed);
}

}  // namespace

void apply(Turn& turn, Move move) {
  if (move.kind == MoveKind::settle) return refresh(turn);
  Step& step = turn.run.steps[move.step];
  switch (move.kind) {
    case MoveKind::skip:
      if (known_sent(step)) return fail(turn, move.step, Reason::result_lost, step.detail);
      if (step.write) settle_write(turn, move.step, WriteState::not_landed, "run");
      return settle_step(turn, move.step, StepStatus::skipped, Reason::step_failed,
                         "an earlier step stopped the run");
    case MoveKind::cancel:
      if (known_sent(step)) return fail(turn, move.step, Reason::result_lost, step.detail);
      if (step.write) settle_write(turn, move.step, WriteState::not_landed, "run");
      return settle_step(turn, move.step, StepStatus::cancelled, Reason::cancelled, "the run was cancelled");
    case MoveKind::expire:
      return fail(
          turn, move.step, Reason::deadline_exceeded,
          "the run's deadline " + format_rfc3339(turn.run.deadline) + " passed before the step was done");
    default:
      return;
  }
}

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
  if (stopping(run)) return RunStatus::failed;
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
