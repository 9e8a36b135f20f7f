// No outcome is reported without what proves it.
#include "run/machine_detail.h"
#include "sim/oracles.h"
#include "sim/portrait.h"

namespace holdfast::sim {

void Oracles::check_outcome(const Op& op, const run::Run& run, const run::Step& step, const run::Step* before) const {
  const auto about = [&] { return op.name + "\n" + portrait(run); };
  const bool told_otherwise = op.said_landed || op.wrong_orders > 0;
  const bool news = !before || before->status != step.status;
  const run::WriteState state = step.write ? step.write->state : run::WriteState::intended;
  if (news && step.status == run::StepStatus::succeeded)
    HOLDFAST_REQUIRE(op.effects > 0 || op.said_landed, "success_needs_an_effect", about());
  if (state == run::WriteState::landed)
    HOLDFAST_REQUIRE(op.effects > 0 || op.said_landed, "landed_needs_an_effect", about());
  if (news && run::terminal(step.status)) {
    if (step.reason == Reason::abandoned)
      HOLDFAST_REQUIRE(op.said_abandon, "abandon_needs_a_person", about());
    else if (state != run::WriteState::landed && step.status != run::StepStatus::succeeded)
      HOLDFAST_REQUIRE((op.effects == 0 || told_otherwise) && state != run::WriteState::unknown &&
                  state != run::WriteState::dispatched,
              "failure_needs_proof", about());
  }
  if (step.write && step.write->open && !(before && before->write && before->write->open)) {
    // Of a repeat beside the count (a session repaired, an operator's order) only the doubt itself tells.
    const bool lost_in_a_crash = step.crashes > 0 || (step.doubt == Reason::crashed && life_ > 1);
    bool cause = lost_in_a_crash;
    for (std::size_t i = op.cleared; i < op.sends.size(); ++i)
      cause |= op.sends[i].given != Shown::unsent && op.sends[i].given != Shown::refused;
    HOLDFAST_REQUIRE(cause, "doubt_needs_a_cause", about());
  }
}

/// What a row says of delivery is no bolder than the truth.
void Oracles::check_verdict(const run::Run& run, const run::Attempt& attempt) {
  if (attempt.kind != AttemptKind::call || attempt.delivery == Delivery::in_flight) return;
  Op* op = op_of(run.steps[attempt.step]);
  if (!op->tool->is_write() || attempt.klass == AttemptClass::crashed) return;
  for (const Send& send : op->sends) {
    if (send.n != attempt.n) continue;
    const bool claims_nothing = attempt.verdict == Verdict::not_sent || attempt.verdict == Verdict::refused;
    HOLDFAST_REQUIRE(!claims_nothing || send.given == Shown::unsent || send.given == Shown::refused,
            "verdict_no_bolder_than_the_truth", portrait(attempt) + "\n" + portrait(run));
    const bool claims_done = attempt.verdict == Verdict::ok || attempt.verdict == Verdict::landed;
    HOLDFAST_REQUIRE(!claims_done || send.given == Shown::done, "verdict_no_bolder_than_the_truth", portrait(attempt) + "\n" + portrait(run));
    return;
  }
}

void Oracles::check_end(const std::string& id, const Stored& stored) {
  const run::Run& run = stored.run;
  HOLDFAST_REQUIRE(run.settled() || run.status == run::RunStatus::unknown, "every_run_comes_to_rest", portrait(run));
  check_events(id, stored);
  for (const run::Step& step : run.steps) {
    Op* op = op_of(step);
    const auto about = [&] { return op->name + "\n" + portrait(run); };
    if (step.status == run::StepStatus::unknown) {
      bool evidence = false;
      for (const auto& [at, attempt] : stored.attempts)
        evidence |= &run.steps[at.first] == &step && (attempt.verdict == Verdict::ambiguous);
      HOLDFAST_REQUIRE(evidence && step.write && step.write->open, "unknown_has_evidence", about());
    }
    if (!op->tool->is_write()) continue;
    const bool told_otherwise = op->said_landed || op->said_abandon || op->wrong_orders > 0;
    if (run::terminal(step.status) && (!step.write || step.write->state == run::WriteState::not_landed))
      HOLDFAST_REQUIRE(op->effects == 0 || told_otherwise, "failure_needs_proof", "at the end: " + about());
    if (step.write && step.write->state == run::WriteState::landed)
      HOLDFAST_REQUIRE(op->effects >= 1 || op->said_landed, "landed_needs_an_effect", "at the end: " + about());
  }
}

}  // namespace holdfast::sim
