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
  probe = false;
}

}  // namespace holdfast::ledger
