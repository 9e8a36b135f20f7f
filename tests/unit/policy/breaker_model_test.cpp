// Random histories of one breaker against what must always hold.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "holdfast/policy/breaker.h"

using namespace holdfast;

namespace {

struct Call {
  std::uint64_t generation;
  bool probe;
  Instant lease_until;
};

struct History {
  BreakerRule rule{.consecutive_failures = 3,
                   .min_calls = 5,
                   .window = Duration{5'000},
                   .cooldown = Duration{1'000},
                   .max_cooldown = Duration{4'000}};
  Breaker b;
  Instant now{1'000'000};
  std::unique_ptr<Random> random = seeded_random(11);
  std::vector<Call> calls;  // admitted and not settled

  [[nodiscard]] std::size_t live_probes() const {
    std::size_t n = 0;
    for (const auto& c : calls) n += c.probe && c.generation == b.generation && now < c.lease_until;
    return n;
  }

  void ask(bool may_probe) {
    const auto busy = live_probes();
    const auto before = b;
    const auto a = admit(b, rule, now, now + Duration{700}, may_probe);
    if (a.pass == Pass::no) {
      RC_ASSERT(!a.until || *a.until > now);
      RC_ASSERT(a.until || b.forced_open);
      RC_ASSERT(a.changed || b.generation == before.generation);
      return;
    }
    RC_ASSERT(a.generation == b.generation);
    RC_ASSERT(!b.forced_open);
    if (a.pass == Pass::probe) {
      RC_ASSERT(may_probe);
      RC_ASSERT(busy == 0u);
      RC_ASSERT(b.generation > before.generation);
    } else {
      RC_ASSERT(b.state == BreakerState::closed);
    }
    calls.push_back({a.generation, a.pass == Pass::probe, now + Duration{700}});
  }

  void tell(std::size_t which, Outcome outcome) {
    const auto call = calls[which];
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(which));
    const auto before = b;
    const bool changed = settle(b, rule, call.generation, outcome, "x", now, *random);
    if (call.generation != before.generation) {
      RC_ASSERT(!changed);
      RC_ASSERT(b.generation == before.generation);
      RC_ASSERT(b.consecutive == before.consecutive);
      return;
    }
    if (b.generation != before.generation) RC_ASSERT(changed);
    if (call.probe) {
      RC_ASSERT(b.state != BreakerState::half_open);
      RC_ASSERT((b.state == BreakerState::closed) ==
                (outcome == Outcome::success || outcome == Outcome::alive));
      RC_ASSERT(outcome != Outcome::alive || b.consecutive + 1 == rule.consecutive_failures);
    } else if (before.state == BreakerState::closed && b.state == BreakerState::closed) {
      RC_ASSERT(b.consecutive == (outcome == Outcome::failure   ? before.consecutive + 1
                                  : outcome == Outcome::success ? 0
                                                                : before.consecutive));
    }
    if (b.state == BreakerState::open && outcome == Outcome::failure) {
      const auto wait = *b.until - now;
      RC_ASSERT(wait >= rule.cooldown && wait <= rule.max_cooldown);
    }
  }

  /// The process ends: nothing that was out can come back, and a probe's slot is free again.
  void restart() {
    calls.clear();
    if (b.state == BreakerState::half_open) b.probe_until.reset();
  }

  /// From wherever it stands, a caller that may probe passes as soon as the breaker said it may ask again, and
  /// that is within one cool-down and a probe's lease.
  void never_wedged() const {
    auto copy = b;
    if (copy.forced_open && !copy.until) return;
    const auto latest = now + rule.max_cooldown + Duration{700};
    auto at = now;
    for (int asked = 0; asked < 3; ++asked) {
      const auto a = admit(copy, rule, at, at + Duration{700}, true);
      if (a.pass != Pass::no) return;
      RC_ASSERT(a.until.has_value());
      RC_ASSERT(*a.until <= latest);
      at = *a.until;
    }
    RC_FAIL("wedged");
  }
};

}  // namespace

TEST_CASE("one probe at a time, never wedged, nothing counted twice, whatever happens in whatever order") {
  REQUIRE(rc::check([] {
    History h;
    const auto steps = *rc::gen::inRange(1, 200);
    for (int i = 0; i < steps; ++i) {
      const auto what = *rc::gen::inRange(0, 100);
      const auto generation = h.b.generation;
      if (what < 35) {
        h.ask(what % 4 != 0);
      } else if (what < 75 && !h.calls.empty()) {
        const auto which = *rc::gen::inRange<std::size_t>(0, h.calls.size());
        h.tell(which, *rc::gen::weightedElement<Outcome>(
                          {{6, Outcome::failure}, {3, Outcome::success}, {1, Outcome::neutral}, {1, Outcome::alive}}));
      } else if (what < 92) {
        h.now = h.now + Duration{*rc::gen::inRange(0, 1'500)};
      } else if (what < 94) {
        h.restart();
      } else if (what < 96) {
        force_open(h.b, "ops", "why", std::nullopt, h.now);
      } else if (what < 98) {
        force_open(h.b, "ops", "why", h.now + Duration{500}, h.now);
      } else {
        force_close(h.b, "ops", "why", h.now);
      }
      RC_ASSERT(h.b.generation >= generation);
      RC_ASSERT(h.live_probes() <= 1u);
      RC_ASSERT(h.b.state == BreakerState::half_open || !h.b.probe_until);
      RC_ASSERT(!h.b.forced_open || h.b.state == BreakerState::open);
      RC_ASSERT(h.b.window_failures <= h.b.window_calls);
      h.never_wedged();
    }
  }));
}
