#pragma once
// The steps from one schema to the next.
#include <span>

#include "holdfast/core/error.h"
#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

struct Migration {
  std::uint32_t version;
  const char* name;
  const char* sql;
};

/// Every migration that this binary knows, ascending from version 1.
[[nodiscard]] std::span<const Migration> migrations();
[[nodiscard]] std::uint32_t newest_version();

/// Brings the schema up, each migration in one transaction with its version: a kill at any instant leaves the
/// one before or the one after. Throws SQLite::Exception; the migrations before the one that failed stay.
void migrate(Connection& connection, std::span<const Migration> steps);

}  // namespace holdfast::ledger::sqlite
