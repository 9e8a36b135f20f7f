#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "holdfast/policy/sized_deadline.h"

using namespace holdfast;

namespace {

constexpr Duration kHour{3'600'000};
constexpr Instant kNow{20'000 * LatencyWindow::kSlice.count()};

LatencyWindow window_of(int samples, int ms, Instant at = kNow) {
  LatencyWindow window;
  for (int i = 0; i < samples; ++i) window.add(Duration{ms}, false, at);
  return window;
}

}  // namespace

TEST_CASE("a percentile needs ten samples beyond it") {
  CHECK(samples_needed(50) == 20);
  CHECK(samples_needed(90) == 100);
  CHECK(samples_needed(95) == 200);
  CHECK(samples_needed(99) == 1'000);
  CHECK(samples_needed(99.9) == 10'000);
  CHECK(samples_needed(AutoDeadline{.percentile = 95}, Kind::keyed) == 200);
  CHECK(samples_needed(AutoDeadline{.percentile = 95}, Kind::plain) == 1'000);
}

TEST_CASE("with too few samples nothing is wanted; with enough the percentile times the factor") {
  const AutoDeadline rule;
  CHECK_FALSE(wanted_deadline(window_of(999, 1'000), rule, Kind::read));
  const auto wanted = wanted_deadline(window_of(1'000, 1'000), rule, Kind::read);
  REQUIRE(wanted);
  CHECK(wanted->count() == Approx(1'500).epsilon(0.02));
  CHECK(wanted_deadline(window_of(200, 1'000), AutoDeadline{.percentile = 95}, Kind::keyed));
  CHECK_FALSE(wanted_deadline(window_of(199, 1'000), AutoDeadline{.percentile = 95}, Kind::keyed));
}

TEST_CASE("floor and ceiling hold") {
  const AutoDeadline rule;
  CHECK(*wanted_deadline(window_of(1'000, 2), rule, Kind::read) == rule.floor);
  CHECK(*wanted_deadline(window_of(1'000, 25'000), rule, Kind::read) == rule.ceiling);
  CHECK(*wanted_deadline(window_of(1'000, 25'000), rule, Kind::plain) == rule.ceiling);
}

TEST_CASE("a plain write is given twice the time, by the 99th percentile at least") {
  const AutoDeadline rule{.percentile = 95};
  CHECK_FALSE(wanted_deadline(window_of(999, 1'000), rule, Kind::plain));
  const auto window = window_of(1'000, 1'000);
  CHECK(wanted_deadline(window, rule, Kind::checkable)->count() == Approx(1'500).epsilon(0.02));
  CHECK(wanted_deadline(window, rule, Kind::plain)->count() == Approx(3'000).epsilon(0.02));
}

TEST_CASE("calls given up raise the deadline until they would fit, or to the ceiling") {
  const AutoDeadline rule;
  auto window = window_of(1'000, 100);
  Duration last = *wanted_deadline(window, rule, Kind::read);
  CHECK(last == rule.floor);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i) window.add(last, true, kNow);
    const Duration next = *wanted_deadline(window, rule, Kind::read);
    CHECK((next > last || next == rule.ceiling));
    last = next;
  }
  CHECK(last == rule.ceiling);
}

TEST_CASE("a tool that became slower today is seen before the week's samples are outweighed") {
  const AutoDeadline rule;
  auto window = window_of(150'000, 1'000, kNow - LatencyWindow::kSlice);
  for (int i = 0; i < 1'000; ++i) window.add(Duration{3'000}, false, kNow);
  CHECK(window.all().percentile(99).value.count() == Approx(1'000).epsilon(0.02));
  CHECK(wanted_deadline(window, rule, Kind::read)->count() == Approx(4'500).epsilon(0.02));
}

TEST_CASE("a deadline rises at once and sinks by a tenth an hour") {
  const auto first = resized(std::nullopt, Duration{2'000}, kNow);
  CHECK(first == SizedDeadline{Duration{2'000}, kNow});
  CHECK(resized(first, Duration{9'000}, kNow) == SizedDeadline{Duration{9'000}, kNow});
  CHECK(resized(first, Duration{500}, kNow) == first);
  CHECK(resized(first, Duration{500}, kNow + kHour / 2).value == Duration{1'900});
  CHECK(resized(first, Duration{500}, kNow + kHour).value == Duration{1'800});
  CHECK(resized(first, Duration{500}, kNow + 1'000 * kHour).value == Duration{1'800});
  CHECK(resized(first, Duration{1'990}, kNow + kHour).value == Duration{1'990});
  CHECK(resized(first, Duration{500}, kNow - kHour) == first);
  // What stayed right for long does not sink faster afterwards.
  const auto kept = resized(first, Duration{2'000}, kNow + 10 * kHour);
  CHECK(resized(kept, Duration{500}, kNow + 10 * kHour + Duration{1'000}).value >= Duration{1'999});
}

TEST_CASE("however often it is asked, it sinks no faster, and it gets there") {
  REQUIRE(rc::check([] {
    std::optional<SizedDeadline> at = SizedDeadline{Duration{*rc::gen::inRange<std::int64_t>(100, 60'000)}, kNow};
    const Duration start = at->value, wanted = start / 3;
    Instant now = kNow;
    while (now < kNow + kHour) {
      now = now + Duration{*rc::gen::inRange<std::int64_t>(1, 200'000)};
      at = resized(at, wanted, std::min(now, kNow + kHour));
    }
    RC_ASSERT(at->value >= start - start / 10 - Duration{1});
    for (int hour = 0; hour < 40; ++hour) at = resized(at, wanted, at->since + kHour);
    RC_ASSERT(at->value - wanted <= Duration{10});
  }));
}

TEST_CASE("a suggestion needs samples, and is a round number") {
  CHECK_FALSE(suggested_deadline(window_of(199, 100), Kind::read));
  CHECK(*suggested_deadline(window_of(200, 1'000), Kind::read) == Duration{3'000});
  CHECK(*suggested_deadline(window_of(1'000, 1'000), Kind::read) == Duration{1'500});
  CHECK(*suggested_deadline(window_of(1'000, 1'000), Kind::plain) == Duration{3'000});
  CHECK(*suggested_deadline(window_of(1'000, 1), Kind::read) == Duration{100});
  CHECK(*suggested_deadline(window_of(1'000, 1'237), Kind::read) == Duration{1'900});
}
