#pragma once
// A rate gate as a value: what all runs share in front of a server that asks for less. Pure: no clock, no I/O.
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast {

/// The gate of one server: nobody sends before `until`.
struct RateGate {
  std::string server;
  std::optional<Instant> until;
  std::uint32_t hits = 0;  // successive limits without a usable time, for the growth of the own backoff
  /// Rises with every limit that counted; an answer to a call from before it says nothing new. Not stored: no
  /// call outlives the process.
  std::uint64_t generation = 1;
};

[[nodiscard]] bool is_shut(const RateGate& gate, Instant now);

/// The answer to a call that left under `generation` asked for less. `asked`: for how long; the gate stays
/// shut at least that long. Without one it is shut for an own backoff between half of and all of
/// min(cap, base * 2^hits), drawn once; answers to calls that left before the last limit are the same limit
/// told again and shut nothing anew. A gate is never shut for less than it was. Returns true when it changed.
[[nodiscard]] bool limit(RateGate& gate, const Backoff& backoff, std::uint64_t generation,
                         std::optional<Duration> asked, Instant now, Random& random);

/// A call that left under `generation` was answered without a limit: the growth starts over. Returns true
/// when the gate changed.
[[nodiscard]] bool answered(RateGate& gate, std::uint64_t generation);

/// An operator's word: open, as if there had been no limit.
void clear(RateGate& gate);

}  // namespace holdfast
