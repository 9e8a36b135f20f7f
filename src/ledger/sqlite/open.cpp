#include "ledger/sqlite/open.h"

#include <unistd.h>

#include "ledger/sqlite/file.h"
#include "ledger/sqlite/migrate.h"
#include "ledger/sqlite/reader.h"
#include "ledger/sqlite/write_again.h"
#include "ledger/sqlite/writer.h"

namespace holdfast::ledger::sqlite {
namespace {

Error foreign(const std::string& path) {
  return Error{"database_foreign",
               "the file " + path + " is not a Holdfast database; it was left as it is. Name another file",
               {}};
}

Error newer(const std::string& path, std::uint32_t version) {
  return Error{"schema_newer",
               "the database " + path + " has schema version " + std::to_string(version) +
                   ", and this program knows only up to " + std::to_string(newest_version()) +
                   "; it was left as it is. Use a newer holdfast",
               {}};
}

/// The schema's version with the WAL taken in; nothing is written to the database or the WAL.
Result<std::uint32_t> version_with_wal(const std::string& path, std::uint32_t in_header) {
  if (size_of(path + "-wal") == 0) return in_header;
  try {
    SQLite::Database look(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX);
    return static_cast<std::uint32_t>(look.execAndGet("PRAGMA user_version").getInt());
  } catch (const SQLite::Exception& failure) {
    return std::unexpected(to_error(path, failure, nullptr));
  }
}

/// SQLite would take the leftovers of a database that is gone for the new one's.
void remove_companions(Folder& folder, const std::string& path) {
  for (const char* suffix : {"-wal", "-shm", "-journal"}) folder.remove(path + suffix);
}

/// Makes a database with the current schema under another name and moves it into place: at `path` there is
/// nothing or all of it.
Result<void> create(const std::string& path, Folder& folder, const std::string& vfs) {
  const std::string fresh = path + ".new";
  remove_companions(folder, fresh);
  if (const Result<void> made = folder.create_private(fresh); !made) return made;
  try {
    Connection connection(fresh, Role::writer, 1024, vfs);
    migrate(connection, migrations());
    connection.execute("PRAGMA journal_mode = WAL");
  } catch (const SQLite::Exception& failure) {
    folder.remove(fresh);
    return std::unexpected(to_error(path, failure, nullptr));
  }
  if (const Result<void> synced = folder.sync(fresh); !synced) return synced;
  remove_companions(folder, path);
  if (const Result<void> named = folder.rename(fresh, path); !named) return named;
  return folder.sync_folder_of(path);
}

/// Leaves a database with a schema of at most this program's at `path`, or refuses.
Result<void> prepare(const std::string& path, bool may_create) {
  const Result<Header> header = read_header(path);
  if (!header) return std::unexpected(header.error());
  if (header->kind == Header::Kind::foreign) return std::unexpected(foreign(path));
  if (header->kind != Header::Kind::ours) {
    if (!may_create) return std::unexpected(Error{"storage_error", "there is no database " + path, {}});
    return create(path, real_folder(), {});
  }
  const Result<std::uint32_t> version =
      header->version > newest_version() ? header->version : version_with_wal(path, header->version);
  if (!version) return std::unexpected(version.error());
  if (*version > newest_version()) return std::unexpected(newer(path, *version));
  return {};
}

Result<Opened> open_prepared(const std::string& path, Lock lock, const Options& options,
                             const Tuning& tuning) {
  try {
    Opened opened;
    {
      Connection connection(path, Role::writer, 1024, tuning.vfs);
      connection.leave_log();  // a last life may have ended because the log could not be synced, and this may fail
      write_again(connection);
      connection.execute(
          "PRAGMA foreign_keys = OFF");  // a migration may rebuild a table that others refer to
      migrate(connection, migrations());
    }
    auto ledger = std::make_unique<SqliteLedger>(path, std::move(lock), tuning);
    opened.newest = ledger->newest();
    opened.reader = std::make_unique<SqliteReader>(path, options.readers, tuning, *ledger);
    opened.ledger = std::move(ledger);
    return opened;
  } catch (const SQLite::Exception& failure) {
    return std::unexpected(to_error(path, failure, nullptr));
  }
}

}  // namespace

Result<Opened> open_tuned(const Options& options, const Tuning& tuning) {
  const Result<std::string> path = resolve_path(options.path);
  if (!path) return std::unexpected(path.error());
  Result<Lock> lock = lock_database(*path);
  if (!lock) return std::unexpected(lock.error());
  if (const Result<void> ready = prepare(*path, options.create); !ready) {
    if (lock->made) unlink(lock->path.c_str());
    return std::unexpected(ready.error());
  }
  return open_prepared(*path, std::move(*lock), options, tuning);
}

Result<Opened> open_in_vfs(const Options& options, const Tuning& tuning, Folder& folder) {
  if (!folder.exists(options.path)) {
    if (const Result<void> made = create(options.path, folder, tuning.vfs); !made) return std::unexpected(made.error());
  }
  return open_prepared(options.path, Lock{Descriptor{}, {}, false}, options, tuning);
}

}  // namespace holdfast::ledger::sqlite

namespace holdfast::ledger {

Result<Opened> open_sqlite(const Options& options) {
  return sqlite::open_tuned(options, sqlite::Tuning{});
}

}  // namespace holdfast::ledger
