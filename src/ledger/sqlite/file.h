#pragma once
// The database as a file: who may open it, and whether it is ours at all.
#include <cstdint>
#include <string>

#include "holdfast/core/error.h"

namespace holdfast::ledger::sqlite {

/// "Hold" in ASCII; marks a file as a Holdfast ledger.
inline constexpr std::uint32_t kApplicationId = 0x486F6C64;
/// "Holb": a backup of one, until a server adopts it. Binaries that know no better refuse it as foreign.
inline constexpr std::uint32_t kBackupId = 0x486F6C62;

/// An open file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// The folder of `path` exists, and `path` with its links resolved. Error `storage_error` names the folder
/// that doesn't exist.
[[nodiscard]] Result<std::string> resolve_path(const std::string& path);

/// Holds the ledger for this process alone, by a lock on `<path>.lock` that the kernel drops with the
/// process. Error `database_locked` names the holder's pid and the file. `made` tells that the lock file is
/// new.
struct Lock {
  Descriptor file;
  std::string path;
  bool made = false;
};
[[nodiscard]] Result<Lock> lock_database(const std::string& path);

/// What the first bytes of a file say, read without SQLite. Call only while this process has no connection to
/// the file: closing it drops the process's own POSIX locks on it.
struct Header {
  enum class Kind { absent, empty, ours, foreign };
  Kind kind = Kind::absent;
  std::uint32_t version = 0;  // of the schema, when ours; the WAL may hold a newer one
};
[[nodiscard]] Result<Header> read_header(const std::string& path);

/// Turns the closed database file at `path` into one that says it is a backup.
[[nodiscard]] Result<void> mark_backup(const std::string& path);

/// What making a database asks of its folder, beside what SQLite does itself. Tests put their own disk behind it.
class Folder {
 public:
  virtual ~Folder() = default;
  [[nodiscard]] virtual bool exists(const std::string& path) = 0;
  virtual void remove(const std::string& path) = 0;  // one that is not there is fine
  [[nodiscard]] virtual Result<void> create_private(const std::string& path) = 0;  // as the function below
  [[nodiscard]] virtual Result<void> sync(const std::string& path) = 0;            // as sync_path()
  [[nodiscard]] virtual Result<void> sync_folder_of(const std::string& path) = 0;
  [[nodiscard]] virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
};
[[nodiscard]] Folder& real_folder();

/// Creates an empty file with mode 0600 whatever the umask; an existing one is replaced.
[[nodiscard]] Result<void> create_private(const std::string& path);
/// Makes a file's content, or a folder's entries, survive a power cut.
[[nodiscard]] Result<void> sync_path(const std::string& path);
[[nodiscard]] std::string folder_of(const std::string& path);
/// Size in bytes, 0 when there is no such file.
[[nodiscard]] std::uint64_t size_of(const std::string& path);
[[nodiscard]] Error storage_error(const std::string& path, const std::string& what, int system_error);

}  // namespace holdfast::ledger::sqlite
