#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "holdfast/policy/latency_window.h"

using namespace holdfast;

namespace {

/// Spans of every size, from nothing to a day.
std::int64_t any_span() {
  const auto bits = *rc::gen::inRange(0, 27);
  return *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << bits);
}

std::int64_t exact(std::vector<std::int64_t> spans, double percent) {
  std::ranges::sort(spans);
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(spans.size()) - 1e-6));
  return spans[std::clamp<std::size_t>(rank, 1, spans.size()) - 1];
}

LatencySketch sketch_of(const std::vector<std::pair<std::int64_t, bool>>& samples) {
  LatencySketch out;
  for (const auto& [span, gave_up] : samples) out.add(Duration{span}, gave_up);
  return out;
}

std::vector<std::pair<std::int64_t, bool>> any_samples() {
  std::vector<std::pair<std::int64_t, bool>> out(*rc::gen::inRange<std::size_t>(0, 60));
  for (auto& [span, gave_up] : out) {
    span = any_span();
    gave_up = *rc::gen::inRange(0, 4) == 0;
  }
  return out;
}

constexpr Instant kMorning{20'000 * LatencyWindow::kSlice.count()};

}  // namespace

TEST_CASE("a percentile is within 2 % of the exact one") {
  REQUIRE(rc::check([] {
    std::vector<std::int64_t> spans(*rc::gen::inRange<std::size_t>(1, 400));
    LatencySketch sketch;
    for (auto& span : spans) sketch.add(Duration{span = any_span()}, false);
    RC_ASSERT(sketch.samples() == spans.size());
    for (const double percent : {0.1, 25.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0}) {
      const auto right = exact(spans, percent);
      const auto seen = sketch.percentile(percent);
      RC_ASSERT(!seen.at_least);
      RC_ASSERT(std::abs(seen.value.count() - right) * 50 <= right);
    }
  }));
}

TEST_CASE("merging two sketches is counting all their samples in one") {
  REQUIRE(rc::check([] {
    const auto a = any_samples(), b = any_samples();
    auto both = a;
    both.insert(both.end(), b.begin(), b.end());
    auto merged = sketch_of(a);
    merged.merge(sketch_of(b));
    RC_ASSERT(merged == sketch_of(both));
  }));
}

TEST_CASE("a sketch is read back from its text as it was") {
  REQUIRE(rc::check([] {
    const auto sketch = sketch_of(any_samples());
    const auto again = LatencySketch::parse(sketch.text());
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == sketch);
    RC_ASSERT(again->samples() == sketch.samples());
    RC_ASSERT(again->gave_up() == sketch.gave_up());
  }));
}

TEST_CASE("a text that no sketch writes is no sketch") {
  for (const char* text : {" ", "1", "1:", "1:0", "1:1 ", "1:1  2:1", "2:1 1:1", "1:1 1:1", "736:1", "1:1:0",
                           "01:1", "1:-1", "1:4294967296", "1:1:1:1", "a", "1:1\n"}) {
    CAPTURE(text);
    CHECK_FALSE(LatencySketch::parse(text));
  }
  CHECK(LatencySketch::parse(""));
  CHECK(LatencySketch::parse("1:0:3")->gave_up() == 3);
}

TEST_CASE("a sketch stays bounded, whatever it is given") {
  LatencySketch sketch;
  for (std::int64_t i = 0; i < 200'000; ++i) sketch.add(Duration{i * 700}, i % 3 == 0);
  CHECK(sketch.text().size() < 736 * 20);
  sketch.add(Duration{-5}, false);
  sketch.add(kLongestDuration, false);
  CHECK(sketch.percentile(0.0001).value == Duration{0});
  CHECK(std::abs(sketch.percentile(100).value.count() - LatencySketch::kMost) * 50 <= LatencySketch::kMost);
  CHECK(LatencySketch{}.percentile(99).value == Duration{0});
}

TEST_CASE("calls given up count as still running until then") {
  // 90 answers in 100 ms, 10 given up after 500 ms: the 99th lies beyond, the 90th does not.
  LatencySketch sketch;
  for (int i = 0; i < 90; ++i) sketch.add(Duration{100}, false);
  for (int i = 0; i < 10; ++i) sketch.add(Duration{500}, true);
  CHECK_FALSE(sketch.percentile(90).at_least);
  CHECK(sketch.percentile(90).value.count() == Approx(100).epsilon(0.02));
  CHECK(sketch.percentile(91).at_least);
  CHECK(sketch.percentile(99).value.count() == Approx(500).epsilon(0.02));
  // Given up early, they say nothing about what lies between: 10 of the 20 that were out at 500 ms answered in 2 s.
  for (int i = 0; i < 10; ++i) sketch.add(Duration{2'000}, false);
  CHECK(sketch.percentile(99).value.count() == Approx(2'000).epsilon(0.02));
  CHECK_FALSE(sketch.percentile(99).at_least);
  // Product-limit by hand: 4 answers at 10, 1 given up at 20, 1 answer at 30: 5/6 * ... = 1/3 still run after 10.
  const auto few = sketch_of({{10, false}, {10, false}, {10, false}, {10, false}, {20, true}, {30, false}});
  CHECK(few.percentile(66.6).value == Duration{10});
  CHECK(few.percentile(67).value == Duration{30});
}

TEST_CASE("samples leave the window after eight days") {
  LatencyWindow window;
  for (int day = 0; day < 30; ++day) {
    window.add(Duration{100 + day}, false, kMorning + day * LatencyWindow::kSlice);
    CHECK(window.all().samples() == std::min<std::uint64_t>(day + 1, 8));
    CHECK(window.newest().samples() == 1);
  }
  window.age(kMorning + 36 * LatencyWindow::kSlice);
  CHECK(window.all().samples() == 1);
  window.age(kMorning + 37 * LatencyWindow::kSlice);
  CHECK(window.all().samples() == 0);
  window.add(Duration{7}, false, kMorning + 38 * LatencyWindow::kSlice);
  CHECK(window.all().samples() == 1);
  CHECK(window.all().percentile(50).value == Duration{7});
}

TEST_CASE("a clock that is set back loses nothing, and one that was far ahead is forgotten") {
  LatencyWindow window;
  window.add(Duration{5}, false, kMorning + Duration{1});
  window.add(Duration{6}, false, kMorning - Duration{1});
  CHECK(window.all().samples() == 2);
  window.add(Duration{7}, false, kMorning + 400 * LatencyWindow::kSlice);
  CHECK(window.all().samples() == 1);
  window.add(Duration{8}, false, kMorning);
  CHECK(window.all().samples() == 1);
  CHECK(window.all().percentile(50).value == Duration{8});
}

TEST_CASE("a window comes back from its slices") {
  REQUIRE(rc::check([] {
    LatencyWindow window, again;
    std::map<std::uint32_t, LatencySlice> rows;
    Instant now = kMorning;
    for (int i = 0; i < 40; ++i) {
      now = now + Duration{*rc::gen::inRange<std::int64_t>(0, LatencyWindow::kSlice.count())};
      const auto row = window.stored(window.add(Duration{any_span()}, i % 5 == 0, now));
      rows[row.slot] = row;
    }
    for (const auto& [slot, row] : rows) RC_ASSERT(again.restore(row));
    again.age(now);
    window.age(now);
    RC_ASSERT(again.all() == window.all());
    RC_ASSERT(again.newest() == window.newest());
    RC_ASSERT(rows.size() <= LatencyWindow::kSlices);
  }));
  LatencyWindow window;
  CHECK_FALSE(window.restore({0, kMorning + Duration{1}, "1:1"}));
  CHECK_FALSE(window.restore({1, kMorning, "1:1"}));
  CHECK_FALSE(window.restore({9, kMorning, "1:1"}));
  CHECK_FALSE(window.restore({0, kMorning, "1:x"}));
  CHECK(window.restore({0, kMorning, "1:1"}));
}

TEST_CASE("only what the tool did, or what our own deadline cut, is a sample") {
  const auto judged = [](AttemptKind kind, bool clipped, Phase phase, Failure failure, Answer answer,
                         AttemptClass klass) {
    Evidence evidence;
    evidence.phase = phase;
    evidence.failure = failure;
    evidence.answer = answer;
    Judgement judgement;
    judgement.klass = klass;
    return sample_of(kind, clipped, evidence, judgement);
  };
  using enum Failure;
  const auto call = AttemptKind::call;
  CHECK(judged(call, false, Phase::parsed, none, Answer::http, AttemptClass::ok) == Sample::answered);
  CHECK(judged(call, true, Phase::parsed, none, Answer::http, AttemptClass::ok) == Sample::answered);
  CHECK(judged(AttemptKind::check, false, Phase::parsed, none, Answer::result, AttemptClass::ok) ==
        Sample::answered);
  CHECK(judged(AttemptKind::fallback, false, Phase::parsed, none, Answer::result, AttemptClass::ok) ==
        Sample::answered);
  CHECK(judged(call, false, Phase::parsed, none, Answer::tool_error, AttemptClass::tool_error) ==
        Sample::answered);
  CHECK(judged(AttemptKind::probe, false, Phase::parsed, none, Answer::result, AttemptClass::ok) ==
        Sample::none);
  CHECK(judged(call, false, Phase::tx_all, timeout, Answer::none, AttemptClass::timeout) == Sample::gave_up);
  CHECK(judged(call, false, Phase::rx_head, timeout, Answer::none, AttemptClass::timeout) == Sample::gave_up);
  CHECK(judged(call, true, Phase::tx_all, timeout, Answer::none, AttemptClass::timeout) == Sample::none);
  for (const auto phase : {Phase::local, Phase::dns, Phase::tcp, Phase::proxy, Phase::tls, Phase::tx0})
    CHECK(judged(call, false, phase, timeout, Answer::none, AttemptClass::timeout) == Sample::none);
  for (const auto failure : {cancelled, crashed, connection_lost, connect, dns_temporary, body_cut, too_large})
    CHECK(judged(call, false, Phase::tx_all, failure, Answer::none, AttemptClass::reset) == Sample::none);
  for (const auto klass : {AttemptClass::http_4xx, AttemptClass::http_429, AttemptClass::http_5xx,
                           AttemptClass::redirect, AttemptClass::rpc_error, AttemptClass::malformed})
    CHECK(judged(call, false, Phase::parsed, none, Answer::http, klass) == Sample::none);
}
