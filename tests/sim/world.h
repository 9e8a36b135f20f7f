#pragma once
// Time, chance and bookkeeping of one simulated history.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"
#include "sim/tally.h"

namespace holdfast::sim {

/// An oracle was contradicted.
struct Violation {
  std::string oracle;
  std::string what;
};

/// What `what` says is put together only when it has to be said.
#define HOLDFAST_REQUIRE(holds, oracle, what)                \
  do {                                                       \
    if (!(holds)) throw ::holdfast::sim::Violation{oracle, what}; \
  } while (false)

/// Thrown through the engine: its process is gone at this very place.
struct Crash {};

/// A stream of its own for each purpose, so that drawing more for one changes nothing for the others.
class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325 ^ (seed * 0x9E3779B97F4A7C15);
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    random_ = seeded_random(hash);
  }
  [[nodiscard]] std::uint64_t next() { return random_->next(); }
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + random_->up_to(most - least);
  }
  [[nodiscard]] std::size_t index(std::size_t size) {
    return static_cast<std::size_t>(random_->up_to(static_cast<std::int64_t>(size) - 1));
  }
  [[nodiscard]] bool chance(int in_a_thousand) { return random_->up_to(999) < in_a_thousand; }
  [[nodiscard]] Duration span(std::int64_t least, std::int64_t most) { return Duration{between(least, most)}; }
  template <class T, std::size_t N>
  [[nodiscard]] const T& pick(const std::array<T, N>& from) {
    return from[index(N)];
  }
  [[nodiscard]] Random& random() { return *random_; }

 private:
  std::unique_ptr<Random> random_;
};

/// True time, and what is going to happen. Events of the same instant keep their order.
class World {
 public:
  using Happening = std::move_only_function<void()>;

  World(Tally& counts, bool tracing) : tally(counts), tracing_(tracing) {}

  [[nodiscard]] Instant now() const { return now_; }
  void at(Instant when, Happening what) {
    queue_.push_back({std::max(when, now_), ++order_, std::move(what)});
    std::push_heap(queue_.begin(), queue_.end(), later);
  }
  void after(Duration wait, Happening what) { at(now_ + wait, std::move(what)); }
  [[nodiscard]] std::optional<Instant> next() const {
    return queue_.empty() ? std::nullopt : std::optional<Instant>(queue_.front().when);
  }
  void advance(Instant to) { now_ = std::max(now_, to); }
  /// Lets the next event happen.
  void step() {
    std::pop_heap(queue_.begin(), queue_.end(), later);
    Entry entry = std::move(queue_.back());
    queue_.pop_back();
    advance(entry.when);
    entry.what();
  }

  // --- what happened, as a hash, and as text when somebody reads along ---
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3 + (hash_ >> 29); }
  template <class Text>
  void note(std::uint64_t value, Text&& text) {
    mix(value);
    mix(static_cast<std::uint64_t>(now_.ms));
    if (tracing_) print(text());
  }
  [[nodiscard]] bool tracing() const { return tracing_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

  Tally& tally;

 private:
  struct Entry {
    Instant when;
    std::uint64_t order;
    Happening what;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  void print(const std::string& text) const;

  Instant now_{1'900'000'000'000};
  std::vector<Entry> queue_;
  std::uint64_t order_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  const bool tracing_;
};

/// The clock of one life of the process: wall time read at the start, carried on by a clock that drifts.
class LifeClock final : public Clock {
 public:
  LifeClock(const World& world, Instant wall, int drift_ppm)
      : world_(world), wall_(wall), boot_(world.now()), ppm_(drift_ppm) {}
  [[nodiscard]] Instant now() const override {
    const std::int64_t passed = (world_.now() - boot_).count();
    return wall_ + Duration{passed + passed * ppm_ / 1'000'000};
  }
  /// The first true instant at which now() says `at`, or later.
  [[nodiscard]] Instant true_time(Instant at) const {
    const std::int64_t passed = (at - wall_).count();
    if (passed <= 0) return boot_;
    if (passed > 40LL * 365 * 86'400'000) return boot_ + Duration{passed};
    return boot_ + Duration{passed * 1'000'000 / (1'000'000 + ppm_) + 1};
  }

 private:
  const World& world_;
  const Instant wall_, boot_;
  const int ppm_;
};

}  // namespace holdfast::sim
