#pragma once
#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/pending.h"

namespace holdfast::ledger::sqlite {

/// The run that owns a submit key.
[[nodiscard]] std::optional<Ledger::Submission> find_submission(Connection& connection, const Pending& pending, std::string_view owner, std::string_view key);

/// What the tables would refuse when the journal is folded must be refused now: once it is durable, no start gets past it. Runs from
/// `first_new` on are the batch's own. Throws SQLite::Exception: SQLITE_CONSTRAINT for an id or a submit key that is taken, SQLITE_CORRUPT for a row that is
/// not there, or is there already.
void check_batch(Connection& connection, const Pending& pending, const Batch& batch, std::int64_t first_new);

}  // namespace holdfast::ledger::sqlite
