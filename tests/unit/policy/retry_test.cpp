#include "holdfast/policy/retry.h"

#include <rapidcheck.h>

#include <array>
#include <catch2/catch.hpp>
#include <clocale>
#include <limits>
#include <string>

#include "policy/http_date.h"

using namespace holdfast;

namespace {

// 2026-09-09 12:00:00.200 UTC
const Instant kNow{1788955200200};
constexpr std::int64_t kOwnBackoff = -1;  // the header decides nothing

std::int64_t wait_ms(std::string_view header, std::string_view date = {}, Instant now = kNow) {
  const auto wait = retry_after_wait(header, date, now);
  return wait ? wait->count() : kOwnBackoff;
}

class Fixed final : public Random {
 public:
  explicit Fixed(std::uint64_t value) : value_(value) {}
  std::uint64_t next() override { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace

TEST_CASE("the frozen clock is what the cases below believe") {
  REQUIRE(format_rfc3339(kNow) == "2026-09-09T12:00:00.200Z");
}

TEST_CASE("Retry-After: the whole zoo") {
  struct Case {
    std::string_view header;
    std::int64_t want_ms;
  };
  const Case cases[] = {
      {"30", 30'000},
      {" 30 ", 30'000},
      {"\t30", 30'000},
      {"1", 1'000},
      {"007", 7'000},
      {"0", kOwnBackoff},
      {"00", kOwnBackoff},
      {"0.0", kOwnBackoff},
      {"-1", kOwnBackoff},
      {"+30", kOwnBackoff},
      {"", kOwnBackoff},
      {"   ", kOwnBackoff},
      {",", kOwnBackoff},
      {"5s", kOwnBackoff},
      {"5 s", kOwnBackoff},
      {"1 2", kOwnBackoff},
      {"0x10", kOwnBackoff},
      {"nan", kOwnBackoff},
      {"inf", kOwnBackoff},
      {"1e10000", kOwnBackoff},
      {"1e3", kOwnBackoff},
      {"\xD9\xA3\xD9\xA0", kOwnBackoff},  // Arabic-Indic digits
      {"\xEF\xBC\x93", kOwnBackoff},      // a fullwidth digit
      {std::string_view("3\0", 2), kOwnBackoff},
      {"1.5", 2'000},
      {"0.2", 1'000},
      {"2.0", 2'000},
      {"1.", kOwnBackoff},
      {".5", kOwnBackoff},
      {"1.5.1", kOwnBackoff},
      {"1,5", 5'000},
      {"86400", 86'400'000},
      {"1771404540", 1'771'404'540'000},
      {"9999999999", kLongestDuration.count()},
      {"18446744073709551617", kLongestDuration.count()},
      {"99999999999999999999999999999999999999.9", kLongestDuration.count()},
      {"Wed, 09 Sep 2026 12:00:30 GMT", 30'000},
      {"Wednesday, 09-Sep-26 12:00:30 GMT", 30'000},
      {"Wed Sep  9 12:00:30 2026", 30'000},
      {"Tue Sep 15 12:00:00 2026", 518'400'000},
      {"Wed, 09 Sep 2026 12:00:01 GMT", 1'000},
      {"Wed, 09 Sep 2026 12:00:00 GMT", kOwnBackoff},
      {"Sun, 06 Nov 1994 08:49:37 GMT", kOwnBackoff},
      {"Sunday, 06-Nov-94 08:49:37 GMT", kOwnBackoff},
      {"Sun Nov  6 08:49:37 1994", kOwnBackoff},
      {"Wed, 09 Sep 2026 12:00:30 PST", kOwnBackoff},
      {"Wed, 09 Sep 2026 12:00:30 +0000", kOwnBackoff},
      {"Wed, 09 Sep 2026 12:00:30 gmt", kOwnBackoff},
      {"Wed, 09 Sep 2026 12:00:30", kOwnBackoff},
      {"Wed, 9 Sep 2026 12:00:30 GMT", kOwnBackoff},
      {"Wed, 31 Feb 2027 12:00:30 GMT", kOwnBackoff},
      {"Wed, 09 Sep 2026 24:00:30 GMT", kOwnBackoff},
      {"Mit, 09 Sep 2026 12:00:30 GMT", kOwnBackoff},
      {"Wed, 09 Sept 2026 12:00:30 GMT", kOwnBackoff},
      {"Wed, 09 Sep 2026 12:00:30 GMT x", kOwnBackoff},
      {"2026-09-09T12:00:30Z", kOwnBackoff},
      {"Fri, 31 Dec 9999 23:59:59 GMT", kLongestDuration.count()},
      {"10, 60", 60'000},
      {"60, 10", 60'000},
      {"10,60", 60'000},
      {"abc, 60", 60'000},
      {"60, -1", 60'000},
      {"10, Wed, 09 Sep 2026 12:00:30 GMT", 30'000},
      {"Wed, 09 Sep 2026 12:00:30 GMT, 10", 30'000},
      {"Wed, 09 Sep 2026 12:00:30 GMT, Wed, 09 Sep 2026 12:01:00 GMT", 60'000},
      {"Wednesday, 09-Sep-26 12:00:30 GMT, 45", 45'000},
      {"Wed,", kOwnBackoff},
      {"Wed", kOwnBackoff},
  };
  for (const auto& c : cases) {
    CAPTURE(std::string(c.header));
    CHECK(wait_ms(c.header) == c.want_ms);
  }
}

TEST_CASE("Retry-After: a date is measured by both clocks and the longer distance counts") {
  const auto* header = "Wed, 09 Sep 2026 12:00:30 GMT";
  CHECK(wait_ms(header, "Wed, 09 Sep 2026 11:59:00 GMT") == 90'000);
  CHECK(wait_ms(header, "Wed, 09 Sep 2026 12:00:20 GMT") == 30'000);
  CHECK(wait_ms(header, "Wed, 09 Sep 2026 12:00:00 GMT") == 30'000);
  CHECK(wait_ms(header, "yesterday") == 30'000);
  // Our clock is far ahead of the server's.
  CHECK(wait_ms("Wed, 09 Sep 2026 10:00:30 GMT", "Wed, 09 Sep 2026 10:00:00 GMT") == 30'000);
  CHECK(wait_ms("30", "Wed, 09 Sep 2026 10:00:00 GMT") == 30'000);
}

TEST_CASE("Retry-After: a year of two digits is the near one") {
  CHECK(wait_ms("Thursday, 09-Sep-27 12:00:00 GMT") == std::int64_t{365} * 86'400'000);
  CHECK(wait_ms("Wednesday, 09-Sep-80 12:00:00 GMT") == kOwnBackoff);  // 1980
  const Instant late = parse_rfc3339("2099-12-31T23:59:00Z").value();
  CHECK(wait_ms("Friday, 01-Jan-00 00:00:00 GMT", {}, late) == 60'000);
}

TEST_CASE("Retry-After: independent of locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const auto* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) == nullptr) continue;
    CAPTURE(name);
    CHECK(wait_ms("Wed, 09 Sep 2026 12:00:30 GMT") == 30'000);
    CHECK(wait_ms("1.5") == 2'000);
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("Retry-After: no text breaks it, and a number is never shortened") {
  CHECK(wait_ms(std::string(1'000'000, '9')) == kOwnBackoff);  // no header of ours is that long
  REQUIRE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("0123456789., :-WedSunFriGMT9JanSep\t\0x", 38)));
    const auto wait = retry_after_wait(text, text, kNow);
    RC_ASSERT(!wait || (wait->count() > 0 && *wait <= kLongestDuration));
  }));
  REQUIRE(rc::check([] {
    const auto seconds = *rc::gen::inRange<std::int64_t>(1, 3'000'000'000);
    RC_ASSERT(wait_ms(std::to_string(seconds)) == seconds * 1000);
  }));
}

TEST_CASE("backoff is full jitter under a ceiling that doubles to the cap") {
  Fixed low(0);
  const Backoff backoff{.base = Duration{250}, .cap = Duration{10'000}};
  const std::array<std::int64_t, 8> ceilings{250, 500, 1'000, 2'000, 4'000, 8'000, 10'000, 10'000};
  const auto random = seeded_random(7);
  for (std::uint32_t n = 1; n <= ceilings.size(); ++n) {
    CAPTURE(n);
    CHECK(backoff_wait(backoff, n, low).count() == 0);
    const auto ceiling = ceilings[n - 1];
    Fixed high(static_cast<std::uint64_t>(ceiling));
    CHECK(backoff_wait(backoff, n, high).count() == ceiling);
    Fixed beyond(static_cast<std::uint64_t>(ceiling) + 1);
    CHECK(backoff_wait(backoff, n, beyond).count() == 0);
    for (int i = 0; i < 200; ++i) {
      const auto wait = backoff_wait(backoff, n, *random).count();
      CHECK((wait >= 0 && wait <= ceiling));
    }
  }
}

TEST_CASE("backoff never overflows") {
  const auto random = seeded_random(1);
  const auto huge = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t n : {1u, 2u, 62u, 63u, 64u, 65u, 4'000'000'000u}) {
    for (const auto base : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1'000'000}, huge}) {
      for (const auto cap : {std::int64_t{0}, std::int64_t{1}, std::int64_t{10'000}, huge / 2}) {
        const auto wait = backoff_wait({.base = Duration{base}, .cap = Duration{cap}}, n, *random).count();
        CHECK((wait >= 0 && wait <= cap));
      }
    }
  }
}

TEST_CASE("deadlines nest and say which one decided") {
  struct Case {
    std::int64_t tool, step, run_left, want;  // step 0: none
    bool clipped;
  };
  const Case cases[] = {
      {3'000, 0, 10'000, 3'000, false},     {3'000, 0, 2'000, 2'000, true},
      {3'000, 1'000, 10'000, 1'000, false}, {3'000, 20'000, 10'000, 3'000, false},
      {3'000, 0, 3'000, 3'000, false},      {3'000, 0, 0, 0, true},
      {3'000, 0, -5'000, 0, true},          {3'000, 500, 400, 400, true},
  };
  for (const auto& c : cases) {
    CAPTURE(c.tool, c.step, c.run_left);
    const auto step = c.step ? std::optional(Duration{c.step}) : std::nullopt;
    const auto d = nest_deadline(Duration{c.tool}, step, kNow + Duration{c.run_left}, kNow);
    CHECK(d.span.count() == c.want);
    CHECK(d.at == kNow + Duration{c.want});
    CHECK(d.clipped == c.clipped);
  }
  const auto far = nest_deadline(kLongestDuration, std::nullopt, kEndOfTime, kNow);
  CHECK(far.at == kNow + kLongestDuration);
  CHECK_FALSE(far.clipped);
}

TEST_CASE("a plain write needs half of its own deadline, everything else any time at all") {
  const Duration own{2'001};
  CHECK(enough_time(Kind::plain, own, Duration{1'001}));
  CHECK_FALSE(enough_time(Kind::plain, own, Duration{1'000}));
  CHECK(enough_time(Kind::plain, Duration{2'000}, Duration{1'000}));
  CHECK(enough_time(Kind::plain, own, kLongestDuration));
  for (const auto kind : {Kind::read, Kind::keyed, Kind::checkable}) {
    CHECK(enough_time(kind, own, Duration{1}));
    CHECK_FALSE(enough_time(kind, own, Duration{0}));
    CHECK_FALSE(enough_time(kind, own, Duration{-1}));
  }
  CHECK_FALSE(enough_time(Kind::plain, own, Duration{0}));
}

TEST_CASE("a date of two digits near the end of time is no date beyond it") {
  CHECK_FALSE(parse_http_date("Wednesday, 09-Sep-26 12:00:30 GMT", kEndOfTime));
  CHECK_FALSE(retry_after_wait("Wednesday, 09-Sep-26 12:00:30 GMT", "", kEndOfTime));
}
