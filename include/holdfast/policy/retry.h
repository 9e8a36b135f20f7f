#pragma once
// Waits: backoff with full jitter, Retry-After, and the nesting of deadlines.
#include <cstdint>
#include <optional>
#include <string_view>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast {

/// Full jitter: uniform in [0, min(cap, base * 2^(attempts-1))], drawn once; `attempts` >= 1 is the number of
/// sends so far. Never overflows.
[[nodiscard]] Duration backoff_wait(const Backoff& backoff, std::uint32_t attempts, Random& random);

/// The wait that a Retry-After asks for, counted from `now`, never shorter than asked (rounded up to whole
/// milliseconds; fractions of a second up to the next second). Reads delta-seconds and the three HTTP date
/// forms, independent of locale. `header` may hold several values joined by commas: the longest counts.
/// `date` is the answer's own Date header: a date is measured against the later reading of both clocks'
/// distance. nullopt: absent, zero, past or invalid: the caller's own backoff applies. Huge values are
/// clamped to kLongestDuration. Source: RFC 9110 10.2.3; field case FC-18.
[[nodiscard]] std::optional<Duration> retry_after_wait(std::string_view header, std::string_view date,
                                                       Instant now);

/// min(tool deadline, run's deadline - now), never below zero; `clipped` when the run's deadline decided.
struct CallDeadline {
  Instant at;
  Duration span;
  bool clipped;
};
[[nodiscard]] CallDeadline nest_deadline(Duration tool_deadline, std::optional<Duration> step_deadline,
                                         Instant run_deadline, Instant now);

/// A plain write is not started when less than half of its own deadline is left (contract, section 8).
[[nodiscard]] bool enough_time(Kind kind, Duration own_deadline, Duration left);

}  // namespace holdfast
