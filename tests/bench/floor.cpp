#include "floor.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "load.h"
#include "tool_server.h"
#include "wire.h"

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-floor-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The median time, in ms, of `sync` after a block was written at the end, or over the first one.
double sync_ms(const std::filesystem::path& file, bool append, int (*sync)(int), std::chrono::milliseconds time) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) throw std::runtime_error("the disk takes no file");
  const std::string block(4096, 'x');
  std::vector<double> times;
  off_t at = 0;
  for (const auto start = Clock::now(); Clock::now() - start < time;) {
    const auto begun = Clock::now();
    if (::pwrite(descriptor, block.data(), block.size(), at) < 0 || sync(descriptor) != 0) {
      throw std::runtime_error("the disk takes no block");
    }
    times.push_back(seconds_since(begun) * 1000);
    if (append) at += static_cast<off_t>(block.size());
  }
  ::close(descriptor);
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

void execute(sqlite3* database, const char* text) {
  if (sqlite3_exec(database, text, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(database));
}

double rows_per_second(const std::filesystem::path& file, int rows, std::chrono::milliseconds time) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(file.c_str(), &opened);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(opened, sqlite3_close);
  if (code != SQLITE_OK) throw std::runtime_error("SQLite opens no file");
  execute(opened, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB) STRICT");
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(opened, "INSERT INTO t(v) VALUES(zeroblob(200))", -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> insert(prepared, sqlite3_finalize);
  double done = 0;
  const auto start = Clock::now();
  while (Clock::now() - start < time) {
    execute(opened, "BEGIN IMMEDIATE");
    for (int i = 0; i < rows; ++i) {
      if (sqlite3_step(prepared) != SQLITE_DONE) throw std::runtime_error("SQLite takes no row");
      sqlite3_reset(prepared);
    }
    execute(opened, "COMMIT");
    done += rows;
  }
  return done / seconds_since(start);
}

double http_per_second(std::chrono::milliseconds time) {
  const ToolServer server;
  const LoadResult result = run_load(
      {.port = server.port(),
       .request = post("/do", R"({"customer":"c-1042","amount":1299,"memo":"benchmark"})"),
       .judge = [](std::string_view) { return Verdict{.kind = Verdict::Kind::kSucceeded, .request = {}}; },
       .concurrency = 64,
       .warm_up = time / 4,
       .time = time,
       .meter = {}});
  return static_cast<double>(result.latencies_ms.size()) / result.seconds;
}

}  // namespace

Floor measure_floor(std::chrono::milliseconds time) {
  const Folder folder;
  Floor floor;
  floor.fdatasync_append_ms = sync_ms(folder.path / "append", true, fdatasync, time);
  floor.fdatasync_overwrite_ms = sync_ms(folder.path / "overwrite", false, fdatasync, time);
  floor.fsync_append_ms = sync_ms(folder.path / "append_all", true, fsync, time);
  floor.sqlite_commits_per_second = rows_per_second(folder.path / "one.db", 1, time);
  floor.sqlite_100_rows_per_second = rows_per_second(folder.path / "hundred.db", 100, time);
  floor.http_requests_per_second = http_per_second(time);
  return floor;
}

}  // namespace holdfast::bench
