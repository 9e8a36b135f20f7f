#include "http_date.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace holdfast {
namespace {

constexpr std::array<std::string_view, 7> kDays{"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// Consumes a text from the left; after the first mismatch everything fails.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  void literal(std::string_view expected) {
    if (!rest_.starts_with(expected)) return fail();
    rest_.remove_prefix(expected.size());
  }

  int digits(std::size_t count) {
    if (rest_.size() < count) return fail(), 0;
    int value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return fail(), 0;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  /// Two characters, of which the first may be a space.
  int padded_day() {
    if (!rest_.starts_with(' ')) return digits(2);
    literal(" ");
    return digits(1);
  }

  unsigned month() {
    const auto* at = std::ranges::find(kMonths, rest_.substr(0, 3));
    if (at == kMonths.end()) return fail(), 0u;
    rest_.remove_prefix(3);
    return static_cast<unsigned>(at - kMonths.begin()) + 1;
  }

  void day_name(bool whole) {
    for (const auto day : kDays) {
      const auto name = whole ? day : day.substr(0, 3);
      if (rest_.starts_with(name)) return rest_.remove_prefix(name.size());
    }
    fail();
  }

  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

 private:
  void fail() { ok_ = false, rest_ = {}; }
  std::string_view rest_;
  bool ok_ = true;
};

struct Fields {
  int year = 0;
  unsigned month = 0;
  int day = 0, hour = 0, minute = 0, second = 0;
};

void time_of_day(Reader& in, Fields& f) {
  f.hour = in.digits(2);
  in.literal(":");
  f.minute = in.digits(2);
  in.literal(":");
  f.second = in.digits(2);
}

std::optional<Instant> instant_of(const Fields& f) {
  namespace c = std::chrono;
  const c::year_month_day date{c::year{f.year}, c::month{f.month}, c::day{static_cast<unsigned>(f.day)}};
  if (!date.ok() || f.hour > 23 || f.minute > 59 || f.second > 60) return std::nullopt;
  const auto at = c::sys_days{date} + c::hours{f.hour} + c::minutes{f.minute} + c::seconds{f.second};
  return Instant{c::duration_cast<Duration>(at.time_since_epoch()).count()};
}

std::optional<Instant> parse_fixdate(std::string_view text) {
  Reader in(text);
  Fields f;
  in.day_name(false);
  in.literal(", ");
  f.day = in.digits(2);
  in.literal(" ");
  f.month = in.month();
  in.literal(" ");
  f.year = in.digits(4);
  in.literal(" ");
  time_of_day(in, f);
  in.literal(" GMT");
  return in.done() ? instant_of(f) : std::nullopt;
}

int year_of(Instant at) {
  namespace c = std::chrono;
  const c::sys_time<Duration> time{Duration{at.ms}};
  return static_cast<int>(c::year_month_day{c::floor<c::days>(time)}.year());
}

std::optional<Instant> parse_rfc850(std::string_view text, Instant now) {
  Reader in(text);
  Fields f;
  in.day_name(true);
  in.literal(", ");
  f.day = in.digits(2);
  in.literal("-");
  f.month = in.month();
  in.literal("-");
  const int two_digits = in.digits(2);
  in.literal(" ");
  time_of_day(in, f);
  in.literal(" GMT");
  if (!in.done()) return std::nullopt;
  const int this_year = year_of(now);
  f.year = this_year - this_year % 100 + two_digits;
  if (f.year >= this_year + 50) f.year -= 100;
  if (f.year < this_year - 50) f.year += 100;
  if (f.year > 9999) return std::nullopt;
  return instant_of(f);
}

std::optional<Instant> parse_asctime(std::string_view text) {
  Reader in(text);
  Fields f;
  in.day_name(false);
  in.literal(" ");
  f.month = in.month();
  in.literal(" ");
  f.day = in.padded_day();
  in.literal(" ");
  time_of_day(in, f);
  in.literal(" ");
  f.year = in.digits(4);
  return in.done() ? instant_of(f) : std::nullopt;
}

}  // namespace

bool is_day_name(std::string_view text) {
  return std::ranges::any_of(kDays,
                             [&](std::string_view day) { return text == day || text == day.substr(0, 3); });
}

std::optional<Instant> parse_http_date(std::string_view text, Instant now) {
  if (const auto at = parse_fixdate(text)) return at;
  if (const auto at = parse_rfc850(text, now)) return at;
  return parse_asctime(text);
}

}  // namespace holdfast
