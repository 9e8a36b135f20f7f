#pragma once
#include <cstdint>
#include <memory>

namespace holdfast {

/// Where randomness comes from. Not thread-safe: each owner has its own.
class Random {
 public:
  virtual ~Random() = default;
  /// 64 uniformly distributed bits.
  [[nodiscard]] virtual std::uint64_t next() = 0;
  /// Uniform in [0, bound]; bound >= 0.
  [[nodiscard]] std::int64_t up_to(std::int64_t bound) {
    if (bound <= 0) return 0;
    return static_cast<std::int64_t>(next() % (static_cast<std::uint64_t>(bound) + 1));
  }
};

/// A generator seeded from the operating system.
[[nodiscard]] std::unique_ptr<Random> system_random();
/// A repeatable generator (splitmix64) for tests and simulation.
[[nodiscard]] std::unique_ptr<Random> seeded_random(std::uint64_t seed);

}  // namespace holdfast
