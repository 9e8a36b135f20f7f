#include "holdfast/ledger/ledger.h"

namespace holdfast::ledger {

void Batch::clear() {
  new_runs.clear();
  new_steps.clear();
  runs.clear();
  steps.clear();
  attempts.clear();
  events.clear();
  breakers.clear();
  gates.clear();
  answers.clear();
  audit.clear();
  latencies.clear();
  prune.clear();
  probe = false;
  adopt = false;
}

}  // namespace holdfast::ledger
