// What a run, a step and a row may become.
#include "sim/oracles.h"
#include "sim/portrait.h"

#include "run/machine_detail.h"

namespace holdfast::sim {

void Oracles::deciding(const ledger::Batch& batch) {
  deciding_ = &batch;
  for (const run::Run* run : batch.new_runs) {
    check_transition(nullptr, *run);
    for (const run::Step& step : run->steps) {
      const std::string& other = op_of(step)->run_id;
      HOLDFAST_REQUIRE(other == run->id || !find(other), "one_run_per_submission", other + " and " + run->id);
    }
  }
  std::set<const run::Run*> seen;
  const auto look = [&](const run::Run* run) {
    if (!seen.insert(run).second) return;
    const Stored* before = find(run->id);
    if (before) check_transition(before, *run);
  };
  for (const run::Run* run : batch.runs) look(run);
  for (const auto& [run, step] : batch.steps) look(run);
  for (const auto& [run, step] : batch.new_steps) look(run);
  deciding_ = nullptr;
  for (const auto& [run, attempt] : batch.attempts) check_attempt(*run, attempt);
  if (!batch.prune.empty()) check_prune(batch);
  std::map<const run::Run*, std::int64_t> newest;
  for (const auto& [run, event] : batch.events) {
    auto [at, first] = newest.try_emplace(run, 0);
    if (first)
      if (const Stored* before = find(run->id)) at->second = static_cast<std::int64_t>(before->events.size());
    HOLDFAST_REQUIRE(event.seq == at->second + 1, "events_gap_free",
            run->id + ": event " + std::to_string(event.seq) + " follows " + std::to_string(at->second));
    at->second = event.seq;
  }
}

void Oracles::check_transition(const Stored* before, const run::Run& after) {
  HOLDFAST_REQUIRE(after.retry_spent <= after.retry_limit, "budget_holds",
          "more is spent than there was\n" + portrait(after));
  if (before) {
    const run::Run& was = before->run;
    HOLDFAST_REQUIRE(!was.settled() || (was.status == after.status && was.reason == after.reason &&
                               was.result == after.result && was.deadline == after.deadline),
            "settled_is_final", portrait(was) + "\nbecomes " + portrait(after));
    HOLDFAST_REQUIRE(after.retry_spent >= was.retry_spent, "budget_holds", "the budget spent shrinks\n" + portrait(after));
    HOLDFAST_REQUIRE(!was.cancel_requested || after.cancel_requested, "cancel_is_kept", portrait(after));
    HOLDFAST_REQUIRE(after.steps.size() >= was.steps.size(), "no_step_lost", portrait(after));
    if (after.deadline != was.deadline) {
      bool extended = false;
      for (const run::Step& step : after.steps) extended |= op_of(step)->extended;
      HOLDFAST_REQUIRE(extended, "deadline_is_kept", portrait(was) + "\nbecomes " + portrait(after));
    }
  }
  for (std::uint32_t i = 0; i < after.steps.size(); ++i)
    check_step(after, i, before && i < before->run.steps.size() ? &before->run.steps[i] : nullptr);
  if (after.status == run::RunStatus::succeeded && after.mode == run::Mode::plan)
    for (const run::Step& step : after.steps)
      HOLDFAST_REQUIRE(run::terminal(step.status) && !run::stops_run(step), "success_needs_every_step", portrait(after));
  if (after.settled())
    for (const run::Step& step : after.steps)
      HOLDFAST_REQUIRE(run::terminal(step.status) && !(step.write && step.write->open), "no_open_write_in_a_settled_run",
              portrait(after));
}

void Oracles::check_step(const run::Run& run, std::uint32_t index, const run::Step* before) {
  const run::Step& step = run.steps[index];
  Op* op = op_of(step);
  HOLDFAST_REQUIRE(op != nullptr, "no_run_invented", "nobody submitted this step\n" + portrait(run));
  if (before) {
    HOLDFAST_REQUIRE(!run::terminal(before->status) || before->status == step.status, "step_end_is_final",
            "step " + step.spec.id + " was " + std::string(run::word(before->status)) + "\n" + portrait(run));
    HOLDFAST_REQUIRE(step.attempts >= before->attempts && step.rows >= before->rows, "attempts_never_shrink",
            portrait(run));
    if (before->write && !before->write->request.head.empty() && step.write)
      HOLDFAST_REQUIRE(before->write->key == step.write->key &&
                  before->write->request.body == step.write->request.body &&
                  before->write->request.head == step.write->request.head,
              "request_is_frozen", portrait(run));
  }
  HOLDFAST_REQUIRE(step.attempts <= step.max_attempts, "attempt_limit_holds", portrait(run));
  const bool news = !before || before->status != step.status;
  if (news && step.reason == Reason::tool_not_found && step.detail.starts_with("the configuration has no tool")) {
    HOLDFAST_REQUIRE(op->tool->removed_once, "gone_tool_was_removed", portrait(run));
    world_.tally.reached(Goal::tool_gone);
  }
  if (news && step.degraded && op->tool->cached) check_kept(step, run);
  if (op->tool->is_write()) check_outcome(*op, run, step, before);
}

/// A row once finished says what it said.
void Oracles::check_attempt(const run::Run& run, const run::Attempt& attempt) {
  const Stored* before = find(run.id);
  const auto about = [&] { return portrait(attempt) + "\n" + portrait(run); };
  if (before) {
    const auto at = before->attempts.find({attempt.step, attempt.n});
    if (at == before->attempts.end() && attempt.delivery == Delivery::in_flight && attempt.kind != AttemptKind::check)
      HOLDFAST_REQUIRE(!before->run.cancel_requested, "cancelled_run_sends_nothing", about());
    if (at != before->attempts.end() && at->second.delivery != Delivery::in_flight)
      HOLDFAST_REQUIRE(at->second.verdict == attempt.verdict && at->second.delivery == attempt.delivery,
              "attempt_is_final", portrait(at->second) + "\nbecomes " + about());
  }
  check_verdict(run, attempt);
}

}  // namespace holdfast::sim
