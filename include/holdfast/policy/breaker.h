#pragma once
// A circuit breaker as a value: pure transitions over a stored row, no clock, no I/O.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast {

enum class BreakerState { closed, open, half_open };
[[nodiscard]] std::string_view word(BreakerState);
[[nodiscard]] std::optional<BreakerState> breaker_state_from_word(std::string_view);

/// One breaker: of a server (`tool` empty) or of a tool. Stored as it is.
struct Breaker {
  std::string server;
  std::string tool;
  BreakerState state = BreakerState::closed;
  bool forced_open = false;      // by an operator
  std::string by, why;           // of an operator's last word; gone when the breaker trips by itself
  std::uint64_t generation = 1;  // rises with every transition; results of older generations change nothing
  Instant since{};               // of the present state
  std::optional<Instant> until;  // open: when a probe may leave; forced: when it ends by itself, if ever
  std::optional<Instant> probe_until;  // half-open: the lease of the one probe in flight
  std::uint32_t consecutive = 0;       // failures in a row while closed
  std::uint32_t window_calls = 0, window_failures = 0;
  Instant window_start{};
  Duration cooldown{0};  // the last one, for growth
  std::string last_cause;
};

enum class Pass { yes, probe, no };  // probe: the caller holds the one slot, `until` is its lease
struct Admission {
  Pass pass = Pass::yes;
  std::uint64_t generation = 0;  // to be handed back with the result
  std::optional<Instant> until;  // no: when to ask again (empty: until someone closes it)
  bool changed = false;          // the breaker must be stored
};

/// May a call leave now? Turns an open breaker whose time is over into half-open and takes the probe's slot,
/// leased until `lease_until`; a stale lease is taken over with a new generation. A caller that may not probe
/// and finds the slot free is told to ask again a second later. A forced state whose time is over becomes
/// closed and cleared.
[[nodiscard]] Admission admit(Breaker& breaker, const BreakerRule& rule, Instant now, Instant lease_until,
                              bool may_probe);

/// alive: the server answers, but another call than the tool's own has shown it.
enum class Outcome { success, failure, neutral, alive };
/// The result of a call admitted under `generation`. Returns true when the breaker changed and must be
/// stored; a success that only adds to the window's count need not be. Trips on `consecutive_failures` in a
/// row, or on `failure_rate` of at least `min_calls` in the window. A failed probe opens it again for twice
/// the last cool-down, at most `max_cooldown`, with up to 10 % on top where the maximum leaves room, so that
/// breakers don't beat in time. A neutral outcome of the probe gives its slot back without a verdict: the
/// next probe may leave at once. `alive` closes it on probation: the next failure opens it again, for twice
/// the last cool-down; the next success ends the probation. While closed `alive` says nothing.
[[nodiscard]] bool settle(Breaker& breaker, const BreakerRule& rule, std::uint64_t generation,
                          Outcome outcome, std::string_view cause, Instant now, Random& random);

/// An operator's word: open until force_close() or until `until`; nobody passes, not even a probe.
void force_open(Breaker& breaker, std::string_view by, std::string_view why, std::optional<Instant> until,
                Instant now);
/// Back to automatic: closed, counters cleared.
void force_close(Breaker& breaker, std::string_view by, std::string_view why, Instant now);

}  // namespace holdfast
