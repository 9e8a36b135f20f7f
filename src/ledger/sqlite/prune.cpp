#include "ledger/sqlite/prune.h"

#include "ledger/sqlite/packed.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

// What is deleted is overwritten with zeros (SQLite's secure_delete, which Debian turns on), so its pages go through the
// WAL: this bounds them for one transaction.
constexpr std::int64_t kMostBytes = 8 * 1024 * 1024;

std::vector<Ledger::Prunable::SentKey> keys_of(Connection& connection, std::int64_t seq) {
  std::vector<Ledger::Prunable::SentKey> keys;
  Statement& rows = connection.statement(sql().prune_keys).add(seq);
  const Reset reset(rows);
  while (rows.row()) {
    Ledger::Prunable::SentKey& key = keys.emplace_back();
    rows.take(key.server, key.tool, key.last_sent_at);
  }
  if (!keys.empty()) return keys;
  const std::optional<PendingRun> packed = unpack(connection, seq);
  if (!packed) return keys;
  for (const run::Step& step : packed->run.steps)
    if (step.write && step.write->keyed && step.write->first_sent_at && step.write->last_sent_at)
      keys.emplace_back(step.spec.server, step.spec.tool, *step.write->last_sent_at);
  return keys;
}

}  // namespace

/// Runs are numbered as they are accepted and end after that: the first one that was accepted too late is the end of
/// the walk, and no index over the time of ending is needed.
Ledger::PruneSlice prune_slice(Connection& connection, std::int64_t newest, Instant ended_before,
                               std::int64_t after_seq, std::uint32_t most, const Ledger::MayGo& may_go) {
  Ledger::PruneSlice slice;
  slice.next_after = after_seq;
  Statement& rows = connection.statement(sql().prune_rows).add(after_seq, most);
  const Reset reset(rows);
  std::int64_t bytes = 0;
  std::uint32_t seen = 0;
  while (rows.row()) {
    Ledger::Prunable run;
    Instant created{};
    std::optional<Instant> finished;
    bool ended = false;
    rows.take(run.seq, run.id, created, finished, ended);
    if (run.seq >= newest || created >= ended_before) break;
    ++seen;
    slice.next_after = run.seq;
    if (!ended || !finished || *finished >= ended_before) continue;
    run.keys = keys_of(connection, run.seq);
    if (!may_go(run)) continue;
    bytes += connection.number_of(sql().prune_bytes, run.seq);
    slice.runs.push_back(std::move(run));
    if (bytes >= kMostBytes) return slice;
  }
  slice.at_end = seen < most;
  return slice;
}

}  // namespace holdfast::ledger::sqlite
