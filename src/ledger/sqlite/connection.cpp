#include "ledger/sqlite/connection.h"

#include <cerrno>

#include "core/canary.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr int kBusyWaitMs =
    2'000;  // another process may read or, for a moment, recover; only an operator's own tool would write

int open_flags(Role role) {
  // A reader's handle is read-only, so that closing the last one can never checkpoint beside the writer.
  return (role == Role::writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
}

void configure(sqlite3* db, int option, int value) {
  int now = -1;
  const int code = sqlite3_db_config(db, option, value, &now);
  if (code != SQLITE_OK) throw SQLite::Exception(db, code);
  if (now != value) throw SQLite::Exception("SQLite does not accept a setting", SQLITE_MISUSE);
}

void lower_limits(sqlite3* db) {
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 64);
  sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 4);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 50);
  sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, 8);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 64 * 1024);
  sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 8);
  sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 64);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 25'000);
  sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
}

void harden(sqlite3* db) {
  configure(db, SQLITE_DBCONFIG_DEFENSIVE, 1);
  configure(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  configure(db, SQLITE_DBCONFIG_DQS_DDL, 0);
  configure(db, SQLITE_DBCONFIG_DQS_DML, 0);
  configure(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0);
  configure(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  lower_limits(db);
}

bool is_broken(int code) {
  switch (code) {
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_CORRUPTFS:
    case SQLITE_IOERR_DATA:
      return true;
    default:
      break;
  }
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:  // the engine's picture of the ledger is wrong
    case SQLITE_MISUSE:
    case SQLITE_MISMATCH:
      return true;
    default:
      return false;
  }
}

}  // namespace

Connection::Connection(const std::string& path, Role role, int cache_kib, const std::string& vfs)
    : database_(path, open_flags(role), kBusyWaitMs, vfs) {
  sqlite3_extended_result_codes(handle(), 1);
  harden(handle());
  execute("PRAGMA mmap_size = 0");  // an I/O error under a mapping is a signal, not a result code
  execute("PRAGMA temp_store = MEMORY");
  execute("PRAGMA cache_size = -" + std::to_string(cache_kib));
  execute(role == Role::writer ? "PRAGMA synchronous = FULL" : "PRAGMA query_only = ON");
  if (canary(Canary::skip_fsync)) execute("PRAGMA synchronous = OFF");
}

Statement& Connection::statement(const std::string& text) {
  const auto found = statements_.find(&text);
  if (found != statements_.end()) return found->second;
  return statements_.emplace(&text, Statement(handle(), text)).first->second;
}

void Connection::execute(const std::string& text) {
  const int code = sqlite3_exec(handle(), text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw SQLite::Exception(handle(), code);
}

std::int64_t Connection::number(const std::string& text) {
  Statement query(handle(), text);
  std::int64_t value = 0;
  if (query.row()) query.take(value);
  return value;
}

std::string Connection::text(const std::string& text) {
  Statement query(handle(), text);
  std::string value;
  if (query.row()) query.take(value);
  return value;
}

Snapshot::Snapshot(Connection& connection) : connection_(connection) {
  connection_.statement(sql().begin_read).run();
}

void Snapshot::begin_now() {
  Statement& query = connection_.statement(sql().folded);
  const Reset reset(query);
  (void)query.row();
}

Snapshot::~Snapshot() {
  try {
    connection_.statement(sql().commit).run();
  } catch (const SQLite::Exception&) {
    // A read transaction has nothing to lose; the next BEGIN would tell if it were still open.
  }
}

Error to_error(const std::string& path, const SQLite::Exception& failure, sqlite3* db) {
  const int extended = failure.getExtendedErrorCode();
  const int code = extended > 0 ? extended : failure.getErrorCode();
  const int system_error = db ? sqlite3_system_errno(db) : 0;
  const bool io_error = (code & 0xff) == SQLITE_IOERR;
  const bool full =
      (code & 0xff) == SQLITE_FULL || (io_error && (system_error == ENOSPC || system_error == EDQUOT));
  // A failed fsync is final even when its cause is a full disk: what it was to save may be gone from the page
  // cache.
  const char* word = is_broken(code) ? "storage_broken" : full ? "storage_full" : "storage_error";
  return Error{word, path + ": " + failure.what() + " (SQLite code " + std::to_string(code) + ")", {}};
}

}  // namespace holdfast::ledger::sqlite
