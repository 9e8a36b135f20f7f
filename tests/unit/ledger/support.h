#pragma once
// A folder of its own for each test, and values with something in every member.
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "holdfast/core/ids.h"
#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/open.h"

namespace holdfast::ledger::test {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-ledger-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string database() const { return *this / "holdfast.db"; }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline unsigned mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777u : 0u;
}

inline Opened open_or_fail(const std::string& path, const sqlite::Tuning& tuning = {}) {
  Result<Opened> opened = sqlite::open_tuned(Options{.path = path}, tuning);
  if (!opened) FAIL(opened.error().code << ": " << opened.error().message);
  return std::move(*opened);
}

template <class T>
T value_of(Result<T> result) {
  if (!result) FAIL(result.error().code << ": " << result.error().message);
  return std::move(*result);
}

inline void commit_or_fail(Ledger& ledger, Batch& batch) {
  const Result<Committed> done = ledger.commit(batch);
  if (!done) FAIL(done.error().code << ": " << done.error().message);
}

/// Another program's connection, for looking and for damage.
class Outsider {
 public:
  explicit Outsider(const std::string& path) {
    if (sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK)
      FAIL("cannot open " << path);
    sqlite3_busy_timeout(db_, 2'000);
  }
  Outsider(const Outsider&) = delete;
  Outsider& operator=(const Outsider&) = delete;
  ~Outsider() { sqlite3_close(db_); }
  void execute(const std::string& sql) {
    REQUIRE(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }
  std::string text(const std::string& sql) {
    std::string out;
    sqlite3_exec(
        db_, sql.c_str(),
        [](void* to, int columns, char** values, char**) {
          for (int i = 0; i < columns; ++i)
            static_cast<std::string*>(to)
                ->append(values[i] ? values[i] : "NULL")
                .append(i + 1 < columns ? "|" : "\n");
          return 0;
        },
        &out, nullptr);
    return out;
  }
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

/// A run id that sorts by `n`.
inline std::string run_id(std::uint64_t n) {
  std::string digits = std::to_string(n);
  return "run_" + std::string(26 - digits.size(), '0') + digits;
}

inline run::Run small_run(std::uint64_t n, std::size_t steps = 1) {
  run::Run run;
  run.id = run_id(n);
  run.name = "nightly";
  run.submit_digest = std::string(64, 'a');
  run.created_at = Instant{1'700'000'000'000 + static_cast<std::int64_t>(n)};
  run.deadline = run.created_at + Duration{900'000};
  for (std::size_t i = 0; i < steps; ++i) {
    run::Step& step = run.steps.emplace_back();
    step.spec.id = "s" + std::to_string(i);
    step.spec.server = "crm";
    step.spec.tool = "post_note";
    step.spec.args = R"({"text":"hello, ledger"})";
    step.target = "crm/post_note";
  }
  return run;
}

}  // namespace holdfast::ledger::test
