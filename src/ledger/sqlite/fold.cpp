#include "ledger/sqlite/fold.h"

#include "ledger/sqlite/insert.h"
#include "ledger/sqlite/packed.h"

namespace holdfast::ledger::sqlite {

void fold_run(Connection& connection, const PendingRun& pending) {
  const run::Run& run = pending.run;
  if (pending.image == Image::fresh) return insert_whole(connection, pending);
  lay_out(connection, run.seq);
  if (pending.image == Image::changed) update_run(connection, run);
  for (std::uint32_t i = 0; i < pending.steps.size(); ++i) {
    if (pending.steps[i] == Image::fresh) insert_step(connection, run, i);
    if (pending.steps[i] == Image::changed) update_step(connection, run, i);
  }
  for (const PendingAttempt& row : pending.attempts) put_attempt(connection, run.seq, row.attempt, row.begun_after);
  for (const run::Event& event : pending.events) insert_event(connection, run.seq, event);
}

}  // namespace holdfast::ledger::sqlite
