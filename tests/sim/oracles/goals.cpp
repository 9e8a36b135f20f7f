// Situations that a campaign must have reached.
#include "sim/oracles.h"

namespace holdfast::sim {

void Oracles::note_goals(const Stored* before, const run::Run& run) {
  Tally& tally = world_.tally;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const run::Step& step = run.steps[i];
    const run::Step* was = before && i < before->run.steps.size() ? &before->run.steps[i] : nullptr;
    if (was && was->status == step.status && was->wait.what == step.wait.what &&
        (was->write.has_value() == step.write.has_value()) &&
        (!step.write || was->write->resolution == step.write->resolution))
      continue;
    if (step.wait.what == run::WaitFor::slot) tally.reached(Goal::slot_wait);
    if (step.degraded) tally.reached(Goal::fallback);
    switch (step.reason) {
      case Reason::retry_budget_exhausted:
        if (spent_in_life_.contains(run.id) && spent_in_life_.at(run.id) != life_)
          tally.reached(Goal::budget_across_restart);
        break;
      case Reason::attempts_exhausted:
        if (step.crashes > 0) tally.reached(Goal::attempts_across_restart);
        break;
      case Reason::crash_loop:
        tally.reached(Goal::crash_loop);
        break;
      case Reason::key_expired:
        tally.reached(Goal::key_expired);
        break;
      case Reason::deadline_in_flight:
        tally.reached(Goal::deadline_in_flight);
        break;
      case Reason::bad_reference:
        tally.reached(Goal::bad_reference);
        break;
      case Reason::result_lost:
        tally.reached(Goal::landed_result_lost);
        break;
      default:
        break;
    }
    if (step.write && step.write->resolution == run::Resolution::evidence)
      tally.reached(step.write->resolution_note == "check" ? Goal::check_found : Goal::late_answer_settles);
  }
}

}  // namespace holdfast::sim
