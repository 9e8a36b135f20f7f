#include "holdfast/policy/breaker.h"

#include <array>
#include <catch2/catch.hpp>

using namespace holdfast;

namespace {

constexpr Instant kStart{1'000'000};
constexpr Duration kLease{3'000};

class NoJitter final : public Random {
 public:
  std::uint64_t next() override { return 0; }
};

struct Fixture {
  BreakerRule rule{.consecutive_failures = 3,
                   .failure_rate = 0.5,
                   .min_calls = 10,
                   .window = Duration{60'000},
                   .cooldown = Duration{1'000},
                   .max_cooldown = Duration{8'000}};
  Breaker b{.server = "api"};
  NoJitter random;
  Instant now = kStart;

  Admission ask(bool may_probe = true) { return admit(b, rule, now, now + kLease, may_probe); }
  bool tell(std::uint64_t generation, Outcome outcome) {
    return settle(b, rule, generation, outcome, "502", now, random);
  }
  void trip() {
    for (std::uint32_t i = 0; i < rule.consecutive_failures; ++i) (void)tell(b.generation, Outcome::failure);
    REQUIRE(b.state == BreakerState::open);
  }
  std::uint64_t probe() {
    if (b.until) now = std::max(now, *b.until);
    const auto a = ask();
    REQUIRE(a.pass == Pass::probe);
    return a.generation;
  }
};

}  // namespace

TEST_CASE("a closed breaker lets everybody pass and trips on failures in a row") {
  Fixture f;
  CHECK(f.ask().pass == Pass::yes);
  CHECK_FALSE(f.ask().changed);
  CHECK(f.tell(1, Outcome::failure));
  CHECK(f.tell(1, Outcome::failure));
  CHECK(f.tell(1, Outcome::success));
  CHECK(f.b.consecutive == 0);
  CHECK(f.tell(1, Outcome::failure));
  CHECK(f.tell(1, Outcome::failure));
  CHECK(f.b.state == BreakerState::closed);
  CHECK(f.tell(1, Outcome::failure));
  CHECK(f.b.state == BreakerState::open);
  CHECK(f.b.generation == 2);
  CHECK(f.b.until == kStart + Duration{1'000});
  CHECK(f.b.last_cause == "502");
  const auto no = f.ask();
  CHECK(no.pass == Pass::no);
  CHECK(no.until == f.b.until);
  CHECK_FALSE(no.changed);
}

TEST_CASE("it trips on the failure rate of a window with enough calls") {
  Fixture f;
  f.rule.consecutive_failures = 100;
  const auto run = [&](int failures, int successes) {
    for (int i = 0; i < std::max(failures, successes); ++i) {
      if (i < successes) (void)f.tell(f.b.generation, Outcome::success);
      if (i < failures) (void)f.tell(f.b.generation, Outcome::failure);
    }
  };
  run(4, 5);
  CHECK(f.b.state == BreakerState::closed);  // nine calls are not enough
  (void)f.tell(1, Outcome::failure);
  CHECK(f.b.state == BreakerState::open);  // five of ten

  Fixture g;
  g.rule.consecutive_failures = 100;
  for (int i = 0; i < 9; ++i) (void)g.tell(1, Outcome::failure);
  g.now = g.now + g.rule.window;  // the window is over: its counts are gone
  (void)g.tell(1, Outcome::failure);
  CHECK(g.b.state == BreakerState::closed);
  CHECK(g.b.window_calls == 1);
  CHECK(g.b.window_failures == 1);
}

TEST_CASE("every outcome of the probe gives the slot back") {
  struct Case {
    Outcome outcome;
    BreakerState state;
    std::int64_t until;  // after the outcome; -1: none
  };
  const Case cases[] = {
      {Outcome::success, BreakerState::closed, -1},
      {Outcome::failure, BreakerState::open, 2'000},
      {Outcome::neutral, BreakerState::open, 0},
  };
  for (const auto& c : cases) {
    Fixture f;
    f.trip();
    const auto generation = f.probe();
    CHECK(f.b.state == BreakerState::half_open);
    CHECK(f.ask().pass == Pass::no);
    CHECK(f.ask().until == f.b.probe_until);
    f.now = f.now + Duration{100};
    CHECK(f.tell(generation, c.outcome));
    CAPTURE(static_cast<int>(c.outcome));
    CHECK(f.b.state == c.state);
    CHECK(f.b.generation == generation + 1);
    CHECK_FALSE(f.b.probe_until);
    CHECK(f.b.since == f.now);
    CHECK((f.b.until ? (*f.b.until - f.now).count() : -1) == c.until);
    if (c.outcome == Outcome::neutral) CHECK(f.ask().pass == Pass::probe);
    if (c.outcome == Outcome::success) {
      CHECK(f.ask().pass == Pass::yes);
      CHECK(f.b.consecutive == 0);
      CHECK(f.b.window_calls == 0);
      CHECK(f.b.window_failures == 0);
    }
  }
}

TEST_CASE("results of older generations change nothing, in any state") {
  for (const auto outcome : {Outcome::success, Outcome::failure, Outcome::neutral}) {
    for (const auto state : {BreakerState::closed, BreakerState::open, BreakerState::half_open}) {
      Fixture f;
      f.trip();
      if (state != BreakerState::open) {
        const auto generation = f.probe();
        if (state == BreakerState::closed) (void)f.tell(generation, Outcome::success);
      }
      REQUIRE(f.b.state == state);
      const auto before = f.b;
      for (std::uint64_t generation = 0; generation < f.b.generation; ++generation) {
        CAPTURE(static_cast<int>(outcome), static_cast<int>(state), generation);
        CHECK_FALSE(f.tell(generation, outcome));
        CHECK(f.b.state == before.state);
        CHECK(f.b.generation == before.generation);
        CHECK(f.b.until == before.until);
        CHECK(f.b.probe_until == before.probe_until);
        CHECK(f.b.consecutive == before.consecutive);
        CHECK(f.b.window_calls == before.window_calls);
      }
      CHECK_FALSE(f.tell(f.b.generation + 1, outcome));
    }
  }
}

TEST_CASE("every outcome, in every state, of every generation") {
  enum class Stand { closed, striking, open, half_open, lease_over, restarted, forced };
  struct Case {
    Stand stand;
    // What becomes of the state by success, failure, neutral and alive of the present generation.
    std::array<BreakerState, 4> becomes;
    bool settles;  // the outcome is looked at
  };
  using S = BreakerState;
  const Case cases[] = {
      {Stand::closed, {S::closed, S::closed, S::closed, S::closed}, true},
      {Stand::striking, {S::closed, S::open, S::closed, S::closed}, true},
      {Stand::open, {S::open, S::open, S::open, S::open}, false},
      {Stand::half_open, {S::closed, S::open, S::open, S::closed}, true},
      {Stand::lease_over, {S::closed, S::open, S::open, S::closed}, true},  // late, and nobody has come since
      {Stand::restarted, {S::closed, S::open, S::open, S::closed}, true},
      {Stand::forced, {S::open, S::open, S::open, S::open}, false},
  };
  constexpr std::array kOutcomes{Outcome::success, Outcome::failure, Outcome::neutral, Outcome::alive};
  for (const Case& c : cases) {
    for (std::size_t o = 0; o < kOutcomes.size(); ++o) {
      for (const int age : {-1, 0, 1}) {
        CAPTURE(static_cast<int>(c.stand), o, age);
        Fixture f;
        if (c.stand != Stand::closed && c.stand != Stand::striking) f.trip();
        if (c.stand == Stand::striking)
          for (int i = 0; i < 2; ++i) (void)f.tell(1, Outcome::failure);
        if (c.stand >= Stand::half_open && c.stand <= Stand::restarted) (void)f.probe();
        if (c.stand == Stand::lease_over) f.now = f.now + kLease;
        if (c.stand == Stand::restarted) f.b.probe_until.reset();
        if (c.stand == Stand::forced) force_open(f.b, "ops", "why", std::nullopt, f.now);
        const Breaker before = f.b;
        const bool changed = f.tell(before.generation + static_cast<std::uint64_t>(age), kOutcomes[o]);
        const bool moves = age == 0 && f.b.state != before.state;
        CHECK(f.b.state == (age == 0 ? c.becomes[o] : before.state));
        CHECK(f.b.generation == before.generation + (moves ? 1 : 0));
        if (moves) {
          CHECK(changed);
          CHECK_FALSE(f.b.probe_until);
        }
        if (age != 0 || !c.settles) {
          CHECK_FALSE(changed);
          CHECK(f.b.consecutive == before.consecutive);
          CHECK(f.b.window_calls == before.window_calls);
          CHECK(f.b.cooldown == before.cooldown);
          CHECK(f.b.until == before.until);
        }
        // Whatever came of it, a failed probe waits longer, and every other one is possible again at once.
        if (age == 0 && c.stand == Stand::half_open && kOutcomes[o] == Outcome::failure)
          CHECK(*f.b.until - f.now == Duration{2'000});
        if (age == 0 && c.stand == Stand::half_open && kOutcomes[o] == Outcome::neutral)
          CHECK(f.ask().pass == Pass::probe);
      }
    }
  }
}

TEST_CASE("closed by another call than its own it is on probation until its own has answered") {
  Fixture f;
  f.trip();
  (void)f.tell(f.probe(), Outcome::failure);  // 2 s
  CHECK(f.tell(f.probe(), Outcome::alive));
  CHECK(f.b.state == BreakerState::closed);
  CHECK(f.ask().pass == Pass::yes);
  CHECK_FALSE(f.tell(f.b.generation, Outcome::alive));
  CHECK(f.tell(f.b.generation, Outcome::failure));
  CHECK(f.b.state == BreakerState::open);
  CHECK((*f.b.until - f.now).count() == 4'000);
  CHECK(f.tell(f.probe(), Outcome::alive));
  CHECK(f.tell(f.b.generation, Outcome::success));
  CHECK_FALSE(f.tell(f.b.generation, Outcome::success));
  f.trip();
  CHECK((*f.b.until - f.now).count() == 1'000);
}

TEST_CASE("a neutral outcome while closed says nothing") {
  Fixture f;
  (void)f.tell(1, Outcome::failure);
  CHECK_FALSE(f.tell(1, Outcome::neutral));
  CHECK(f.b.consecutive == 1);
  CHECK(f.b.window_calls == 1);
}

TEST_CASE("the cool-down doubles with each failed probe, to its maximum, and starts anew after closing") {
  Fixture f;
  f.trip();
  for (const std::int64_t want : {2'000, 4'000, 8'000, 8'000, 8'000}) {
    (void)f.tell(f.probe(), Outcome::failure);
    CHECK((*f.b.until - f.now).count() == want);
  }
  (void)f.tell(f.probe(), Outcome::neutral);
  (void)f.tell(f.probe(), Outcome::failure);
  CHECK((*f.b.until - f.now).count() == 8'000);
  (void)f.tell(f.probe(), Outcome::success);
  f.trip();
  CHECK((*f.b.until - f.now).count() == 1'000);
}

TEST_CASE("jitter lengthens a cool-down by a tenth at most and never passes the maximum") {
  const auto random = seeded_random(3);
  bool varied = false;
  for (int i = 0; i < 300; ++i) {
    Fixture f;
    f.rule.consecutive_failures = 1;
    (void)settle(f.b, f.rule, 1, Outcome::failure, "x", f.now, *random);
    const auto wait = (*f.b.until - f.now).count();
    CHECK((wait >= 1'000 && wait <= 1'100));
    varied = varied || wait != 1'000;
    f.b.cooldown = Duration{7'900};
    const auto generation = f.probe();
    (void)settle(f.b, f.rule, generation, Outcome::failure, "x", f.now, *random);
    CHECK((*f.b.until - f.now).count() == 8'000);
  }
  CHECK(varied);
}

TEST_CASE("a probe whose lease ran out is replaced and its result comes too late") {
  Fixture f;
  f.trip();
  const auto lost = f.probe();
  f.now = f.now + kLease - Duration{1};
  CHECK(f.ask().pass == Pass::no);
  f.now = f.now + Duration{1};
  const auto next = f.ask();
  CHECK(next.pass == Pass::probe);
  CHECK(next.changed);
  CHECK(next.generation > lost);
  CHECK_FALSE(f.tell(lost, Outcome::success));
  CHECK(f.b.state == BreakerState::half_open);
  CHECK(f.tell(next.generation, Outcome::success));
  CHECK(f.b.state == BreakerState::closed);
}

TEST_CASE("a caller that may not probe asks again later and takes nothing") {
  Fixture f;
  f.trip();
  f.now = *f.b.until;
  const auto no = f.ask(false);
  CHECK(no.pass == Pass::no);
  CHECK(no.until > f.now);
  CHECK_FALSE(no.changed);
  CHECK(f.b.state == BreakerState::open);
  CHECK(f.ask(true).pass == Pass::probe);
  f.now = f.now + kLease;
  CHECK(f.ask(false).pass == Pass::no);
  CHECK(f.ask(false).until > f.now);
}

TEST_CASE("forced open holds everybody, until closed or until its time") {
  Fixture f;
  const auto old = f.b.generation;
  force_open(f.b, "ops", "maintenance", std::nullopt, f.now);
  CHECK(f.b.forced_open);
  CHECK(f.b.generation > old);
  f.now = f.now + kLongestDuration;
  CHECK(f.ask().pass == Pass::no);
  CHECK_FALSE(f.ask().until);
  CHECK_FALSE(f.tell(f.b.generation, Outcome::success));
  CHECK((f.b.by == "ops" && f.b.why == "maintenance"));
  force_close(f.b, "ops", "done", f.now);
  CHECK_FALSE(f.b.forced_open);
  CHECK(f.b.state == BreakerState::closed);
  CHECK(f.b.since == f.now);
  CHECK(f.ask().pass == Pass::yes);

  force_open(f.b, "ops", "an hour", f.now + Duration{3'600'000}, f.now);
  f.now = f.now + Duration{3'599'999};
  CHECK(f.ask().until == f.now + Duration{1});
  f.now = f.now + Duration{1};
  const auto generation = f.b.generation;
  const auto yes = f.ask();
  CHECK(yes.pass == Pass::yes);
  CHECK(yes.changed);
  CHECK(f.b.generation > generation);
  CHECK_FALSE(f.b.forced_open);
  CHECK_FALSE(f.b.until);
}

TEST_CASE("an operator's word overrules a tripped breaker and a probe in flight") {
  Fixture f;
  f.trip();
  const auto probe = f.probe();
  force_open(f.b, "ops", "stop", std::nullopt, f.now);
  CHECK_FALSE(f.b.probe_until);
  CHECK_FALSE(f.tell(probe, Outcome::success));
  CHECK(f.ask().pass == Pass::no);
  force_close(f.b, "ops", "go", f.now);
  CHECK_FALSE(f.tell(probe, Outcome::failure));
  CHECK(f.b.consecutive == 0);
  f.trip();
  CHECK(f.b.by.empty());
  CHECK(f.b.why.empty());
}

TEST_CASE("a disabled breaker never trips but can be forced") {
  Fixture f;
  f.rule.enabled = false;
  for (int i = 0; i < 50; ++i) CHECK_FALSE(f.tell(1, Outcome::failure));
  CHECK(f.ask().pass == Pass::yes);
  force_open(f.b, "ops", "x", std::nullopt, f.now);
  CHECK(f.ask().pass == Pass::no);
}

TEST_CASE("huge cool-downs don't wrap") {
  Fixture f;
  f.rule.cooldown = f.rule.max_cooldown = kLongestDuration;
  f.b.cooldown = kLongestDuration;
  f.trip();
  CHECK(*f.b.until == f.now + kLongestDuration);
}
