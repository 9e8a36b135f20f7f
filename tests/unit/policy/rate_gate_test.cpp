#include "holdfast/policy/rate_gate.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <limits>

using namespace holdfast;

namespace {

constexpr Instant kStart{1'000'000};
constexpr Backoff kBackoff{Duration{250}, Duration{10'000}};

struct Fixture {
  RateGate gate{.server = "api"};
  std::unique_ptr<Random> random = seeded_random(5);
  Instant now = kStart;

  bool hit(std::optional<Duration> asked = std::nullopt) {
    return limit(gate, kBackoff, gate.generation, asked, now, *random);
  }
  Duration shut_for() const { return *gate.until - now; }
};

}  // namespace

TEST_CASE("a limit with a time shuts the gate exactly that long, and never shorter than it was") {
  Fixture f;
  CHECK_FALSE(is_shut(f.gate, f.now));
  CHECK(f.hit(Duration{5'000}));
  CHECK(f.gate.until == kStart + Duration{5'000});
  CHECK(f.gate.hits == 0);
  CHECK(is_shut(f.gate, kStart + Duration{4'999}));
  CHECK_FALSE(is_shut(f.gate, kStart + Duration{5'000}));
  CHECK_FALSE(f.hit(Duration{3'000}));
  CHECK(f.gate.until == kStart + Duration{5'000});
  CHECK(f.hit(Duration{6'000}));
  CHECK(f.gate.until == kStart + Duration{6'000});
  CHECK(f.hit());  // counted, and not shorter either
  CHECK(f.gate.until == kStart + Duration{6'000});
  CHECK(f.gate.hits == 1);
}

TEST_CASE("successive limits without a time wait longer and longer, to the cap, until an answer comes") {
  Fixture f;
  for (const std::int64_t most : {250, 500, 1'000, 2'000, 4'000, 8'000, 10'000, 10'000}) {
    CHECK(f.hit());
    CAPTURE(most);
    CHECK(f.shut_for().count() >= most / 2);
    CHECK(f.shut_for().count() <= most);
    f.now = *f.gate.until;
  }
  CHECK(answered(f.gate, f.gate.generation));
  CHECK_FALSE(answered(f.gate, f.gate.generation));
  CHECK(f.gate.hits == 0);
  CHECK(f.hit());
  CHECK(f.shut_for().count() <= 250);
}

TEST_CASE("calls that left before a limit tell nothing new: one limit is counted once") {
  Fixture f;
  const auto before = f.gate.generation;
  CHECK(f.hit());
  const RateGate once = f.gate;
  for (int i = 0; i < 8; ++i) CHECK_FALSE(limit(f.gate, kBackoff, before, std::nullopt, f.now, *f.random));
  CHECK_FALSE(answered(f.gate, before));
  CHECK(f.gate.hits == 1);
  CHECK(f.gate.until == once.until);
  CHECK(f.gate.generation == once.generation);
  // A time that was asked for holds whoever brings it.
  CHECK(limit(f.gate, kBackoff, before, Duration{60'000}, f.now, *f.random));
  CHECK(f.gate.until == kStart + Duration{60'000});
  CHECK(f.gate.generation == once.generation);
}

TEST_CASE("own waits spread between half and all of the limit") {
  std::int64_t least = 250, most = 0;
  const auto random = seeded_random(9);
  for (int i = 0; i < 500; ++i) {
    RateGate gate;
    CHECK(limit(gate, kBackoff, 1, std::nullopt, kStart, *random));
    least = std::min(least, (*gate.until - kStart).count());
    most = std::max(most, (*gate.until - kStart).count());
  }
  CHECK(least >= 125);
  CHECK(least < 135);
  CHECK(most > 240);
  CHECK(most <= 250);
}

TEST_CASE("an operator's word opens a gate that a server shut for a hundred years") {
  Fixture f;
  CHECK(f.hit(kLongestDuration));
  CHECK(f.hit());
  clear(f.gate);
  CHECK_FALSE(is_shut(f.gate, f.now));
  CHECK(f.gate.hits == 0);
}

TEST_CASE("no number wraps and no gate opens early, whatever the backoff and the count") {
  REQUIRE(rc::check([] {
    RateGate gate;
    gate.hits = *rc::gen::element<std::uint32_t>(0, 1, 31, 32, 64, 1'000'000,
                                                 std::numeric_limits<std::uint32_t>::max());
    const Backoff backoff{Duration{*rc::gen::inRange<std::int64_t>(0, kLongestDuration.count() + 1)},
                          Duration{*rc::gen::inRange<std::int64_t>(0, kLongestDuration.count() + 1)}};
    const auto random = seeded_random(*rc::gen::arbitrary<std::uint64_t>());
    const auto hits = gate.hits;
    const std::optional<Instant> was =
        *rc::gen::arbitrary<bool>() ? std::optional(kStart + Duration{1'000}) : std::nullopt;
    gate.until = was;
    (void)limit(gate, backoff, 1, std::nullopt, kStart, *random);
    RC_ASSERT(gate.until.has_value());
    RC_ASSERT(*gate.until > kStart);
    RC_ASSERT(!was || *gate.until >= *was);
    RC_ASSERT(*gate.until <= std::max(kStart + std::max(backoff.cap, Duration{1}), was.value_or(kStart)));
    RC_ASSERT(gate.hits >= hits);
  }));
}
