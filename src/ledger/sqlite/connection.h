#pragma once
// One connection to the ledger's file with its settings and its prepared statements.
#include <SQLiteCpp/Database.h>

#include <string>
#include <unordered_map>

#include "holdfast/core/error.h"
#include "ledger/sqlite/statement.h"

namespace holdfast::ledger::sqlite {

enum class Role { writer, reader };

/// Used by one thread at a time. Opening throws SQLite::Exception. `vfs` empty: the real file system.
class Connection {
 public:
  Connection(const std::string& path, Role role, int cache_kib, const std::string& vfs = {});

  /// The prepared statement for one of sql()'s texts (known by its address), made at first use.
  [[nodiscard]] Statement& statement(const std::string& text);
  /// Executes SQL without parameters and drops its rows.
  void execute(const std::string& text);
  /// The one integer, or the one text, that a query gives.
  [[nodiscard]] std::int64_t number(const std::string& text);
  /// The same of one of sql()'s texts, with its parameters; 0 for no row.
  template <class... T>
  [[nodiscard]] std::int64_t number_of(const std::string& text, const T&... parameters) {
    Statement& query = statement(text).add(parameters...);
    const Reset reset(query);
    std::int64_t value = 0;
    if (query.row()) query.take(value);
    return value;
  }
  [[nodiscard]] std::string text(const std::string& text);
  /// Nothing more is moved from the log into the database, not on closing either: after a failed sync nobody knows what of the log is on the disk.
  void leave_log() { sqlite3_db_config(handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }
  [[nodiscard]] sqlite3* handle() { return database_.getHandle(); }

 private:
  SQLite::Database database_;
  std::unordered_map<const std::string*, Statement> statements_;  // destroyed before the database
};

/// A read transaction: every query inside sees the same state.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection);
  /// From here on, and not from the first query on.
  void begin_now();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

 private:
  Connection& connection_;
};

/// The Error for a failure on this connection: `storage_full`, `storage_broken` (a failed fsync, a corrupt
/// file, a row that is not there) or `storage_error`. Call before anything else happens on the connection.
[[nodiscard]] Error to_error(const std::string& path, const SQLite::Exception& failure, sqlite3* db);

}  // namespace holdfast::ledger::sqlite
