#pragma once
// The samples of the last days: eight slices of a day each, the oldest of which makes room for a new one.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/policy/classify.h"
#include "holdfast/policy/evidence.h"
#include "holdfast/policy/latency_sketch.h"

namespace holdfast {

/// Which calls say something about how long a tool takes.
enum class Sample { none, answered, gave_up };
/// `answered`: calls, checks and fallbacks that the tool did or failed at by its own word. `gave_up`: our own
/// deadline, not the run's (`clipped`), ended one that had left. `none`: everything else: what never left,
/// refusals and server errors (often quick, and no work), what was cut, cancelled or ended by a crash, and
/// probes.
[[nodiscard]] Sample sample_of(AttemptKind kind, bool clipped, const Evidence& evidence,
                               const Judgement& judgement);

/// A slice as it is stored: one row.
struct LatencySlice {
  std::uint32_t slot = 0;  // its place among the eight; a new slice replaces the one eight days older
  Instant start{};
  std::string samples;  // LatencySketch::text()
};

class LatencyWindow {
 public:
  static constexpr std::uint32_t kSlices = 8;
  static constexpr Duration kSlice{24 * 3600 * 1000};

  /// `now` chooses the slice. A clock that was set back adds to the newest one. Returns the slot it went into.
  std::uint32_t add(Duration span, bool gave_up, Instant now);
  /// Lets go of slices that began eight days ago or earlier (or lie ahead: the clock was wrong then).
  void age(Instant now);

  /// Everything in the window.
  [[nodiscard]] const LatencySketch& all() const { return all_; }
  /// The newest slice only: up to a day, the first to know that the tool has become slower.
  [[nodiscard]] const LatencySketch& newest() const { return slices_[newest_].sketch; }

  [[nodiscard]] std::uint32_t newest_slot() const { return newest_; }

  /// A slice as a row. One that never began starts at zero: there is nothing to store.
  [[nodiscard]] LatencySlice stored(std::uint32_t slot) const;
  /// Puts a stored slice back; false when it can't be read, and then it is left out.
  bool restore(const LatencySlice& slice);

 private:
  struct Slice {
    Instant start{};
    LatencySketch sketch;
  };
  void sum_up();

  std::array<Slice, kSlices> slices_;
  std::uint32_t newest_ = 0;
  LatencySketch all_;
};

}  // namespace holdfast
