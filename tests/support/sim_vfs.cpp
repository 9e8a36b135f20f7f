#include "support/sim_vfs.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace holdfast::sim {

namespace {

/// An open file of one life of the machine.
struct Handle {
  Vfs* vfs;
  std::shared_ptr<Inode> file;
  std::uint64_t life;
  bool remove_on_close;
  int lock = SQLITE_LOCK_NONE;
  std::uint32_t shm_shared = 0, shm_exclusive = 0;  // bits of the slots held

  [[nodiscard]] bool dead() const { return !vfs->disk().running() || life != vfs->disk().life(); }
};

struct File {
  sqlite3_file base;
  Handle* handle;
};

Handle& of(sqlite3_file* file) {
  return *reinterpret_cast<File*>(file)->handle;
}

void set_lock(Inode& file, int from, int to) {
  if (from >= SQLITE_LOCK_SHARED) --file.readers;
  if (from >= SQLITE_LOCK_RESERVED) file.reserved = false;
  if (from >= SQLITE_LOCK_PENDING) file.pending_lock = false;
  if (from >= SQLITE_LOCK_EXCLUSIVE) file.exclusive = false;
  if (to >= SQLITE_LOCK_SHARED) ++file.readers;
  if (to >= SQLITE_LOCK_RESERVED) file.reserved = true;
  if (to >= SQLITE_LOCK_PENDING) file.pending_lock = true;
  if (to >= SQLITE_LOCK_EXCLUSIVE) file.exclusive = true;
}

void release_shm(Handle& handle) {
  for (std::size_t i = 0; i < 8; ++i) {
    if (handle.shm_shared >> i & 1u) --handle.file->shm_readers[i];
    if (handle.shm_exclusive >> i & 1u) handle.file->shm_writer[i] = false;
  }
  handle.shm_shared = handle.shm_exclusive = 0;
}

int x_close(sqlite3_file* file) {
  Handle& handle = of(file);
  if (!handle.dead()) {
    release_shm(handle);
    set_lock(*handle.file, handle.lock, SQLITE_LOCK_NONE);
    if (handle.remove_on_close && !handle.file->name.empty())
      handle.vfs->disk().remove(handle.file->name, false);
  }
  delete &handle;
  return SQLITE_OK;
}

int x_read(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_READ;
  const Disk::Go go = handle.vfs->disk().begin(Operation::read, handle.file.get());
  if (go != Disk::Go::go && go != Disk::Go::cut_short) return SQLITE_IOERR_READ;
  const std::string& bytes = handle.file->live;
  const auto size = static_cast<std::size_t>(amount);
  const auto at = static_cast<std::size_t>(offset);
  const std::size_t there =
      go == Disk::Go::cut_short || at >= bytes.size() ? 0 : std::min(size, bytes.size() - at);
  if (there > 0) std::memcpy(out, bytes.data() + at, there);
  if (there == size) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + there, 0, size - there);
  return SQLITE_IOERR_SHORT_READ;
}

int x_write(sqlite3_file* file, const void* in, int amount, sqlite3_int64 offset) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_WRITE;
  const std::string_view bytes(static_cast<const char*>(in), static_cast<std::size_t>(amount));
  const auto at = static_cast<std::uint64_t>(offset);
  Disk& disk = handle.vfs->disk();
  switch (disk.begin(Operation::write, handle.file.get(), bytes, at)) {
    case Disk::Go::go:
      break;
    case Disk::Go::full:
      return SQLITE_FULL;
    case Disk::Go::fail:  // some of it has got through
      disk.write(*handle.file,
                 bytes.substr(0, static_cast<std::size_t>(disk.random().up_to(amount))), at);
      return SQLITE_IOERR_WRITE;
    default:
      return SQLITE_IOERR_WRITE;
  }
  disk.write(*handle.file, bytes, at);
  return SQLITE_OK;
}

int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_TRUNCATE;
  const auto to = static_cast<std::uint64_t>(size);
  Disk& disk = handle.vfs->disk();
  if (disk.begin(Operation::truncate, handle.file.get(), {}, to) != Disk::Go::go) return SQLITE_IOERR_TRUNCATE;
  disk.truncate(*handle.file, to);
  return SQLITE_OK;
}

int x_sync(sqlite3_file* file, int) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_FSYNC;
  Disk& disk = handle.vfs->disk();
  switch (disk.begin(Operation::sync, handle.file.get())) {
    case Disk::Go::go:
      disk.sync(*handle.file);
      return SQLITE_OK;
    case Disk::Go::fail:
      disk.lose_pending(*handle.file);
      return SQLITE_IOERR_FSYNC;
    default:
      return SQLITE_IOERR_FSYNC;
  }
}

int x_file_size(sqlite3_file* file, sqlite3_int64* out) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_FSTAT;
  *out = static_cast<sqlite3_int64>(handle.file->live.size());
  return SQLITE_OK;
}

int x_lock(sqlite3_file* file, int level) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_LOCK;
  if (handle.lock >= level) return SQLITE_OK;
  Inode& inode = *handle.file;
  const bool others_reserved = inode.reserved && handle.lock < SQLITE_LOCK_RESERVED;
  const bool others_pending = inode.pending_lock && handle.lock < SQLITE_LOCK_PENDING;
  const int others_reading = inode.readers - (handle.lock >= SQLITE_LOCK_SHARED ? 1 : 0);
  if (level == SQLITE_LOCK_SHARED && (others_pending || inode.exclusive)) return SQLITE_BUSY;
  if (level >= SQLITE_LOCK_RESERVED && others_reserved) return SQLITE_BUSY;
  if (level == SQLITE_LOCK_EXCLUSIVE && others_reading > 0) {
    set_lock(inode, handle.lock, SQLITE_LOCK_PENDING);
    handle.lock = SQLITE_LOCK_PENDING;
    return SQLITE_BUSY;
  }
  set_lock(inode, handle.lock, level);
  handle.lock = level;
  return SQLITE_OK;
}

int x_unlock(sqlite3_file* file, int level) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_OK;
  if (handle.lock <= level) return SQLITE_OK;
  set_lock(*handle.file, handle.lock, level);
  handle.lock = level;
  return SQLITE_OK;
}

int x_check_reserved(sqlite3_file* file, int* out) {
  Handle& handle = of(file);
  *out = !handle.dead() && handle.file->reserved ? 1 : 0;
  return SQLITE_OK;
}

int x_control(sqlite3_file*, int, void*) {
  return SQLITE_NOTFOUND;
}
int x_sector_size(sqlite3_file*) {
  return 4096;
}
int x_characteristics(sqlite3_file*) {
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;  // what SQLite assumes of a disk on Unix
}

int x_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  Handle& handle = of(file);
  *out = nullptr;
  if (handle.dead()) return SQLITE_IOERR_SHMMAP;
  auto& pages = handle.file->shared_memory;
  const auto wanted = static_cast<std::size_t>(page) + 1;
  if (pages.size() < wanted && !extend) return SQLITE_OK;
  while (pages.size() < wanted) pages.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
  *out = pages[wanted - 1].get();
  return SQLITE_OK;
}

int x_shm_lock(sqlite3_file* file, int first, int count, int flags) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_IOERR_SHMLOCK;
  Inode& inode = *handle.file;
  const auto from = static_cast<std::size_t>(first);
  const std::size_t to = from + static_cast<std::size_t>(count);
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  std::uint32_t& held = exclusive ? handle.shm_exclusive : handle.shm_shared;
  if (flags & SQLITE_SHM_UNLOCK) {
    for (std::size_t i = from; i < to; ++i) {
      if ((held >> i & 1u) == 0) continue;
      if (exclusive)
        inode.shm_writer[i] = false;
      else
        --inode.shm_readers[i];
      held &= ~(1u << i);
    }
    return SQLITE_OK;
  }
  for (std::size_t i = from; i < to; ++i) {
    const int own = static_cast<int>(handle.shm_shared >> i & 1u);
    const bool own_exclusive = (handle.shm_exclusive >> i & 1u) != 0;
    if (inode.shm_writer[i] && !own_exclusive) return SQLITE_BUSY;
    if (exclusive && inode.shm_readers[i] > own) return SQLITE_BUSY;
  }
  for (std::size_t i = from; i < to; ++i) {
    if (held >> i & 1u) continue;
    if (exclusive)
      inode.shm_writer[i] = true;
    else
      ++inode.shm_readers[i];
    held |= 1u << i;
  }
  return SQLITE_OK;
}

void x_shm_barrier(sqlite3_file*) {}

int x_shm_unmap(sqlite3_file* file, int remove) {
  Handle& handle = of(file);
  if (handle.dead()) return SQLITE_OK;
  release_shm(handle);
  if (remove) handle.file->shared_memory.clear();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kMethods{
    2,         x_close,          x_read,        x_write,       x_truncate,        x_sync,    x_file_size,
    x_lock,    x_unlock,         x_check_reserved, x_control,  x_sector_size,     x_characteristics,
    x_shm_map, x_shm_lock,       x_shm_barrier, x_shm_unmap,   nullptr,           nullptr};

Vfs& of(sqlite3_vfs* vfs) {
  return *static_cast<Vfs*>(vfs->pAppData);
}

int x_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* out, int flags, int* out_flags) {
  auto* file = reinterpret_cast<File*>(out);
  file->base.pMethods = nullptr;
  Vfs& self = of(vfs);
  Disk& disk = self.disk();
  if (disk.begin(Operation::open) != Disk::Go::go) return SQLITE_CANTOPEN;
  const std::string path = name ? name : "";
  std::shared_ptr<Inode> inode = path.empty() ? nullptr : disk.find(path);
  if (inode && (flags & SQLITE_OPEN_EXCLUSIVE)) return SQLITE_CANTOPEN;
  if (!inode) {
    if (!path.empty() && !(flags & SQLITE_OPEN_CREATE)) return SQLITE_CANTOPEN;
    inode = disk.make(path);
  }
  file->handle =
      new Handle{&self, std::move(inode), disk.life(), (flags & SQLITE_OPEN_DELETEONCLOSE) != 0};
  file->base.pMethods = &kMethods;
  if (out_flags) *out_flags = flags;
  return SQLITE_OK;
}

int x_delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  Disk& disk = of(vfs).disk();
  switch (disk.begin(Operation::remove)) {
    case Disk::Go::go:
      break;
    default:
      return SQLITE_IOERR_DELETE;
  }
  if (!disk.exists(name)) return SQLITE_IOERR_DELETE_NOENT;
  disk.remove(name, sync_folder != 0);
  return SQLITE_OK;
}

int x_access(sqlite3_vfs* vfs, const char* name, int, int* out) {
  // As unix: an empty file is none, for SQLite asks about journals.
  Disk& disk = of(vfs).disk();
  *out = disk.running() && disk.exists(name) && disk.size(name) > 0 ? 1 : 0;
  return disk.running() ? SQLITE_OK : SQLITE_IOERR_ACCESS;
}

int x_full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}
int x_randomness(sqlite3_vfs* vfs, int size, char* out) {
  of(vfs).fill_random(out, size);
  return size;
}
int x_sleep(sqlite3_vfs* vfs, int microseconds) {
  of(vfs).slept(microseconds);
  return microseconds;
}
int x_time64(sqlite3_vfs* vfs, sqlite3_int64* out) {
  constexpr sqlite3_int64 kUnixEpoch = 24405875LL * 8'640'000;  // as a Julian day, in milliseconds
  *out = kUnixEpoch + of(vfs).time();
  return SQLITE_OK;
}
int x_time(sqlite3_vfs* vfs, double* out) {
  sqlite3_int64 ms = 0;
  (void)x_time64(vfs, &ms);
  *out = static_cast<double>(ms) / 86'400'000.0;
  return SQLITE_OK;
}
int x_last_error(sqlite3_vfs*, int, char*) {
  return 0;
}

}  // namespace

Vfs::Vfs(Disk& disk) : disk_(&disk), random_(seeded_random(disk.random().next())) {
  static std::uint64_t count = 0;
  name_ = "simulated-" + std::to_string(++count);
  vfs_.iVersion = 2;
  vfs_.szOsFile = sizeof(File);
  vfs_.mxPathname = 512;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = x_open;
  vfs_.xDelete = x_delete;
  vfs_.xAccess = x_access;
  vfs_.xFullPathname = x_full_path;
  vfs_.xRandomness = x_randomness;
  vfs_.xSleep = x_sleep;
  vfs_.xCurrentTime = x_time;
  vfs_.xGetLastError = x_last_error;
  vfs_.xCurrentTimeInt64 = x_time64;
  if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) throw std::bad_alloc();
}

Vfs::~Vfs() {
  sqlite3_vfs_unregister(&vfs_);
}

void Vfs::fill_random(char* out, int size) {
  for (int i = 0; i < size; ++i) out[i] = static_cast<char>(random_->up_to(255));
}

/// SQLite draws its seed from the default file system, once.
void Vfs::seed_sqlite(std::uint64_t seed) {
  random_ = seeded_random(seed);
  sqlite3_vfs* before = sqlite3_vfs_find(nullptr);
  sqlite3_vfs_register(&vfs_, 1);
  sqlite3_randomness(0, nullptr);
  char byte = 0;
  sqlite3_randomness(1, &byte);
  if (before && before != &vfs_) sqlite3_vfs_register(before, 1);
}

namespace {

Result<void> outcome(Disk::Go go, const char* what) {
  if (go == Disk::Go::go) return {};
  return std::unexpected(Error{"storage_error", std::string("the simulated disk fails to ") + what, {}});
}

}  // namespace

void SimFolder::remove(const std::string& path) {
  if (disk_.exists(path) && disk_.begin(Operation::remove) == Disk::Go::go) disk_.remove(path, false);
}

Result<void> SimFolder::create_private(const std::string& path) {
  remove(path);
  const Disk::Go go = disk_.begin(Operation::open);
  if (go == Disk::Go::go) (void)disk_.make(path);
  return outcome(go, "make a file");
}

Result<void> SimFolder::sync(const std::string& path) {
  const auto file = disk_.find(path);
  const Disk::Go go = disk_.begin(Operation::sync, file.get());
  if (go == Disk::Go::go) disk_.sync(*file);
  if (go == Disk::Go::fail) disk_.lose_pending(*file);
  return outcome(go, "sync a file");
}

Result<void> SimFolder::sync_folder_of(const std::string&) {
  const Disk::Go go = disk_.begin(Operation::sync);
  if (go == Disk::Go::go) disk_.sync_folder();
  return outcome(go, "sync the folder");
}

Result<void> SimFolder::rename(const std::string& from, const std::string& to) {
  const Disk::Go go = disk_.begin(Operation::rename);
  if (go == Disk::Go::go) disk_.rename(from, to);
  return outcome(go, "rename a file");
}

Result<ledger::Opened> open_ledger(Vfs& vfs, ledger::sqlite::Tuning tuning) {
  SimFolder folder(vfs.disk());
  tuning.vfs = vfs.name();
  return ledger::sqlite::open_in_vfs(ledger::Options{.path = kDatabase, .readers = 1}, tuning, folder);
}

}  // namespace holdfast::sim
