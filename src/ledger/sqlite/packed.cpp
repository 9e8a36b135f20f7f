#include "ledger/sqlite/packed.h"

#include <algorithm>

#include "ledger/sqlite/insert.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

// Beyond this it is the texts that take the room, and reading some of it should not mean reading all.
constexpr std::size_t kMostBytes = 16 * 1024;

/// Queries for unknown writes look at rows.
bool may_be_packed(const PendingRun& whole) {
  if (!whole.run.settled() || whole.run.steps.empty()) return false;
  return std::ranges::none_of(whole.run.steps, [](const run::Step& step) {
    return step.write && (step.write->open || step.write->unknown_since || step.write->resolution != run::Resolution::none);
  });
}

void insert_children(Connection& connection, const PendingRun& whole) {
  const run::Run& run = whole.run;
  for (std::uint32_t i = 0; i < run.steps.size(); ++i) insert_step(connection, run, i);
  for (const PendingAttempt& row : whole.attempts) put_attempt(connection, run.seq, row.attempt, row.begun_after);
  for (const run::Event& event : whole.events) insert_event(connection, run.seq, event);
}

}  // namespace

void insert_whole(Connection& connection, const PendingRun& whole) {
  insert_run_row(connection, whole.run);
  if (may_be_packed(whole)) {
    const std::string packed = encode_children(whole);
    if (packed.size() <= kMostBytes) {
      connection.statement(sql().insert_packed).add(whole.run.seq, Blob{packed}).run();
      return;
    }
  }
  insert_children(connection, whole);
}

std::optional<PendingRun> unpack(Connection& connection, std::int64_t run_seq) {
  Statement& rows = connection.statement(sql().packed).add(run_seq);
  const Reset reset(rows);
  if (!rows.row()) return std::nullopt;
  std::string packed;
  rows.take(packed);
  return decode_children(packed);
}

void lay_out(Connection& connection, std::int64_t run_seq) {
  const std::optional<PendingRun> whole = unpack(connection, run_seq);
  if (!whole) return;
  insert_children(connection, *whole);
  connection.statement(sql().drop_packed).add(run_seq).run();
}

void lay_out_all(Connection& connection) {
  connection.execute("BEGIN IMMEDIATE");
  while (const std::int64_t seq = connection.number("SELECT coalesce(min(run_seq), 0) FROM packed_runs")) lay_out(connection, seq);
  connection.execute("COMMIT");
}

}  // namespace holdfast::ledger::sqlite
