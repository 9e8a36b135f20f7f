#include "ledger/sqlite/insert.h"

#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

auto adding(Statement& statement) {
  return [&statement](const auto&... members) { statement.add(members...); };
}

void run_changing_one(Connection& connection, Statement& statement) {
  statement.run();
  if (sqlite3_changes64(connection.handle()) != 1)
    throw SQLite::Exception("ledger and memory disagree: no such row", SQLITE_CORRUPT);
}

const run::Step& step_of(const run::Run& run, std::uint32_t step) {
  if (step >= run.steps.size())
    throw SQLite::Exception("ledger and memory disagree: no such step", SQLITE_CORRUPT);
  return run.steps[step];
}

void put_write(Connection& connection, const run::Run& run, std::uint32_t step, const run::Write& write) {
  Statement& statement = connection.statement(sql().put_write).add(run.seq, step);
  write_state(write, adding(statement));
  statement.run();
}

}  // namespace

void insert_run_row(Connection& connection, const run::Run& run) {
  Statement& statement = connection.statement(sql().insert_run).add(run.seq);
  run_fixed(run, adding(statement));
  run_state(run, adding(statement));
  statement.add(run.settled());
  statement.run();
}

void insert_run(Connection& connection, const run::Run& run) {
  insert_run_row(connection, run);
  for (std::uint32_t step = 0; step < run.steps.size(); ++step) insert_step(connection, run, step);
}

void insert_step(Connection& connection, const run::Run& run, std::uint32_t index) {
  const run::Step& step = step_of(run, index);
  Statement& statement = connection.statement(sql().insert_step).add(run.seq, index);
  step_fixed(step, adding(statement));
  step_state(step, adding(statement));
  statement.run();
  if (step.write) put_write(connection, run, index, *step.write);
}

void update_run(Connection& connection, const run::Run& run) {
  Statement& statement = connection.statement(run.settled() ? sql().settle_run : sql().update_run);
  run_state(run, adding(statement));
  statement.add(run.seq);
  run_changing_one(connection, statement);
}

void update_step(Connection& connection, const run::Run& run, std::uint32_t index) {
  const run::Step& step = step_of(run, index);
  Statement& statement = connection.statement(sql().update_step);
  step_state(step, adding(statement));
  statement.add(run.seq, index);
  run_changing_one(connection, statement);
  if (step.write) put_write(connection, run, index, *step.write);
}

void put_attempt(Connection& connection, std::int64_t run_seq, const run::Attempt& attempt,
                 std::int64_t begun_after) {
  Statement& statement =
      connection.statement(sql().put_attempt).add(run_seq, attempt.step, attempt.n, begun_after);
  attempt_state(attempt, adding(statement));
  statement.run();
}

void insert_event(Connection& connection, std::int64_t run_seq, const run::Event& event) {
  connection.statement(sql().insert_event)
      .add(run_seq, event.seq, event.at, event.type, event.step, event.data)
      .run();
}

void put_breaker(Connection& connection, const Breaker& breaker) {
  Statement& statement = connection.statement(sql().put_breaker).add(breaker.server, breaker.tool);
  breaker_state(breaker, adding(statement));
  statement.run();
}

void put_gate(Connection& connection, const RateGate& gate) {
  connection.statement(sql().put_gate).add(gate.server, gate.until, gate.hits).run();
}

void put_latencies(Connection& connection, const std::vector<LatencyRow>& rows) {
  Instant newest{};
  for (const LatencyRow& row : rows) {
    newest = std::max(newest, row.slice.start);
    Statement& statement = connection.statement(sql().put_latency)
                               .add(row.server, row.tool, row.slice.slot, row.slice.start, row.slice.samples);
    if (row.sized)
      statement.add(row.sized->value, row.sized->since);
    else
      statement.add(std::optional<Duration>{}, std::optional<Instant>{});
    statement.run();
  }
  if (rows.empty()) return;
  connection.statement(sql().forget_latencies)
      .add(newest - LatencyWindow::kSlices * LatencyWindow::kSlice)
      .run();
}

void insert_audit(Connection& connection, const AuditEntry& entry) {
  connection.statement(sql().insert_audit)
      .add(entry.at, entry.who, entry.action, entry.subject, entry.why, entry.data)
      .run();
}

}  // namespace holdfast::ledger::sqlite
