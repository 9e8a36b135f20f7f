#include "ledger/sqlite/backup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/crash_point.h"
#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/file.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr int kCacheKib = 1024;

Error exists(const std::string& path) {
  return Error{"exists", "the backup file " + path + " exists already; name a new one", {}};
}

/// In one step, so that the copy is one snapshot and a busy writer cannot make it start again for ever. The
/// WAL grows meanwhile.
Result<void> copy_pages(const std::string& from, const std::string& to) {
  try {
    Connection source(from, Role::reader, kCacheKib);
    SQLite::Database copy(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX);
    copy.exec("PRAGMA journal_mode = OFF");  // a copy that fails is thrown away
    copy.exec("PRAGMA synchronous = OFF");   // synced below, as a whole
    sqlite3_backup* backup = sqlite3_backup_init(copy.getHandle(), "main", source.handle(), "main");
    if (!backup) return std::unexpected(to_error(to, SQLite::Exception(copy.getHandle()), copy.getHandle()));
    const int stepped = sqlite3_backup_step(backup, -1);
    const int finished = sqlite3_backup_finish(backup);
    if (stepped == SQLITE_DONE && finished == SQLITE_OK) return {};
    return std::unexpected(
        to_error(to, SQLite::Exception(copy.getHandle(), stepped == SQLITE_DONE ? finished : stepped),
                 copy.getHandle()));
  } catch (const SQLite::Exception& failure) {
    return std::unexpected(to_error(to, failure, nullptr));
  }
}

/// Gives the finished copy its name; never takes the place of another file.
Result<void> publish(const std::string& made, const std::string& to) {
  if (const Result<void> synced = sync_path(made); !synced) return synced;
  if (link(made.c_str(), to.c_str()) != 0) {
    if (errno == EEXIST) return std::unexpected(exists(to));
    return std::unexpected(storage_error(to, "cannot name the backup", errno));
  }
  unlink(made.c_str());
  return sync_path(folder_of(to));
}

}  // namespace

Result<void> copy_database(const std::string& from, const std::string& to) {
  const Result<std::string> path = resolve_path(to);
  if (!path) return std::unexpected(path.error());
  struct stat info {};
  if (lstat(path->c_str(), &info) == 0) return std::unexpected(exists(to));
  const std::string made = *path + ".partial";
  if (const Result<void> created = create_private(made); !created) return created;
  Result<void> done = copy_pages(from, made);
  crash_point(CrashPoint::backup_copied);
  if (done) done = mark_backup(made);
  if (done) done = publish(made, *path);
  if (!done) unlink(made.c_str());
  return done;
}

}  // namespace holdfast::ledger::sqlite
