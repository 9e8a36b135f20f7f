#include "ledger/sqlite/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::ledger::sqlite {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kIdAt = 68;  // the application id's place in the header

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string read_pid(int fd) {
  std::array<char, 24> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  std::string pid;
  for (ssize_t i = 0;
       i < size && text[static_cast<std::size_t>(i)] >= '0' && text[static_cast<std::size_t>(i)] <= '9';
       ++i) {
    pid += text[static_cast<std::size_t>(i)];
  }
  return pid.empty() ? "unknown" : pid;
}

/// Reads until `size` bytes or the end of the file.
ssize_t read_fully(int fd, char* out, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = pread(fd, out + got, size - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

class RealFolder final : public Folder {
 public:
  bool exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }
  void remove(const std::string& path) override { unlink(path.c_str()); }
  Result<void> create_private(const std::string& path) override { return sqlite::create_private(path); }
  Result<void> sync(const std::string& path) override { return sync_path(path); }
  Result<void> sync_folder_of(const std::string& path) override { return sync_path(folder_of(path)); }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) return std::unexpected(storage_error(to, "cannot name the database", errno));
    return {};
  }
};

}  // namespace

Folder& real_folder() {
  static RealFolder folder;
  return folder;
}

Error storage_error(const std::string& path, const std::string& what, int system_error) {
  const bool full = system_error == ENOSPC || system_error == EDQUOT;
  return Error{full ? "storage_full" : "storage_error",
               path + ": " + what + ": " + std::generic_category().message(system_error),
               {}};
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::uint64_t size_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

Result<std::string> resolve_path(const std::string& path) {
  std::error_code error;
  const std::string folder = folder_of(path);
  if (!std::filesystem::is_directory(folder, error)) {
    return std::unexpected(
        Error{"storage_error",
              "cannot open the database " + path + ": the folder " + folder + " does not exist",
              {}});
  }
  const std::filesystem::path resolved =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) return std::unexpected(storage_error(path, "cannot resolve the path", error.value()));
  if (std::filesystem::exists(resolved, error) && !std::filesystem::is_regular_file(resolved, error)) {
    return std::unexpected(
        Error{"storage_error", "cannot open the database " + path + ": it is not a file", {}});
  }
  return resolved.string();
}

Result<Lock> lock_database(const std::string& path) {
  Lock lock;
  lock.path = path + ".lock";
  int fd = open(lock.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  lock.made = fd >= 0;
  if (fd >= 0 && fchmod(fd, 0600) != 0) {
    const int error = errno;
    close(fd);
    return std::unexpected(storage_error(lock.path, "cannot set the mode of the lock file", error));
  }
  if (fd < 0 && errno == EEXIST) fd = open(lock.path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::unexpected(storage_error(lock.path, "cannot open the lock file", errno));
  lock.file = Descriptor(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(storage_error(lock.path, "cannot lock", errno));
    return std::unexpected(Error{
        "database_locked",
        "the database " + path + " is in use by process " + read_pid(fd) + " (lock file " + lock.path + ")",
        {}});
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return std::unexpected(storage_error(lock.path, "cannot write the lock file", errno));
  }
  return lock;
}

Result<Header> read_header(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return Header{};
  if (file.get() < 0) return std::unexpected(storage_error(path, "cannot open the database", errno));
  std::array<char, kHeaderBytes> bytes{};
  const ssize_t size = read_fully(file.get(), bytes.data(), bytes.size());
  if (size < 0) return std::unexpected(storage_error(path, "cannot read the database", errno));
  if (size == 0) return Header{Header::Kind::empty, 0};
  const std::uint32_t id = big_endian(bytes.data() + kIdAt);
  const bool ours = size == static_cast<ssize_t>(kHeaderBytes) &&
                    std::string_view(bytes.data(), kMagic.size()) == kMagic &&
                    (id == kApplicationId || id == kBackupId);
  return ours ? Header{Header::Kind::ours, big_endian(bytes.data() + 60)} : Header{Header::Kind::foreign, 0};
}

Result<void> mark_backup(const std::string& path) {
  std::array<char, 4> id{};
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<char>(kBackupId >> (24 - 8 * i));
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return std::unexpected(storage_error(path, "cannot open", errno));
  if (pwrite(file.get(), id.data(), id.size(), kIdAt) != static_cast<ssize_t>(id.size()))
    return std::unexpected(storage_error(path, "cannot mark the backup", errno));
  return {};
}

Result<void> create_private(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return std::unexpected(storage_error(path, "cannot replace", errno));
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return std::unexpected(storage_error(path, "cannot create", errno));
  if (fchmod(file.get(), 0600) != 0)
    return std::unexpected(storage_error(path, "cannot set the mode", errno));
  return {};
}

Result<void> sync_path(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::unexpected(storage_error(path, "cannot open", errno));
  if (fsync(file.get()) != 0) return std::unexpected(storage_error(path, "cannot sync", errno));
  return {};
}

}  // namespace holdfast::ledger::sqlite
