#include "ledger/sqlite/load.h"

#include <algorithm>
#include <array>

#include "core/canary.h"
#include "ledger/sqlite/packed.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr std::array<std::string_view, 11> kEventTypes{
    "run.submitted", "run.waiting",     "run.unknown",         "run.cancel_requested",
    "run.settled",   "step.dispatched", "step.waiting",        "step.settled",
    "write.unknown", "write.settled",   "attempt.late_answer",
};

auto taking(Statement& row) {
  return [&row](auto&&... members) { row.take(members...); };
}

void take_step(Statement& row, run::Step& out) {
  step_fixed(out, taking(row));
  step_state(out, taking(row));
}

[[noreturn]] void bad_index() {
  throw SQLite::Exception("a row names a step that its run does not have", SQLITE_CORRUPT);
}

void load_steps_with(Connection& connection, run::Run& run, const std::string& steps_sql,
                     const std::string& writes_sql) {
  Statement& steps = connection.statement(steps_sql).add(run.seq);
  const Reset reset_steps(steps);
  bool any_write = false;
  while (steps.row()) {
    std::uint32_t index = 0;
    steps.take(index);
    if (index != run.steps.size()) bad_index();
    run::Step& step = run.steps.emplace_back();
    take_step(steps, step);
    any_write = any_write || step.effect == Effect::write;
  }
  if (run.steps.empty())
    if (std::optional<PendingRun> packed = unpack(connection, run.seq)) run.steps = std::move(packed->run.steps);
  if (!any_write) return;
  Statement& writes = connection.statement(writes_sql).add(run.seq);
  const Reset reset_writes(writes);
  while (writes.row()) {
    std::uint32_t index = 0;
    writes.take(index);
    if (index >= run.steps.size()) bad_index();
    write_state(run.steps[index].write.emplace(), taking(writes));
  }
}

void load_in_flight(Connection& connection, run::Run& run, std::vector<run::Attempt>* in_flight) {
  Statement& rows = connection.statement(sql().in_flight).add(run.seq);
  const Reset reset(rows);
  while (rows.row()) {
    run::Attempt attempt;
    take_attempt(rows, run.seq, attempt);
    if (attempt.step >= run.steps.size()) bad_index();
    mark_in_flight(run.steps[attempt.step], attempt);
    if (in_flight) in_flight->push_back(std::move(attempt));
  }
}

/// A run's row is not written for each of its events.
void load_newest_event(Connection& connection, run::Run& run) {
  Statement& rows = connection.statement(sql().newest_event).add(run.seq);
  const Reset reset(rows);
  std::optional<std::int64_t> newest;
  if (rows.row()) rows.take(newest);
  if (newest && !canary(Canary::event_numbers_go_back)) run.last_event = std::max(run.last_event, *newest);
}

}  // namespace

void mark_in_flight(run::Step& step, const run::Attempt& attempt) {
  step.in_flight = true;
  step.in_flight_n = attempt.n;
  step.in_flight_kind = attempt.kind;
  step.sent_at = attempt.started_at;
}

std::string_view event_type(std::string_view stored) {
  const auto* found = std::find(kEventTypes.begin(), kEventTypes.end(), stored);
  if (found == kEventTypes.end())
    throw SQLite::Exception("an event type that this version does not know", SQLITE_CORRUPT);
  return *found;
}

std::int64_t run_seq_of(Connection& connection, std::string_view run_id) {
  return connection.number_of(sql().run_seq, run_id);
}

void take_run(Statement& row, run::Run& out) {
  row.take(out.seq);
  run_fixed(out, taking(row));
  run_state(out, taking(row));
}

void take_attempt(Statement& row, std::int64_t run_seq, run::Attempt& out) {
  out.run_seq = run_seq;
  row.take(out.step, out.n);
  attempt_state(out, taking(row));
}

void load_steps(Connection& connection, run::Run& run, std::vector<run::Attempt>* in_flight) {
  load_steps_with(connection, run, sql().steps, sql().writes);
  if (run.settled()) return;
  load_newest_event(connection, run);
  load_in_flight(connection, run, in_flight);
}

void load_listed_steps(Connection& connection, run::Run& run) {
  load_steps_with(connection, run, sql().listed_steps, sql().listed_writes);
  for (run::Step& step : run.steps) {  // of a packed run they have come along
    step.spec.args.clear();
    step.result.clear();
    if (step.write) step.write->request = {};
  }
  if (!run.settled()) load_in_flight(connection, run, nullptr);
}

std::optional<run::Step> load_step(Connection& connection, std::int64_t run_seq, std::uint32_t step) {
  std::uint32_t index = 0;
  Statement& steps = connection.statement(sql().one_step).add(run_seq, step);
  const Reset reset_steps(steps);
  if (!steps.row()) {
    std::optional<PendingRun> packed = unpack(connection, run_seq);
    if (!packed || step >= packed->run.steps.size()) return std::nullopt;
    return std::move(packed->run.steps[step]);
  }
  run::Step out;
  steps.take(index);
  take_step(steps, out);
  Statement& writes = connection.statement(sql().one_write).add(run_seq, step);
  const Reset reset_writes(writes);
  if (writes.row()) {
    writes.take(index);
    write_state(out.write.emplace(), taking(writes));
  }
  return out;
}

std::optional<run::Run> load_run(Connection& connection, std::string_view run_id) {
  std::optional<run::Run> run;
  Statement& rows = connection.statement(sql().run_by_id).add(run_id);
  const Reset reset(rows);
  if (!rows.row()) return run;
  take_run(rows, run.emplace());
  load_steps(connection, *run);
  return run;
}

std::optional<run::Attempt> load_attempt(Connection& connection, std::int64_t run_seq, std::uint32_t step, std::uint32_t n) {
  std::optional<run::Attempt> found;
  Statement& rows = connection.statement(sql().attempt).add(run_seq, step, n);
  const Reset reset(rows);
  if (rows.row()) {
    take_attempt(rows, run_seq, found.emplace());
  } else if (std::optional<PendingRun> packed = unpack(connection, run_seq)) {
    found = to_attempt(std::move(*packed), step, n);
  }
  return found;
}

std::vector<run::Attempt> load_attempts(Connection& connection, std::int64_t run_seq, std::int64_t after_row,
                                        std::uint32_t limit) {
  std::vector<run::Attempt> out;
  Statement& rows = connection.statement(sql().attempts).add(run_seq, limit, after_row);
  const Reset reset(rows);
  while (rows.row()) take_attempt(rows, run_seq, out.emplace_back());
  if (!out.empty()) return out;
  std::optional<PendingRun> packed = unpack(connection, run_seq);
  return packed ? to_attempts(std::move(*packed), after_row, limit) : out;
}

std::vector<run::Event> load_events(Connection& connection, std::int64_t run_seq, std::int64_t after, std::uint32_t limit) {
  std::vector<run::Event> out;
  std::string type;
  Statement& rows = connection.statement(sql().events).add(run_seq, after, limit);
  const Reset reset(rows);
  while (rows.row()) {
    run::Event& event = out.emplace_back();
    event.run_seq = run_seq;
    rows.take(event.seq, event.at, type, event.step, event.data);
    event.type = event_type(type);
  }
  if (!out.empty()) return out;
  std::optional<PendingRun> packed = unpack(connection, run_seq);
  return packed ? to_events(std::move(*packed), after, limit) : out;
}

std::vector<Breaker> load_breakers(Connection& connection) {
  std::vector<Breaker> out;
  Statement& rows = connection.statement(sql().breakers);
  const Reset reset(rows);
  while (rows.row()) {
    Breaker& breaker = out.emplace_back();
    rows.take(breaker.server, breaker.tool);
    breaker_state(breaker, taking(rows));
  }
  return out;
}

std::vector<RateGate> load_gates(Connection& connection) {
  std::vector<RateGate> out;
  Statement& rows = connection.statement(sql().gates);
  const Reset reset(rows);
  while (rows.row()) {
    RateGate& gate = out.emplace_back();
    rows.take(gate.server, gate.until, gate.hits);
  }
  return out;
}

std::vector<LatencyRow> load_latencies(Connection& connection) {
  std::vector<LatencyRow> out;
  Statement& rows = connection.statement(sql().latencies);
  const Reset reset(rows);
  while (rows.row()) {
    LatencyRow& row = out.emplace_back();
    std::optional<Duration> sized;
    std::optional<Instant> since;
    rows.take(row.server, row.tool, row.slice.slot, row.slice.start, row.slice.samples, sized, since);
    if (sized && since) row.sized.emplace(*sized, *since);
  }
  return out;
}

}  // namespace holdfast::ledger::sqlite
