#pragma once
#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/pending.h"

namespace holdfast::ledger::sqlite {

/// Writes what is known of a run to its rows, each once. Inside the writer's transaction; throws SQLite::Exception.
void fold_run(Connection& connection, const PendingRun& pending);

}  // namespace holdfast::ledger::sqlite
