#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "floor.h"

namespace holdfast::bench {

/// One repetition of one row.
struct Sample {
  double runs_per_second = 0, p50_ms = 0, p99_ms = 0, cpu_ms_per_run = 0, rss_mib = 0, memory_mib = 0;
  double disk_bytes_per_run = 0, written_bytes_per_run = 0, commits_per_run = -1;  // -1: not known
  std::uint64_t runs = 0, errors = 0;
};

struct Row {
  std::string subject;  // "holdfast" or a peer's name
  std::string tool;     // "keyed" or "plain"
  int steps = 1;
  std::size_t concurrency = 1;
};

/// Prints one JSON line on standard output: the medians, and of the throughput the least and the most too.
void report(const Row& row, const std::vector<Sample>& samples);
void report(const std::vector<Floor>& floors);

}  // namespace holdfast::bench
