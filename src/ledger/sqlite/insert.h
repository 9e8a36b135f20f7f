#pragma once
// From values to rows. Everything here runs inside the writer's transaction and throws SQLite::Exception; an
// update that does not change exactly one row is a disagreement between ledger and memory, SQLITE_CORRUPT.
#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

/// `run.seq` is set.
void insert_run_row(Connection& connection, const run::Run& run);
/// With its steps and writes.
void insert_run(Connection& connection, const run::Run& run);
/// With its write.
void insert_step(Connection& connection, const run::Run& run, std::uint32_t step);
void update_run(Connection& connection, const run::Run& run);
void update_step(Connection& connection, const run::Run& run, std::uint32_t step);
/// `begun_after`: the run's newest event when the attempt was begun; a row that exists keeps its own.
void put_attempt(Connection& connection, std::int64_t run_seq, const run::Attempt& attempt,
                 std::int64_t begun_after);
void insert_event(Connection& connection, std::int64_t run_seq, const run::Event& event);
void put_breaker(Connection& connection, const Breaker& breaker);
void put_gate(Connection& connection, const RateGate& gate);
/// And deletes what has left the window by then: tools that nobody calls any more leave no rows behind.
void put_latencies(Connection& connection, const std::vector<LatencyRow>& rows);
void insert_audit(Connection& connection, const AuditEntry& entry);

}  // namespace holdfast::ledger::sqlite
