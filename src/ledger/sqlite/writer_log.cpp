// When what is committed is tidied up: folded into its tables, and moved from the WAL into the database.
#include <spdlog/spdlog.h>

#include "core/crash_point.h"
#include "ledger/sqlite/writer.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr std::uint64_t kFrameBytes = 4096 + 24;
constexpr std::chrono::minutes kAlarmPause{1};

}  // namespace

/// Passive first: it waits for nobody, and the next commit starts the WAL anew when no reader is left behind.
/// When that has not happened for long, wait a moment for the readers.
void SqliteLedger::checkpoint_if_due() {
  const std::lock_guard lock(mutex_);
  if (journal_.used() >= tuning_.fold_slots || pending_.bytes() >= tuning_.fold_bytes) {
    const Result<void> folded = fold(true);
    if (!folded && !fold_failing_) spdlog::error("the journal can't be folded: {}", folded.error().message);
    fold_failing_ = !folded;
  }
  if (frames_ < frames_at_checkpoint_) {  // started anew since
    frames_at_checkpoint_ = 0;
    due_at_ = tuning_.checkpoint_frames;
  }
  if (!broken_ && frames_ >= due_at_)
    checkpoint(frames_ < tuning_.restart_frames ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE);
  watch_wal();
}

/// A WAL grows without bound only while somebody reads an old state of it, or while it can't be moved into the database.
void SqliteLedger::watch_wal() {
  const std::uint64_t bytes = frames_ * kFrameBytes;
  if (bytes < tuning_.wal_alarm_bytes) {
    if (wal_alarmed_) spdlog::info("the WAL is small again: {}", path_);
    wal_alarmed_.reset();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (wal_alarmed_ && now - *wal_alarmed_ < kAlarmPause) return;
  wal_alarmed_ = now;
  spdlog::warn("the WAL has grown to {} MiB and is not getting smaller: {}", bytes >> 20, path_);
}

void SqliteLedger::checkpoint(int mode) {
  constexpr int kReaderWaitMs = 50;
  constexpr int kWriterWaitMs = 2'000;
  int in_wal = -1;
  int moved = -1;
  crash_point(CrashPoint::checkpoint_begun);
  sqlite3_busy_timeout(connection_.handle(), kReaderWaitMs);
  const int code = sqlite3_wal_checkpoint_v2(connection_.handle(), nullptr, mode, &in_wal, &moved);
  sqlite3_busy_timeout(connection_.handle(), kWriterWaitMs);
  crash_point(CrashPoint::checkpoint_done);
  if (code == SQLITE_OK && in_wal == 0) frames_ = 0;  // truncated
  frames_at_checkpoint_ = frames_;
  due_at_ = frames_ + tuning_.checkpoint_frames;
  note_checkpoint(code);
}

void SqliteLedger::note_checkpoint(int code) {
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) {
    const Error error = to_error(path_, SQLite::Exception(connection_.handle(), code), connection_.handle());
    if (!checkpoint_failing_) spdlog::error("checkpoint failed: {}", error.message);
    if (error.code == "storage_broken") break_off(error);
    checkpoint_failing_ = true;
  } else if (checkpoint_failing_) {
    spdlog::info("checkpoint works again: {}", path_);
    checkpoint_failing_ = false;
  }
}

std::uint64_t SqliteLedger::wal_bytes() const {
  return size_of(path_ + "-wal");
}

}  // namespace holdfast::ledger::sqlite
