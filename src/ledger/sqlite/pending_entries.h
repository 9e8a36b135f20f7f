#pragma once
// What a record is made of: entries, each a kind and what changed against the row as it was known, or against a row of zeros.
#include "ledger/sqlite/pending.h"
#include "ledger/sqlite/record.h"

namespace holdfast::ledger::sqlite::entries {

enum class Entry : std::uint8_t { new_run = 1, run, new_step, step, attempt, event };

inline constexpr auto kRunFixed = [](auto& row, auto&& f) { run_fixed(row, f); };
inline constexpr auto kRunState = [](auto& row, auto&& f) { run_state(row, f); };
inline constexpr auto kStepFixed = [](auto& row, auto&& f) { step_fixed(row, f); };
inline constexpr auto kStepState = [](auto& row, auto&& f) { step_state(row, f); };
inline constexpr auto kWriteState = [](auto& row, auto&& f) { write_state(row, f); };
inline constexpr auto kAttemptState = [](auto& row, auto&& f) { attempt_state(row, f); };

template <class Row, class... List>
Row zeroed(List... lists) {
  Row row;
  (lists(row, Zero{}), ...);
  return row;
}

inline const run::Run& no_run() {
  static const run::Run row = zeroed<run::Run>(kRunFixed, kRunState);
  return row;
}
inline const run::Step& no_step() {
  static const run::Step row = zeroed<run::Step>(kStepFixed, kStepState);
  return row;
}
inline const run::Write& no_write() {
  static const run::Write row = zeroed<run::Write>(kWriteState);
  return row;
}
inline const run::Attempt& no_attempt() {
  static const run::Attempt row = zeroed<run::Attempt>(kAttemptState);
  return row;
}

inline void require(bool holds) {
  if (!holds) throw SQLite::Exception("ledger and memory disagree: no such step", SQLITE_CORRUPT);
}

template <class Run>
auto* known_attempt(Run* known, std::uint32_t step, std::uint32_t n) {
  decltype(known->attempts.data()) none = nullptr;
  if (!known) return none;
  for (auto& row : known->attempts)
    if (row.attempt.n == n && row.attempt.step == step) return &row;
  return none;
}

}  // namespace holdfast::ledger::sqlite::entries
