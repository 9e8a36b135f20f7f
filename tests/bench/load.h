#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

/// What an answer means for the run that its client waits for.
struct Verdict {
  enum class Kind { kSucceeded, kFailed, kAskAgain };
  Kind kind = Kind::kFailed;
  std::string request;  // the bytes to send next, for kAskAgain
};

struct Load {
  std::uint16_t port = 0;
  std::string request;  // the bytes that submit a run
  std::function<Verdict(std::string_view answer)> judge;
  std::size_t concurrency = 1;  // runs under way at any time, each on a kept connection of its own
  std::chrono::milliseconds warm_up{0};
  std::chrono::milliseconds time{3000};
  std::function<void()> meter;  // called when the measured time begins and when it ends; may be empty
};

struct LoadResult {
  std::vector<double> latencies_ms;  // of the runs that succeeded within the measured time, from the first byte of
                                     // the submission to the answer that shows the end
  std::uint64_t succeeded = 0;       // in all, warm-up included
  std::uint64_t errors = 0;          // runs that came to anything else, warm-up included
  std::string first_error;           // its answer
  double seconds = 0;                // measured
};

/// Submits runs and waits for each until the time is over and the last run has ended. The same generator, byte for byte
/// but for the request, drives Holdfast and every peer. Throws std::runtime_error when a connection breaks or nothing
/// comes for a minute.
[[nodiscard]] LoadResult run_load(const Load& load);

}  // namespace holdfast::bench
