#include "holdfast/policy/rate_gate.h"

#include <algorithm>
#include <limits>

namespace holdfast {
namespace {

Duration own_wait(const Backoff& backoff, std::uint32_t hits, Random& random) {
  const auto cap = std::max<std::int64_t>(backoff.cap.count(), 1);
  auto most = std::clamp<std::int64_t>(backoff.base.count(), 1, cap);
  for (std::uint32_t i = 0; i < hits && most < cap; ++i) most = most > cap / 2 ? cap : most * 2;
  const auto least = most - most / 2;
  return Duration{least + random.up_to(most - least)};
}

}  // namespace

bool is_shut(const RateGate& gate, Instant now) {
  return gate.until && *gate.until > now;
}

bool limit(RateGate& gate, const Backoff& backoff, std::uint64_t generation, std::optional<Duration> asked,
           Instant now, Random& random) {
  const bool news = generation == gate.generation;
  if (!news && !asked) return false;
  const Instant until = now + (asked ? *asked : own_wait(backoff, gate.hits, random));
  const bool longer = !gate.until || *gate.until < until;
  if (longer) gate.until = until;
  if (news) ++gate.generation;
  const bool counts = !asked && gate.hits < std::numeric_limits<std::uint32_t>::max();
  if (counts) ++gate.hits;
  return longer || counts;
}

bool answered(RateGate& gate, std::uint64_t generation) {
  if (gate.hits == 0 || generation != gate.generation) return false;
  gate.hits = 0;
  return true;
}

void clear(RateGate& gate) {
  gate.until.reset();
  gate.hits = 0;
  ++gate.generation;
}

}  // namespace holdfast
