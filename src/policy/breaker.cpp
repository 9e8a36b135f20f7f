#include "holdfast/policy/breaker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/canary.h"

namespace holdfast {
namespace {

using namespace std::string_view_literals;

constexpr std::array kStateWords{"closed"sv, "open"sv, "half_open"sv};
static_assert(kStateWords.size() == std::to_underlying(BreakerState::half_open) + 1);

constexpr Duration kAskAgain{1'000};  // a caller that may not probe, while nobody who may has come
constexpr std::int64_t kJitterParts = 10;

void enter(Breaker& b, BreakerState state, Instant now) {
  b.state = state;
  b.since = now;
  b.until.reset();
  b.probe_until.reset();
  ++b.generation;
}

void clear_counters(Breaker& b, Instant now) {
  b.consecutive = b.window_calls = b.window_failures = 0;
  b.window_start = now;
}

void become_closed(Breaker& b, Instant now) {
  enter(b, BreakerState::closed, now);
  clear_counters(b, now);
  b.cooldown = Duration{0};
}

void become_closed_on_probation(Breaker& b, const BreakerRule& rule, Instant now) {
  const Duration cooldown = b.cooldown;
  become_closed(b, now);
  b.cooldown = cooldown;
  if (rule.consecutive_failures > 0) b.consecutive = rule.consecutive_failures - 1;
}

void become_open(Breaker& b, const BreakerRule& rule, Instant now, Random& random) {
  const auto longest = std::max(rule.max_cooldown, rule.cooldown);
  const auto room = [&](Duration d) { return std::min(d, longest); };
  const auto last = std::min(b.cooldown, longest);  // doubled below: must not wrap
  b.cooldown = room(std::max(rule.cooldown, last * 2));
  const Duration jitter{random.up_to(b.cooldown.count() / kJitterParts)};
  enter(b, BreakerState::open, now);
  b.until = now + room(b.cooldown + jitter);
  b.by.clear();
  b.why.clear();
}

Admission refuse(const Breaker& b, std::optional<Instant> until, bool changed) {
  return {.pass = Pass::no, .generation = b.generation, .until = until, .changed = changed};
}

Admission take_probe(Breaker& b, Instant now, Instant lease_until) {
  enter(b, BreakerState::half_open, now);
  b.probe_until = lease_until;
  return {.pass = Pass::probe, .generation = b.generation, .until = lease_until, .changed = true};
}

void roll_window(Breaker& b, const BreakerRule& rule, Instant now) {
  const auto age = now - b.window_start;
  if (age.count() >= 0 && age < rule.window) return;
  b.window_calls = b.window_failures = 0;
  b.window_start = now;
}

bool must_trip(const Breaker& b, const BreakerRule& rule) {
  if (rule.consecutive_failures > 0 && b.consecutive >= rule.consecutive_failures) return true;
  if (b.window_calls == 0 || b.window_calls < rule.min_calls) return false;
  return static_cast<double>(b.window_failures) >= rule.failure_rate * static_cast<double>(b.window_calls);
}

bool settle_closed(Breaker& b, const BreakerRule& rule, Outcome outcome, std::string_view cause, Instant now,
                   Random& random) {
  if (outcome == Outcome::neutral || outcome == Outcome::alive) return false;
  roll_window(b, rule, now);
  ++b.window_calls;
  if (outcome == Outcome::success) {
    const bool probation = std::exchange(b.cooldown, Duration{0}).count() != 0;
    return std::exchange(b.consecutive, 0u) != 0 || probation;
  }
  ++b.consecutive;
  ++b.window_failures;
  b.last_cause = cause;
  if (must_trip(b, rule)) become_open(b, rule, now, random);
  return true;
}

bool settle_probe(Breaker& b, const BreakerRule& rule, Outcome outcome, std::string_view cause, Instant now,
                  Random& random) {
  switch (outcome) {
    case Outcome::success:
      become_closed(b, now);
      break;
    case Outcome::failure:
      b.last_cause = cause;
      become_open(b, rule, now, random);
      break;
    case Outcome::alive:
      become_closed_on_probation(b, rule, now);
      break;
    case Outcome::neutral:
      enter(b, BreakerState::open, now);
      b.until = now;
      break;
  }
  return true;
}

}  // namespace

std::string_view word(BreakerState state) {
  const auto index = static_cast<std::size_t>(std::to_underlying(state));
  return index < kStateWords.size() ? kStateWords[index] : std::string_view{};
}

std::optional<BreakerState> breaker_state_from_word(std::string_view text) {
  const auto* at = std::ranges::find(kStateWords, text);
  if (at == kStateWords.end()) return std::nullopt;
  return static_cast<BreakerState>(at - kStateWords.begin());
}

Admission admit(Breaker& b, const BreakerRule& rule, Instant now, Instant lease_until, bool may_probe) {
  bool changed = false;
  if (b.forced_open) {
    if (!b.until || now < *b.until) return refuse(b, b.until, false);
    force_close(b, {}, {}, now);
    changed = true;
  }
  const bool crowd = (canary(Canary::second_probe) && b.state == BreakerState::half_open) ||
                     (canary(Canary::open_circuit_passes) && b.state == BreakerState::open);
  if (!rule.enabled || b.state == BreakerState::closed || crowd) {
    return {.pass = Pass::yes, .generation = b.generation, .changed = changed};
  }
  const auto& busy_until = b.state == BreakerState::open ? b.until : b.probe_until;
  if (busy_until && now < *busy_until) return refuse(b, busy_until, changed);
  if (!may_probe) return refuse(b, now + kAskAgain, changed);
  return take_probe(b, now, lease_until);
}

bool settle(Breaker& b, const BreakerRule& rule, std::uint64_t generation, Outcome outcome,
            std::string_view cause, Instant now, Random& random) {
  if (!rule.enabled || generation != b.generation || b.forced_open) return false;
  switch (b.state) {
    case BreakerState::closed:
      return settle_closed(b, rule, outcome, cause, now, random);
    case BreakerState::half_open:
      return settle_probe(b, rule, outcome, cause, now, random);
    case BreakerState::open:
      break;  // nobody was admitted under an open breaker's generation
  }
  return false;
}

void force_open(Breaker& b, std::string_view by, std::string_view why, std::optional<Instant> until,
                Instant now) {
  enter(b, BreakerState::open, now);
  b.forced_open = true;
  b.until = until;
  b.by = by;
  b.why = why;
}

void force_close(Breaker& b, std::string_view by, std::string_view why, Instant now) {
  become_closed(b, now);
  b.forced_open = false;
  b.by = by;
  b.why = why;
  b.last_cause.clear();
}

}  // namespace holdfast
