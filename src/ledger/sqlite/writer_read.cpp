// What the engine reads, on the connection that writes.
#include "ledger/sqlite/check.h"
#include "ledger/sqlite/load.h"
#include "ledger/sqlite/prune.h"
#include "ledger/sqlite/rows.h"
#include "ledger/sqlite/writer.h"

namespace holdfast::ledger::sqlite {

/// One look into the index for each open run.
Instant SqliteLedger::newest() {
  const std::lock_guard lock(mutex_);
  return Instant{connection_.number(
      "SELECT coalesce(max((SELECT at FROM events WHERE run_seq = runs.seq ORDER BY seq DESC LIMIT 1)), 0) "
      "FROM runs INDEXED BY runs_unsettled WHERE settled = 0")};
}

/// Reads inside one transaction of the writer's connection.
template <class F>
auto SqliteLedger::reading(F&& read) -> Result<decltype(read())> {
  if (broken_) return std::unexpected(*broken_);
  try {
    const Snapshot snapshot(connection_);
    return read();
  } catch (const SQLite::Exception& failure) {
    return std::unexpected(failed(failure));
  }
}

/// The same once the tables hold all that is committed; where they can't be brought up to date now, as on a full disk, in a transaction that is
/// taken back.
template <class F>
auto SqliteLedger::reading_all(bool touched, F&& read) -> Result<decltype(read())> {
  if (!touched || fold(false)) return reading(read);
  std::optional<decltype(read())> value;
  if (const Result<void> looked = look_inside([&](Connection&) { value = read(); }); !looked) return std::unexpected(looked.error());
  return std::move(*value);
}

Result<Ledger::Open> SqliteLedger::load_open() {
  const std::lock_guard lock(mutex_);
  if (const Result<void> shown = fold(false); !shown) return std::unexpected(shown.error());
  return reading([this] {
    Open open;
    Statement& rows = connection_.statement(sql().unsettled);
    const Reset reset(rows);
    while (rows.row()) {
      run::Run& run = open.runs.emplace_back();
      take_run(rows, run);
      load_steps(connection_, run, &open.in_flight);
    }
    if (connection_.number("PRAGMA application_id") == kBackupId)
      open.restored = Instant{connection_.number(
          "SELECT max((SELECT coalesce(max(at), 0) FROM events), (SELECT coalesce(max(finished_at), 0) FROM runs))")};
    open.breakers = load_breakers(connection_);
    open.gates = load_gates(connection_);
    open.latencies = load_latencies(connection_);
    return open;
  });
}

Result<std::optional<run::Run>> SqliteLedger::load(std::string_view run_id) {
  const std::lock_guard lock(mutex_);
  if (const PendingRun* found = pending_.whole(run_id)) return to_run(*found);
  return reading_all(touched_.has(run_id), [&] { return load_run(connection_, run_id); });
}

Result<std::optional<Ledger::Submission>> SqliteLedger::find_submission(std::string_view owner,
                                                                        std::string_view key) {
  const std::lock_guard lock(mutex_);
  return reading([&] { return sqlite::find_submission(connection_, pending_, owner, key); });
}

Result<std::optional<run::Attempt>> SqliteLedger::find_attempt(std::int64_t run_seq, std::uint32_t step,
                                                               std::uint32_t n) {
  const std::lock_guard lock(mutex_);
  if (const PendingRun* found = pending_.whole(run_seq)) return to_attempt(*found, step, n);
  return reading_all(touched_.has(run_seq), [&] { return load_attempt(connection_, run_seq, step, n); });
}

Result<std::optional<CachedAnswer>> SqliteLedger::find_answer(std::string_view server, std::string_view tool,
                                                              std::string_view arguments) {
  const std::lock_guard lock(mutex_);
  return reading([&] { return load_answer(connection_, server, tool, arguments); });
}

Result<Ledger::PruneSlice> SqliteLedger::prunable(Instant ended_before, std::int64_t after_seq, std::uint32_t most,
                                                  const MayGo& may_go) {
  const std::lock_guard lock(mutex_);
  return reading_all(true, [&] { return prune_slice(connection_, next_run_ - 1, ended_before, after_seq, most, may_go); });
}

}  // namespace holdfast::ledger::sqlite
