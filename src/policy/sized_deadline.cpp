#include "holdfast/policy/sized_deadline.h"

#include <algorithm>
#include <cmath>

namespace holdfast {
namespace {

constexpr double kBeyond = 10;            // samples that must lie beyond a percentile
constexpr double kPlainPercentile = 99;   // at least
constexpr double kPlainFactor = 2;        // on top of the rule's
constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kTenth = 10;

double percentile_of(const AutoDeadline& rule, Kind kind) {
  return kind == Kind::plain ? std::max(rule.percentile, kPlainPercentile) : rule.percentile;
}

Duration times(Duration span, double factor) {
  const double ms = std::ceil(static_cast<double>(span.count()) * factor);
  return Duration{static_cast<std::int64_t>(std::min(ms, static_cast<double>(kLongestDuration.count())))};
}

}  // namespace

std::uint64_t samples_needed(double percent) {
  const double share = std::clamp(1 - percent / 100, 1e-6, 1.0);
  return static_cast<std::uint64_t>(std::ceil(kBeyond / share - 1e-6));
}

std::uint64_t samples_needed(const AutoDeadline& rule, Kind kind) {
  return samples_needed(percentile_of(rule, kind));
}

std::optional<Duration> wanted_deadline(const LatencyWindow& window, const AutoDeadline& rule, Kind kind) {
  const double percent = percentile_of(rule, kind);
  const std::uint64_t needed = samples_needed(percent);
  if (window.all().samples() < needed) return std::nullopt;
  Duration taken = window.all().percentile(percent).value;
  if (window.newest().samples() >= needed)
    taken = std::max(taken, window.newest().percentile(percent).value);
  const Duration wanted = times(taken, rule.factor * (kind == Kind::plain ? kPlainFactor : 1));
  return std::clamp(wanted, rule.floor, std::max(rule.floor, rule.ceiling));
}

SizedDeadline resized(const std::optional<SizedDeadline>& now_in_force, Duration wanted, Instant now) {
  if (!now_in_force || wanted >= now_in_force->value) return {wanted, now};
  const std::int64_t since = std::clamp<std::int64_t>((now - now_in_force->since).count(), 0, kHour);
  const std::int64_t value = now_in_force->value.count();
  const Duration lowered{value - value / kTenth * since / kHour};
  const Duration next = std::max(lowered, wanted);
  // A step that rounds to nothing leaves the time running.
  return next < now_in_force->value ? SizedDeadline{next, now} : *now_in_force;
}

std::optional<Duration> suggested_deadline(const LatencyWindow& window, Kind kind) {
  constexpr std::int64_t kLeast = 100;
  struct Basis {
    double percent, factor;
  };
  for (const auto& [percent, factor] : {Basis{99, 1.5}, Basis{95, 3}}) {
    if (window.all().samples() < samples_needed(percent)) continue;
    const Duration taken = window.all().percentile(percent).value;
    const std::int64_t wanted =
        std::max(kLeast, times(taken, factor * (kind == Kind::plain ? kPlainFactor : 1)).count());
    std::int64_t unit = 10;
    while (wanted / unit >= 100) unit *= 10;
    return Duration{(wanted + unit - 1) / unit * unit};
  }
  return std::nullopt;
}

}  // namespace holdfast
