#include "ledger/sqlite/write_again.h"

#include <algorithm>
#include <set>

#include "core/canary.h"

namespace holdfast::ledger::sqlite {
namespace {

// Of SQLite's file format: https://www.sqlite.org/walformat.html
constexpr std::int64_t kLogHeadBytes = 32;
constexpr std::int64_t kFrameHeadBytes = 24;
constexpr int kIndexRegionBytes = 32 * 1024;
constexpr std::size_t kMovedAt = 96;  // in the log's index: how many frames a checkpoint has moved
constexpr int kCheckpointLock = 1;

constexpr std::int64_t kMostAtOnce = 64 * 1024;  // SQLite's files on Unix take less than 128 KiB

/// A file through SQLite's own handle: closing one of ours would drop the process's locks on it.
class File {
 public:
  File(Connection& connection, int which) {
    check(sqlite3_file_control(connection.handle(), "main", which, &file_));
  }
  [[nodiscard]] bool open() const { return file_ && file_->pMethods; }
  [[nodiscard]] std::int64_t size() {
    sqlite3_int64 bytes = 0;
    check(file_->pMethods->xFileSize(file_, &bytes));
    return bytes;
  }
  [[nodiscard]] std::uint32_t number_at(std::int64_t offset) {
    unsigned char bytes[4];
    check(file_->pMethods->xRead(file_, bytes, 4, offset));
    return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
           static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
  }
  void write_again(std::int64_t offset, std::int64_t bytes) {
    buffer_.resize(static_cast<std::size_t>(bytes));
    check(file_->pMethods->xRead(file_, buffer_.data(), static_cast<int>(bytes), offset));
    check(file_->pMethods->xWrite(file_, buffer_.data(), static_cast<int>(bytes), offset));
  }
  void sync() { check(file_->pMethods->xSync(file_, SQLITE_SYNC_NORMAL)); }
  /// Frames that checkpoints have moved, as the log's index in shared memory says.
  [[nodiscard]] std::uint32_t moved() {
    void volatile* index = nullptr;
    check(file_->pMethods->xShmMap(file_, 0, kIndexRegionBytes, 0, &index));
    return index ? *reinterpret_cast<std::uint32_t volatile*>(static_cast<char volatile*>(index) + kMovedAt) : 0;
  }
  void checkpoint_lock(int how) { check(file_->pMethods->xShmLock(file_, kCheckpointLock, 1, how | SQLITE_SHM_EXCLUSIVE)); }

 private:
  void check(int code) {
    if (code != SQLITE_OK) throw SQLite::Exception(std::string("cannot make the log durable: ") + sqlite3_errstr(code), code);
  }

  sqlite3_file* file_ = nullptr;
  std::string buffer_;
};

void write_log_again(File& log, std::int64_t size) {
  for (std::int64_t at = 0; at < size; at += kMostAtOnce) log.write_again(at, std::min(kMostAtOnce, size - at));
  log.sync();
}

/// A checkpoint that readers hold up syncs nothing, and is believed to have moved its frames as long as somebody keeps the index alive.
void write_moved_pages_again(File& log, File& database, std::uint32_t frames) {
  const std::int64_t page_bytes = log.number_at(8);
  std::set<std::int64_t> pages;
  for (std::int64_t frame = 0; frame < frames; ++frame)
    pages.insert(log.number_at(kLogHeadBytes + frame * (kFrameHeadBytes + page_bytes)));
  const std::int64_t there = database.size() / page_bytes;
  for (const std::int64_t page : pages)
    if (page <= there) database.write_again((page - 1) * page_bytes, page_bytes);
  database.sync();
}

}  // namespace

/// The log first: only from a log that is on the disk may anything be moved. That writing the same bytes over what is durable can't harm it is
/// what every commit relies on, whose first frame shares a sector with the last one of the commit before.
void write_again(Connection& connection) {
  if (canary(Canary::log_not_written_again)) return;
  connection.execute("BEGIN IMMEDIATE");  // nobody starts the log anew
  File log(connection, SQLITE_FCNTL_JOURNAL_POINTER);
  if (const std::int64_t size = log.open() ? log.size() : 0; size > 0) {
    File database(connection, SQLITE_FCNTL_FILE_POINTER);
    write_log_again(log, size);
    if (database.moved() > 0) {
      database.checkpoint_lock(SQLITE_SHM_LOCK);  // nobody moves pages: released with the connection, should this fail
      write_moved_pages_again(log, database, database.moved());
      database.checkpoint_lock(SQLITE_SHM_UNLOCK);
    }
  }
  connection.execute("ROLLBACK");
}

}  // namespace holdfast::ledger::sqlite
