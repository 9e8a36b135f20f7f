#include "holdfast/policy/retry.h"

#include <algorithm>
#include <cstddef>

#include "core/ascii.h"
#include "core/canary.h"
#include "http_date.h"

namespace holdfast {
namespace {

constexpr std::size_t kMaxHeaderBytes = 8 * 1024;
constexpr std::int64_t kLongestSeconds = kLongestDuration.count() / 1000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes the next element of a comma-separated list off `rest`; the comma inside a date is part of its
/// element.
std::string_view next_element(std::string_view& rest) {
  auto end = rest.find(',');
  if (end != std::string_view::npos && is_day_name(ascii::trimmed(rest.substr(0, end))))
    end = rest.find(',', end + 1);
  const auto element = ascii::trimmed(rest.substr(0, end));
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return element;
}

/// Whole seconds, a fraction counting as one more; nullopt when this is no such number. Clamped, so that no
/// number wraps.
std::optional<Duration> parse_seconds(std::string_view text) {
  std::int64_t seconds = 0;
  std::size_t i = 0;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    seconds = std::min(seconds * 10 + (text[i] - '0'), kLongestSeconds);
  }
  if (i == 0) return std::nullopt;
  if (i < text.size()) {
    const auto fraction = text.substr(i + 1);
    if (text[i] != '.' || fraction.empty() || !std::ranges::all_of(fraction, is_digit)) return std::nullopt;
    if (fraction.find_first_not_of('0') != std::string_view::npos) ++seconds;
  }
  return Duration{std::min(seconds, kLongestSeconds) * 1000};
}

Duration to_whole_seconds(Duration d) {
  return Duration{(d.count() + 999) / 1000 * 1000};
}

/// Measured by our clock and by the answering clock: the longer distance is never too short.
Duration distance(Instant target, std::string_view date, Instant now) {
  auto wait = target - now;
  if (const auto sent_at = parse_http_date(ascii::trimmed(date), now))
    wait = std::max(wait, target - *sent_at);
  return std::clamp(to_whole_seconds(std::max(wait, Duration{0})), Duration{0}, kLongestDuration);
}

}  // namespace

Duration backoff_wait(const Backoff& backoff, std::uint32_t attempts, Random& random) {
  const auto cap = std::max<std::int64_t>(backoff.cap.count(), 0);
  auto limit = std::clamp<std::int64_t>(backoff.base.count(), 0, cap);
  for (std::uint32_t i = 1; i < attempts && limit > 0 && limit < cap; ++i)
    limit = limit > cap / 2 ? cap : limit * 2;
  return Duration{random.up_to(limit)};
}

std::optional<Duration> retry_after_wait(std::string_view header, std::string_view date, Instant now) {
  if (header.size() > kMaxHeaderBytes) return std::nullopt;
  Duration longest{0};
  for (auto rest = header; !rest.empty();) {
    const auto element = next_element(rest);
    if (const auto seconds = parse_seconds(element)) {
      longest = std::max(longest, *seconds);
    } else if (const auto target = parse_http_date(element, now)) {
      longest = std::max(longest, distance(*target, date, now));
    }
  }
  if (longest.count() == 0 || canary(Canary::retry_after_ignored)) return std::nullopt;
  return longest;
}

CallDeadline nest_deadline(Duration tool_deadline, std::optional<Duration> step_deadline,
                           Instant run_deadline, Instant now) {
  const auto own =
      std::max(step_deadline ? std::min(tool_deadline, *step_deadline) : tool_deadline, Duration{0});
  const auto left = std::max(run_deadline - now, Duration{0});
  const auto span = canary(Canary::call_outlives_run) ? own : std::min(own, left);
  return {.at = now + span, .span = span, .clipped = left < own};
}

bool enough_time(Kind kind, Duration own_deadline, Duration left) {
  if (left.count() <= 0) return false;
  return kind != Kind::plain || left.count() >= own_deadline.count() - left.count();
}

}  // namespace holdfast
