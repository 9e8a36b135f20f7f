#pragma once
// SQLite's file system on a simulated disk.
#include <sqlite3.h>

#include <memory>
#include <string>

#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/file.h"
#include "ledger/sqlite/open.h"
#include "support/sim_disk.h"

namespace holdfast::sim {

/// Registers `disk` with SQLite under a name of its own for as long as it lives; it must outlive every
/// connection. Time and randomness are the simulation's: `now_ms` is what SQLite is told.
class Vfs {
 public:
  explicit Vfs(Disk& disk);
  Vfs(const Vfs&) = delete;
  Vfs& operator=(const Vfs&) = delete;
  ~Vfs();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Disk& disk() { return *disk_; }
  void set_time(std::int64_t now_ms) { now_ms_ = now_ms; }
  [[nodiscard]] std::int64_t time() const { return now_ms_; }
  /// Starts SQLite's own generator (of the whole process) anew from `seed`: what it writes from here on is
  /// repeatable.
  void seed_sqlite(std::uint64_t seed);
  void fill_random(char* out, int size);
  void slept(int microseconds) { slept_us_ += static_cast<std::uint64_t>(microseconds); }

 private:
  Disk* disk_;
  std::string name_;
  sqlite3_vfs vfs_{};
  std::unique_ptr<Random> random_;
  std::int64_t now_ms_ = 1'800'000'000'000;
  std::uint64_t slept_us_ = 0;
};

/// The folder of a simulated disk.
class SimFolder final : public ledger::sqlite::Folder {
 public:
  explicit SimFolder(Disk& disk) : disk_(disk) {}
  bool exists(const std::string& path) override { return disk_.exists(path); }
  void remove(const std::string& path) override;
  Result<void> create_private(const std::string& path) override;
  Result<void> sync(const std::string& path) override;
  Result<void> sync_folder_of(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;

 private:
  Disk& disk_;
};

inline constexpr const char* kDatabase = "/holdfast.db";

/// The real ledger, writer and readers, on the file kDatabase of this disk, made and migrated as any other. Errors: those of open_sqlite().
[[nodiscard]] Result<ledger::Opened> open_ledger(Vfs& vfs, ledger::sqlite::Tuning tuning = {});

}  // namespace holdfast::sim
