#pragma once
#include <chrono>

namespace holdfast::bench {

/// What the machine itself can do, without an orchestrator.
struct Floor {
  double fdatasync_append_ms = 0;     // medians, after a write of 4 KiB
  double fdatasync_overwrite_ms = 0;
  double fsync_append_ms = 0;
  double sqlite_commits_per_second = 0;   // WAL, synchronous=FULL, one row of 200 bytes each
  double sqlite_100_rows_per_second = 0;  // rows, at 100 rows a commit, ascending keys
  double http_requests_per_second = 0;    // the load generator and the tool server, 64 connections
};

/// Measures each for `time`, in the folder for temporary files. Throws std::runtime_error.
[[nodiscard]] Floor measure_floor(std::chrono::milliseconds time);

}  // namespace holdfast::bench
