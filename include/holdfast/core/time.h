#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/core/error.h"

namespace holdfast {

using Duration = std::chrono::milliseconds;

/// A point in time, in milliseconds since the Unix epoch (UTC). The only kind of time that is stored.
struct Instant {
  std::int64_t ms = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
};

/// The latest instant that is ever stored: 9999-12-31T23:59:59.999Z. Sums are clamped to it, so nothing
/// wraps.
inline constexpr Instant kEndOfTime{253402300799999};
/// The longest duration that is accepted anywhere: one hundred years.
inline constexpr Duration kLongestDuration{std::int64_t{100} * 365 * 24 * 3600 * 1000};

[[nodiscard]] constexpr Instant operator+(Instant at, Duration d) {
  if (d.count() > 0 && at.ms > kEndOfTime.ms - d.count()) return kEndOfTime;
  return Instant{at.ms + d.count()};
}
[[nodiscard]] constexpr Instant operator-(Instant at, Duration d) {
  return Instant{at.ms - d.count()};
}
[[nodiscard]] constexpr Duration operator-(Instant a, Instant b) {
  return Duration{a.ms - b.ms};
}

/// Where time comes from. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Now. Never goes back within a process: the wall clock is read once at start and carried on by the
  /// monotonic clock, so a step of the wall clock moves no wait and no deadline of a running process. Nor does it go
  /// back over a restart: see SystemClock.
  [[nodiscard]] virtual Instant now() const = 0;
};

/// The clock of a real process.
class SystemClock final : public Clock {
 public:
  /// Starts at `not_before` where the wall clock reads earlier: the newest instant that an open run's ledger has.
  explicit SystemClock(Instant not_before = {});
  [[nodiscard]] Instant now() const override;

 private:
  Instant wall_at_start_;
  std::chrono::steady_clock::time_point steady_at_start_;
};

/// Reads `250ms`, `3s`, `15m`, `2h`, `7d` (a whole number and one unit). Positive only; zero, signs,
/// fractions, spaces and more than kLongestDuration are errors with code `bad_duration` that say what would
/// be right.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
/// The shortest exact form: 90000 ms is `90s`, 120000 ms is `2m`, 1500 ms is `1500ms`.
[[nodiscard]] std::string format_duration(Duration d);

/// Reads an RFC 3339 instant (`2026-11-30T01:02:03.004Z`, also with an offset). Error code `bad_instant`.
[[nodiscard]] Result<Instant> parse_rfc3339(std::string_view text);
/// `2026-11-30T01:02:03.004Z`, always UTC with milliseconds.
[[nodiscard]] std::string format_rfc3339(Instant at);

}  // namespace holdfast
