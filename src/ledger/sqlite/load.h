#pragma once
// From rows to values. Everything here runs inside a transaction of its caller and throws SQLite::Exception.
#include <optional>
#include <string_view>
#include <vector>

#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

/// The static text of a stored event's type.
[[nodiscard]] std::string_view event_type(std::string_view stored);
void mark_in_flight(run::Step& step, const run::Attempt& attempt);
/// 0 when there is no such run.
[[nodiscard]] std::int64_t run_seq_of(Connection& connection, std::string_view run_id);
/// Reads a run from a row of columns (seq, fixed, state); without steps.
void take_run(Statement& row, run::Run& out);
/// Reads an attempt from a row of columns (step, n, state).
void take_attempt(Statement& row, std::int64_t run_seq, run::Attempt& out);

/// Adds steps, writes and, to a run that is not settled, what is in flight; the attempts in flight are
/// appended to `in_flight` where given.
void load_steps(Connection& connection, run::Run& run, std::vector<run::Attempt>* in_flight = nullptr);
/// Steps and writes as a listing shows them: without args, results and requests.
void load_listed_steps(Connection& connection, run::Run& run);
/// nullopt when there is no such step.
[[nodiscard]] std::optional<run::Step> load_step(Connection& connection, std::int64_t run_seq,
                                                 std::uint32_t step);

/// A run with its steps; nullopt when there is none.
[[nodiscard]] std::optional<run::Run> load_run(Connection& connection, std::string_view run_id);
/// nullopt when there is no such attempt.
[[nodiscard]] std::optional<run::Attempt> load_attempt(Connection& connection, std::int64_t run_seq, std::uint32_t step,
                                                       std::uint32_t n);
/// In the order in which they were begun, `after_row` of them passed over.
[[nodiscard]] std::vector<run::Attempt> load_attempts(Connection& connection, std::int64_t run_seq, std::int64_t after_row,
                                                      std::uint32_t limit);
[[nodiscard]] std::vector<run::Event> load_events(Connection& connection, std::int64_t run_seq, std::int64_t after,
                                                  std::uint32_t limit);
[[nodiscard]] std::vector<Breaker> load_breakers(Connection& connection);
[[nodiscard]] std::vector<RateGate> load_gates(Connection& connection);
[[nodiscard]] std::vector<LatencyRow> load_latencies(Connection& connection);

}  // namespace holdfast::ledger::sqlite
