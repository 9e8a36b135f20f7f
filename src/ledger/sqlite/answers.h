#pragma once
// Cached answers: one for each call, bounded, the oldest out first.
#include <cstdint>
#include <optional>
#include <string_view>

#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

/// How many answers there are and how long their results are together; also the most of both.
struct AnswersKept {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
};

// All of them belong to the connection's thread and throw SQLite::Exception; `kept` is true only as long as
// the transaction that they run in is not rolled back.

/// Reads the whole table: once, when it is first needed.
[[nodiscard]] AnswersKept count_answers(Connection& connection);
void put_answer(Connection& connection, const CachedAnswer& answer, AnswersKept& kept);
void trim_answers(Connection& connection, AnswersKept& kept, const AnswersKept& most);
[[nodiscard]] std::optional<CachedAnswer> load_answer(Connection& connection, std::string_view server,
                                                      std::string_view tool, std::string_view arguments);

}  // namespace holdfast::ledger::sqlite
