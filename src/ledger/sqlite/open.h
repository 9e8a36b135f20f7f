#pragma once
// What tests and the simulator may set beside the public options.
#include <cstdint>
#include <string>

#include "holdfast/ledger/ledger.h"

namespace holdfast::ledger::sqlite {

class Folder;  // file.h

struct Tuning {
  int writer_cache_kib = 8 * 1024;
  int reader_cache_kib = 1024;
  std::uint64_t checkpoint_frames = 1024;   // a passive checkpoint is due beyond this: 4 MiB
  std::uint64_t restart_frames = 4 * 1024;  // and one that waits for readers beyond this
  std::uint64_t wal_alarm_bytes = 100 * 1024 * 1024;  // a WAL beyond this is worth a line in the log
  std::uint32_t max_pages = 0;              // the database may not grow beyond; 0: no limit
  std::string vfs;                          // SQLite's name of the file system; empty: the real one
  std::int64_t max_answers = 10'000;        // cached answers kept
  std::int64_t max_answer_bytes = 64 * 1024 * 1024;  // their results together
};

[[nodiscard]] Result<Opened> open_tuned(const Options& options, const Tuning& tuning);
/// On the file system `tuning.vfs`, where no other process can be: a file that is not there is made in `folder` as on
/// the real one; an existing one is migrated where it stands. The path is taken as it is.
[[nodiscard]] Result<Opened> open_in_vfs(const Options& options, const Tuning& tuning, Folder& folder);

}  // namespace holdfast::ledger::sqlite
