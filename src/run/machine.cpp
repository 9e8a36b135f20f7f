#include "holdfast/run/machine.h"

#include <algorithm>
#include <utility>

#include "core/canary.h"
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
  degraded.clear();
  over_budget = 0;
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
  if (run.cancel_requested && !canary(Canary::cancel_ignored)) return true;
  return std::any_of(run.steps.begin(), run.steps.end(), [&](const Step& step) { return stops(run, step); });
}

bool in_doubt(const Step& step) {
  return step.effect == Effect::write && step.doubt != Reason::none;
}

bool given_up(const Step& step) {
  return step.effect == Effect::read && step.status == StepStatus::waiting && step.reason != Reason::none &&
         !step.in_flight;
}

namespace {

bool dependencies_met(const Run& run, const Step& step) {
  return std::all_of(step.spec.after.begin(), step.spec.after.end(),
                     [&](std::uint32_t before) { return terminal(run.steps[before].status); });
}

bool startable(const Run& run, const Step& step, Instant now) {
  if (step.status == StepStatus::pending)
    return dependencies_met(run, step) || canary(Canary::dependencies_ignored);
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
  if (canary(Canary::cancel_undoes_steps) && run.cancel_requested && step.status == StepStatus::succeeded)
    return Move{MoveKind::cancel, index};
  if (terminal(step.status) || step.in_flight) return std::nullopt;
  if (check_due(step, now) && (step.status == StepStatus::unknown || !(expired || run.cancel_requested)))
    return Move{MoveKind::check, index};
  if (step.status == StepStatus::unknown && (!canary(Canary::verdict_not_awaited) || step.attempts >= step.max_attempts))
    return std::nullopt;
  if (run.cancel_requested && !canary(Canary::cancel_ignored)) return Move{MoveKind::cancel, index};
  if (stop) return Move{MoveKind::skip, index};
  if (expired) {
    // Steps not begun wait for the verdict on an unknown write: it may come with a new deadline.
    if (step.status == StepStatus::pending && (any_unknown || !dependencies_met(run, step)))
      return std::nullopt;
    return Move{MoveKind::expire, index};
  }
  if (given_up(step) && step.wait.what == WaitFor::none) return Move{MoveKind::fallback, index};
  if (startable(run, step, now) || step.status == StepStatus::unknown) return Move{MoveKind::start, index};
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

}  // namespace holdfast::run
