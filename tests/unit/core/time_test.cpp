#include "holdfast/core/time.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

using namespace holdfast;

TEST_CASE("a duration is a whole number and one unit") {
  struct Case {
    const char* text;
    std::int64_t ms;
  };
  const auto c = GENERATE(Case{"1ms", 1}, Case{"250ms", 250}, Case{"3s", 3'000}, Case{"15m", 900'000},
                          Case{"2h", 7'200'000}, Case{"7d", 604'800'000}, Case{"007s", 7'000},
                          Case{"36500d", kLongestDuration.count()});
  CAPTURE(c.text);
  const auto parsed = parse_duration(c.text);
  REQUIRE(parsed);
  CHECK(parsed->count() == c.ms);
}

TEST_CASE("what is no duration is refused and the right form is shown") {
  const std::string text = GENERATE("", "0", "0s", "000ms", "10", "s", "ms", "-5s", "+5s", "1.5s", "1e3s",
                                    " 3s", "3s ", "3 s", "3S", "3sec", "3m2s", "nan", "soon", "36501d",
                                    "99999999999999999999ms", "9223372036854775807d", "3\u00b5s");
  CAPTURE(text);
  const auto parsed = parse_duration(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == "bad_duration");
  CHECK(parsed.error().message.find("250ms") != std::string::npos);
}

TEST_CASE("a refused duration is not echoed at length") {
  CHECK(parse_duration(std::string(100'000, 'x')).error().message.size() < 250);
  CHECK(parse_duration(std::string(100'000, '9') + "s").error().message.find("36500d") != std::string::npos);
}

TEST_CASE("durations are written in the shortest exact form") {
  CHECK(format_duration(Duration{90'000}) == "90s");
  CHECK(format_duration(Duration{120'000}) == "2m");
  CHECK(format_duration(Duration{1'500}) == "1500ms");
  CHECK(format_duration(Duration{86'400'000}) == "1d");
  CHECK(format_duration(Duration{5'400'000}) == "90m");
  CHECK(format_duration(Duration{0}) == "0ms");
}

TEST_CASE("a written duration reads back as itself") {
  REQUIRE(rc::check([] {
    const Duration d{*rc::gen::inRange<std::int64_t>(1, kLongestDuration.count())};
    const auto again = parse_duration(format_duration(d));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == d);
  }));
}

TEST_CASE("instants are clamped and never wrap") {
  CHECK(kEndOfTime + Duration{1} == kEndOfTime);
  CHECK(Instant{1} + kLongestDuration < kEndOfTime);
  CHECK(Instant{kEndOfTime.ms - 5} + kLongestDuration == kEndOfTime);
  CHECK(Instant{10} - Duration{4} == Instant{6});
  CHECK(Instant{10} - Instant{4} == Duration{6});
}

TEST_CASE("RFC 3339 instants") {
  struct Case {
    const char* text;
    std::int64_t ms;
  };
  // Checked with `date -u -d TEXT +%s`.
  const auto c = GENERATE(
      Case{"1970-01-01T00:00:00Z", 0}, Case{"2026-11-30T01:02:03.004Z", 1796000523004},
      Case{"2026-11-30t01:02:03z", 1796000523000}, Case{"2026-11-30T02:02:03+01:00", 1796000523000},
      Case{"2026-11-29T20:32:03-04:30", 1796000523000}, Case{"2026-11-30T01:02:03.0049999Z", 1796000523004},
      Case{"2026-11-30T01:02:03.5-00:00", 1796000523500}, Case{"2024-02-29T00:00:00Z", 1709164800000},
      Case{"2000-02-29T00:00:00Z", 951782400000}, Case{"1969-12-31T23:59:59.999Z", -1},
      Case{"0001-01-01T00:00:00Z", -62135596800000}, Case{"9999-12-31T23:59:59.999Z", kEndOfTime.ms},
      Case{"9999-12-31T23:59:59-10:00", kEndOfTime.ms});
  CAPTURE(c.text);
  const auto parsed = parse_rfc3339(c.text);
  REQUIRE(parsed);
  CHECK(parsed->ms == c.ms);
}

TEST_CASE("what is no RFC 3339 instant is refused") {
  const std::string text = GENERATE(
      "", "2026-11-30", "2026-11-30T01:02:03", "2026-11-30 01:02:03Z", "2026-11-30T01:02Z",
      "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
      "2026-04-31T00:00:00Z", "2026-11-00T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T01:60:00Z",
      "2026-11-30T01:02:60Z", "2026-11-30T01:02:03.Z", "2026-11-30T01:02:03,5Z", "2026-11-30T01:02:03+1:00",
      "2026-11-30T01:02:03+0100", "2026-11-30T01:02:03+24:00", "2026-11-30T01:02:03+01:60",
      "2026-11-30T01:02:03Z ", " 2026-11-30T01:02:03Z", "2026-11-30T01:02:03.5Z5", "26-11-30T01:02:03Z",
      "+026-11-30T01:02:03Z", "2026/11/30T01:02:03Z", "2026-11-30T-1:02:03Z");
  CAPTURE(text);
  const auto parsed = parse_rfc3339(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == "bad_instant");
}

TEST_CASE("instants are written in UTC with milliseconds") {
  CHECK(format_rfc3339(Instant{0}) == "1970-01-01T00:00:00.000Z");
  CHECK(format_rfc3339(Instant{1796000523004}) == "2026-11-30T01:02:03.004Z");
  CHECK(format_rfc3339(Instant{-1}) == "1969-12-31T23:59:59.999Z");
  CHECK(format_rfc3339(kEndOfTime) == "9999-12-31T23:59:59.999Z");
  CHECK(format_rfc3339(Instant{INT64_MAX}) == "9999-12-31T23:59:59.999Z");
  CHECK(format_rfc3339(Instant{INT64_MIN}) == "0000-01-01T00:00:00.000Z");
}

TEST_CASE("a written instant reads back as itself") {
  REQUIRE(rc::check([] {
    const Instant at{*rc::gen::inRange<std::int64_t>(-62'000'000'000'000, kEndOfTime.ms)};
    const auto again = parse_rfc3339(format_rfc3339(at));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == at);
  }));
}

TEST_CASE("a wall clock that was set back while the process was down does not take its runs back in time") {
  const Instant wall = SystemClock().now();
  const Instant newest = wall + Duration{3'600'000};
  const SystemClock clock(newest);
  CHECK(clock.now() >= newest);
  CHECK(clock.now() < newest + Duration{60'000});
  CHECK(SystemClock(wall - Duration{3'600'000}).now() >= wall);
}

TEST_CASE("the system clock starts at the wall clock and never goes back") {
  const auto wall = [] {
    return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  const auto before = wall();
  const SystemClock clock;
  Instant last = clock.now();
  CHECK(last.ms >= before);
  CHECK(last.ms <= wall() + 1'000);
  for (int i = 0; i < 10'000; ++i) {
    const Instant now = clock.now();
    REQUIRE(now >= last);
    last = now;
  }
}
