#include "holdfast/core/time.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
// Longest first, so that formatting takes the first one that divides; `ms` is told from `m` and `s` by the
// whole suffix.
constexpr std::array<Unit, 5> kUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error bad_duration(std::string_view text, std::string_view why) {
  constexpr std::size_t kShown = 64;
  std::string message = "\"" + std::string(text.substr(0, kShown)) + "\" " + std::string(why);
  return {"bad_duration",
          message + "; a whole number and one unit are expected, such as 250ms, 3s, 15m, 2h or 7d", ""};
}

/// `count` digits at `at`, -1 when there are fewer.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (!is_digit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

struct Parsed {
  int value = 0;
  bool good = false;
};

/// Milliseconds of a fraction (`.004`), cut after the third digit. `at` moves behind it.
Parsed fraction_ms(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '.') return {0, true};
  const std::size_t first = ++at;
  int ms = 0;
  for (int scale = 100; at < text.size() && is_digit(text[at]); ++at, scale /= 10)
    ms += (text[at] - '0') * scale;
  return {ms, at > first};
}

/// Minutes of `Z` or `+hh:mm`, which must end the text.
Parsed offset_minutes(std::string_view text) {
  if (text == "Z" || text == "z") return {0, true};
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return {};
  const int hours = digits(text, 1, 2);
  const int minutes = digits(text, 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return {};
  return {(text[0] == '-' ? -1 : 1) * (hours * 60 + minutes), true};
}

void append_padded(std::string& out, std::int64_t value, int width) {
  std::array<char, 8> buffer{};
  for (int i = width - 1; i >= 0; --i, value /= 10)
    buffer[static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 10);
  out.append(buffer.data(), static_cast<std::size_t>(width));
}

/// Steady, and unlike steady_clock's own, it goes on while the machine sleeps: a key grows too old for its tool
/// meanwhile, and deadlines come nearer.
std::chrono::steady_clock::time_point since_boot() {
  timespec at{};
  (void)clock_gettime(CLOCK_BOOTTIME, &at);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(at.tv_sec) +
                                               std::chrono::nanoseconds(at.tv_nsec));
}

}  // namespace

SystemClock::SystemClock()
    : wall_at_start_{std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())
                         .count()},
      steady_at_start_(since_boot()) {}

Instant SystemClock::now() const {
  return wall_at_start_ + std::chrono::duration_cast<Duration>(since_boot() - steady_at_start_);
}

Result<Duration> parse_duration(std::string_view text) {
  if (text.empty()) return std::unexpected(bad_duration(text, "is empty"));
  const auto end_of_number = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view number(text.begin(), end_of_number);
  const std::string_view suffix(end_of_number, text.end());
  if (number.empty()) return std::unexpected(bad_duration(text, "does not begin with a digit"));
  const auto unit = std::ranges::find(kUnits, suffix, &Unit::name);
  if (unit == kUnits.end())
    return std::unexpected(bad_duration(text, suffix.empty() ? "has no unit" : "has an unknown unit"));

  std::int64_t count = 0;
  const auto [stop, status] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (status != std::errc{} || stop != number.data() + number.size() ||
      count > kLongestDuration.count() / unit->ms)
    return std::unexpected(bad_duration(text, "is longer than the maximum of 36500d"));
  if (count == 0) return std::unexpected(bad_duration(text, "is zero"));
  return Duration{count * unit->ms};
}

std::string format_duration(Duration d) {
  const std::int64_t ms = d.count();
  if (ms == 0) return "0ms";
  for (const Unit& unit : kUnits) {
    if (ms % unit.ms == 0) return std::to_string(ms / unit.ms) + std::string(unit.name);
  }
  return std::to_string(ms) + "ms";
}

Result<Instant> parse_rfc3339(std::string_view text) {
  const Error bad{"bad_instant", "an RFC 3339 instant is expected, such as 2026-11-30T01:02:03Z", ""};
  constexpr std::size_t kSecondsEnd = 19;
  constexpr std::size_t kLongest = 64;
  if (text.size() <= kSecondsEnd || text.size() > kLongest) return std::unexpected(bad);
  const bool separated = text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == 't') &&
                         text[13] == ':' && text[16] == ':';
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const int hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (!separated || year < 0 || month < 0 || day < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 59)
    return std::unexpected(bad);
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::unexpected(bad);

  std::size_t at = kSecondsEnd;
  const Parsed fraction = fraction_ms(text, at);
  if (!fraction.good) return std::unexpected(bad);
  const Parsed offset = offset_minutes(text.substr(at));
  if (!offset.good) return std::unexpected(bad);

  const auto since_epoch = sys_days{date}.time_since_epoch() + hours{hour} + minutes{minute - offset.value} +
                           seconds{second} + milliseconds{fraction.value};
  return Instant{std::min<std::int64_t>(duration_cast<Duration>(since_epoch).count(), kEndOfTime.ms)};
}

std::string format_rfc3339(Instant at) {
  using namespace std::chrono;
  constexpr Instant kYearZero{
      -62167219200000};  // 0000-01-01T00:00:00Z: earlier years have no four-digit form
  const sys_time<milliseconds> point{milliseconds{std::clamp(at.ms, kYearZero.ms, kEndOfTime.ms)}};
  const auto midnight = floor<days>(point);
  const year_month_day date{midnight};
  const hh_mm_ss<milliseconds> time{point - midnight};
  std::string out;
  out.reserve(24);
  append_padded(out, static_cast<int>(date.year()), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, time.hours().count(), 2);
  out += ':';
  append_padded(out, time.minutes().count(), 2);
  out += ':';
  append_padded(out, time.seconds().count(), 2);
  out += '.';
  append_padded(out, time.subseconds().count(), 3);
  out += 'Z';
  return out;
}

}  // namespace holdfast
