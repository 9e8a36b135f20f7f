#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::bench {

struct Load {
  std::uint16_t port = 0;
  std::string submission;       // the body of POST /v1/runs
  std::size_t concurrency = 1;  // runs under way at any time, each on a kept connection of its own
  std::chrono::milliseconds time{3000};
};

struct LoadResult {
  std::vector<double> latencies_ms;  // of the runs that succeeded, from the first byte of the submission to
                                     // the settled answer
  std::uint64_t errors = 0;          // runs that came to anything else
  std::string first_error;           // its answer
  double seconds = 0;
};

/// Submits runs and waits for each with a long poll until the time is over and the last run has settled.
[[nodiscard]] LoadResult run_load(const Load& load);

}  // namespace holdfast::bench
