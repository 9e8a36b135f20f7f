#include "ledger/sqlite/migrate.h"

#include <array>

#include "core/crash_point.h"
#include "ledger/sqlite/file.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr auto kMigrations = std::to_array<Migration>({
#include "migrations.inc"
});

void apply(Connection& connection, const Migration& step) {
  connection.execute("BEGIN IMMEDIATE");
  try {
    connection.execute(step.sql);
    if (connection.number("PRAGMA application_id") == 0)  // a backup's mark stays
      connection.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    connection.execute("PRAGMA user_version = " + std::to_string(step.version));
    crash_point(CrashPoint::migrating);
    connection.execute("COMMIT");
  } catch (...) {
    if (sqlite3_get_autocommit(connection.handle()) == 0)
      sqlite3_exec(connection.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace

std::span<const Migration> migrations() {
  return kMigrations;
}

std::uint32_t newest_version() {
  return kMigrations.back().version;
}

void migrate(Connection& connection, std::span<const Migration> steps) {
  const std::int64_t present = connection.number("PRAGMA user_version");
  for (const Migration& step : steps) {
    if (step.version > present) apply(connection, step);
  }
}

}  // namespace holdfast::ledger::sqlite
