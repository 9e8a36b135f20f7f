#pragma once
// A disk in memory that forgets what was not synced when its power is cut. No threads.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/random.h"

namespace holdfast::sim {

enum class Operation : std::uint8_t { open, read, write, truncate, sync, remove, rename };

/// What became of one write that was not synced when the power was cut. Torn: some of its sectors are on the
/// disk and some are not. Garbled: some of its sectors hold bytes that nobody wrote.
enum class Fate : std::uint8_t { applied, dropped, torn, garbled };
/// Asked once for each pending write, oldest first over all files in the order of their names.
using Fates = std::function<Fate(std::size_t index, std::size_t count)>;
[[nodiscard]] Fates every(Fate fate);

struct Fault {
  enum class Kind {
    power_cut,   // operation `at` may have reached the disk in part; everything after it fails
    kill,        // the process dies before operation `at`
    io_error,    // operations `at` to `until` fail with the code of their kind
    short_read,  // a read among them ends before its first byte
    disk_full,   // writes among them that would grow a file fail
  };
  Kind kind = Kind::power_cut;
  std::uint64_t at = 1;  // operations are counted from 1, over all files and lives
  std::uint64_t until = 0;  // 0: as `at`
  std::optional<Operation> only = std::nullopt;  // operations of this kind alone
};
inline constexpr std::uint64_t kForever = ~std::uint64_t{0};

/// The bytes of a file, shared with copies of it until one of them is written.
class Bytes {
 public:
  Bytes() : bytes_(std::make_shared<std::string>()) {}
  Bytes& operator=(std::string bytes) {
    bytes_ = std::make_shared<std::string>(std::move(bytes));
    return *this;
  }
  [[nodiscard]] const std::string& operator*() const { return *bytes_; }
  [[nodiscard]] const std::string* operator->() const { return bytes_.get(); }
  [[nodiscard]] std::string& to_write() {
    if (bytes_.use_count() > 1) bytes_ = std::make_shared<std::string>(*bytes_);
    return *bytes_;
  }

 private:
  std::shared_ptr<std::string> bytes_;
};

/// A file: what processes see, and how to get from there to what is on the platters. A write costs one copy and a
/// sync nothing; who pays is the power cut, which is rare.
struct Inode {
  /// Not synced yet. What it put there is in `live`, what it covered in `covered`.
  struct Pending {
    std::uint64_t offset = 0;  // of a truncation: the new size
    std::uint64_t size = 0;
    std::uint64_t size_before = 0;  // of the file
    std::size_t covered = 0;        // where its part of `covered` begins
    bool truncates = false;
  };
  std::string name;
  Bytes live;
  std::vector<Pending> pending;
  std::string covered;
  std::optional<std::string> durable;  // once a failed sync has lost something: no list of writes leads there

  // Of the processes that have it open: gone with them.
  std::vector<std::unique_ptr<char[]>> shared_memory;
  std::array<int, 8> shm_readers{};
  std::array<bool, 8> shm_writer{};
  int readers = 0;  // SHARED locks
  bool reserved = false, pending_lock = false, exclusive = false;
};

class Disk {
 public:
  static constexpr std::size_t kSector = 512;

  explicit Disk(std::uint64_t seed);
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // --- files, seen from outside the machine ---
  void put(const std::string& name, std::string bytes = {});  // durable at once
  [[nodiscard]] bool exists(const std::string& name) const { return names_.contains(name); }
  [[nodiscard]] std::string content(const std::string& name) const;  // empty when there is none
  [[nodiscard]] std::uint64_t size(const std::string& name) const;
  /// Nothing that was written to this file would be lost in a power cut (that it was shortened may be).
  [[nodiscard]] bool synced(const std::string& name) const;
  /// A digest over names and contents, as processes see them.
  [[nodiscard]] std::uint64_t digest() const;
  /// The disk that would be found if the power were cut now; this one stays as it is.
  [[nodiscard]] std::unique_ptr<Disk> after_power_cut(std::uint64_t seed, const Fates& fates) const;

  // --- faults ---
  void inject(Fault fault) { faults_.push_back(fault); }
  void mend() { faults_.clear(); }
  /// Takes the faults out, for somebody who looks from outside, and puts them back.
  [[nodiscard]] std::vector<Fault> take_faults() { return std::exchange(faults_, {}); }
  void put_faults(std::vector<Fault> faults) { faults_ = std::move(faults); }
  /// The default draws each fate from the disk's own stream.
  void set_fates(Fates fates) { fates_ = std::move(fates); }
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  /// Each operation since this was called, the first one's number being `operations() + 1` of that moment.
  void keep_log() { log_.emplace(); }
  [[nodiscard]] const std::vector<Operation>& log() const { return *log_; }
  struct Counts {
    std::uint64_t power_cuts = 0, kills = 0, io_errors = 0, sync_errors = 0, short_reads = 0, full = 0;
    std::uint64_t applied = 0, dropped = 0, torn = 0, garbled = 0;  // pending writes at power cuts
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  // --- lives ---
  [[nodiscard]] bool running() const { return running_; }
  /// Pending writes meet their fates. Every operation fails until boot().
  void cut_power();
  /// The process dies: what it wrote stays, synced or not; its locks and shared memory are gone.
  void kill();
  void boot();
  /// Handles of an earlier life stay dead.
  [[nodiscard]] std::uint64_t life() const { return life_; }

  // --- for the file system above ---
  enum class Go : std::uint8_t { go, fail, cut_short, full, dead };
  /// Counts an operation and tells what becomes of it. `file` and the write's place are needed for a power
  /// cut in the middle of it.
  [[nodiscard]] Go begin(Operation operation, Inode* file = nullptr, std::string_view bytes = {},
                         std::uint64_t offset = 0);
  [[nodiscard]] std::shared_ptr<Inode> find(const std::string& name) const;
  [[nodiscard]] std::shared_ptr<Inode> make(const std::string& name);
  void remove(const std::string& name, bool sync_folder);
  void rename(const std::string& from, const std::string& to);
  void sync_folder() { durable_names_ = names_; }
  void write(Inode& file, std::string_view bytes, std::uint64_t offset);
  void truncate(Inode& file, std::uint64_t size);
  void sync(Inode& file);
  /// A sync that failed: some of what was pending is lost for good, although processes still see it.
  void lose_pending(Inode& file);
  [[nodiscard]] Random& random() { return *random_; }

 private:
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  void stop();
  struct Write {
    std::uint64_t offset = 0;
    std::string bytes;
    bool truncates = false;
  };
  /// What is on the platters, and the writes that lie between it and what processes see.
  struct Platters {
    std::string durable;
    std::vector<Write> pending;
  };
  [[nodiscard]] static Platters platters(const Inode& file);
  static void apply(std::string& to, const Write& write, Fate fate, Random& random);

  std::unique_ptr<Random> random_;
  Names names_;          // as processes see the folder
  Names durable_names_;  // as it is on the platters
  std::vector<Fault> faults_;
  Fates fates_;
  std::uint64_t operations_ = 0;
  std::optional<std::vector<Operation>> log_;
  Counts counts_;
  bool running_ = true;
  std::uint64_t life_ = 1;
};

}  // namespace holdfast::sim
