#pragma once
// A run that ended without anything for an operator to look at is read rarely and as a whole: what belongs to it lies in one packed row.
#include <optional>

#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/pending.h"

namespace holdfast::ledger::sqlite {

// Everything here runs inside a transaction of its caller and throws SQLite::Exception.

/// Inserts a run with all that belongs to it, packed where it may be: settled, no write of it ever unknown, and small.
void insert_whole(Connection& connection, const PendingRun& whole);
/// Steps, attempts and events of a packed run; nullopt when this one is not packed.
[[nodiscard]] std::optional<PendingRun> unpack(Connection& connection, std::int64_t run_seq);
/// The run's rows are rows again, so that they can be changed; nothing when they are.
void lay_out(Connection& connection, std::int64_t run_seq);
/// The same for every run: for who looks with SQL, as tests do. In a transaction of its own.
void lay_out_all(Connection& connection);

}  // namespace holdfast::ledger::sqlite
