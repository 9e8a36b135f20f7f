#include "ledger/sqlite/statement.h"

#include <charconv>

namespace holdfast::ledger::sqlite {

std::string join_indices(const std::vector<std::uint32_t>& indices) {
  std::string out;
  for (const std::uint32_t index : indices) {
    if (!out.empty()) out += ',';
    out += std::to_string(index);
  }
  return out;
}

std::vector<std::uint32_t> split_indices(std::string_view text) {
  std::vector<std::uint32_t> out;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    std::uint32_t index = 0;
    const auto [rest, error] = std::from_chars(at, end, index);
    if (error != std::errc{} || (rest != end && *rest != ','))
      throw SQLite::Exception("a list of indices is malformed", SQLITE_CORRUPT);
    out.push_back(index);
    at = rest == end ? end : rest + 1;
  }
  return out;
}

Statement::Statement(sqlite3* db, const std::string& sql) : db_(db) {
  const int size = static_cast<int>(sql.size()) + 1;  // with its NUL, which spares SQLite a copy
  const int code = sqlite3_prepare_v3(db, sql.c_str(), size, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) throw SQLite::Exception(db, code);
}

void Statement::run() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_DONE) fail(code == SQLITE_ROW ? SQLITE_MISUSE : code);
  reset();
}

bool Statement::row() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    column_ = 0;
    return true;
  }
  if (code != SQLITE_DONE) fail(code);
  reset();
  return false;
}

void Statement::reset() {
  sqlite3_reset(statement_);
  parameter_ = 0;
}

void Statement::fail(int code) {
  const SQLite::Exception failure(db_, code);
  reset();
  throw failure;
}

}  // namespace holdfast::ledger::sqlite
