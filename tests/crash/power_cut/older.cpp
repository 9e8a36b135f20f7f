#include "power_cut/older.h"

#include <catch2/catch.hpp>
#include <vector>

#include "ledger/sqlite/migrate.h"
#include "power_cut/allocations.h"
#include "support/sim_vfs.h"

namespace holdfast::sweep {

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// A database of a disk of its own, without the ledger's limits.
class Raw {
 public:
  explicit Raw(const std::string& vfs) {
    if (sqlite3_open_v2(sim::kDatabase, &db_, SQLITE_OPEN_READWRITE, vfs.c_str()) != SQLITE_OK) FAIL(sqlite3_errmsg(db_));
  }
  ~Raw() { sqlite3_close(db_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  Rows rows(const std::string& sql) {
    Rows out;
    const auto take = [](void* to, int count, char** values, char**) {
      auto& row = static_cast<Rows*>(to)->emplace_back();
      for (int i = 0; i < count; ++i) row.emplace_back(values[i] ? values[i] : "");
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), take, &out, nullptr) != SQLITE_OK) FAIL(sql << ": " << sqlite3_errmsg(db_));
    return out;
  }

 private:
  sqlite3* db_ = nullptr;
};

void copy_table(Raw& from, Raw& to, const std::string& table) {
  std::string columns, quoted;
  for (const auto& column : to.rows("SELECT name FROM pragma_table_info('" + table + "')")) {
    columns += (columns.empty() ? "" : ", ") + column.front();
    quoted += (quoted.empty() ? "" : " || ', ' || ") + ("quote(" + column.front()) + ")";
  }
  for (const auto& row : from.rows("SELECT " + quoted + " FROM " + table))
    (void)to.rows("INSERT INTO " + table + " (" + columns + ") VALUES (" + row.front() + ")");
}

}  // namespace

std::string older_image(const std::string& image, std::uint32_t version) {
  const Allocations::Own own;
  sim::Disk today(1), then(1);
  sim::Vfs today_vfs(today), then_vfs(then);
  today.put(sim::kDatabase, image);
  then.put(sim::kDatabase);
  {
    ledger::sqlite::Connection connection(sim::kDatabase, ledger::sqlite::Role::writer, 1024, then_vfs.name());
    migrate(connection, ledger::sqlite::migrations().first(version));
    connection.execute("PRAGMA journal_mode = WAL");
  }
  {
    Raw from(today_vfs.name()), to(then_vfs.name());
    for (const auto& table : to.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"))
      copy_table(from, to, table.front());
  }
  return then.content(sim::kDatabase);
}

}  // namespace holdfast::sweep
