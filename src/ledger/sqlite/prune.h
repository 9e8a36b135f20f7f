#pragma once
#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

/// As Ledger::prunable(), inside a read transaction; `newest` is the newest run's seq. Throws SQLite::Exception.
[[nodiscard]] Ledger::PruneSlice prune_slice(Connection& connection, std::int64_t newest, Instant ended_before,
                                             std::int64_t after_seq, std::uint32_t most,
                                             const Ledger::MayGo& may_go);

}  // namespace holdfast::ledger::sqlite
