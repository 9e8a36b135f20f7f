#pragma once
// Deadlines from measured service times.
#include <cstdint>
#include <optional>

#include "holdfast/policy/latency_window.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast {

/// How many samples a percentile needs: ten beyond it (200 for p95, 1,000 for p99).
[[nodiscard]] std::uint64_t samples_needed(double percent);
/// The same for the percentile that a tool of this kind is sized by.
[[nodiscard]] std::uint64_t samples_needed(const AutoDeadline& rule, Kind kind);

/// What the samples speak for: the percentile times the factor, at least `floor` and at most `ceiling`; of the
/// whole window, or of the newest slice where that is enough by itself and says more. A plain write is given
/// the 99th percentile at least and twice the factor, since giving up on it costs a person's time. nullopt
/// with too few samples: then the ceiling is right.
[[nodiscard]] std::optional<Duration> wanted_deadline(const LatencyWindow& window, const AutoDeadline& rule,
                                                      Kind kind);

/// A deadline in force, and since when.
struct SizedDeadline {
  Duration value{0};
  Instant since{};
  friend bool operator==(const SizedDeadline&, const SizedDeadline&) = default;
};
/// The next one: up at once, down by at most a tenth within an hour of steady asking. Time without samples
/// counts as one hour at most. The first takes what is wanted as it is.
[[nodiscard]] SizedDeadline resized(const std::optional<SizedDeadline>& now_in_force, Duration wanted,
                                    Instant now);

/// What to write into a configuration: 1.5 times p99 with its 1,000 samples, 3 times p95 with its 200 (twice
/// that for a plain write), at least 100 ms, rounded up to two digits; nullopt with fewer.
[[nodiscard]] std::optional<Duration> suggested_deadline(const LatencyWindow& window, Kind kind);

}  // namespace holdfast
