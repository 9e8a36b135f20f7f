#pragma once
// How long calls of one tool took, as counts in buckets that grow with the value. Integers only, so that the
// same samples give the same figures on every machine.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.h"

namespace holdfast {

/// A percentile. `at_least`: it lies among calls that had not answered when we gave up, so that only a lower
/// bound is known.
struct Percentile {
  Duration value{0};
  bool at_least = false;
};

/// Buckets of 1 ms below 64 ms, then 32 to each doubling: a value is told apart from its bucket's middle by
/// less than 1.6 %. 736 buckets at most; what took longer than kMost counts as kMost. A sample is an answer,
/// or a call that we gave up on (right-censored: it would have taken longer than that).
class LatencySketch {
 public:
  static constexpr std::int64_t kMost = (std::int64_t{1} << 27) - 1;  // milliseconds, about 37 hours

  /// Negative spans count as zero.
  void add(Duration span, bool gave_up);
  /// As if every sample of `other` had been added here.
  void merge(const LatencySketch& other);

  [[nodiscard]] std::uint64_t samples() const { return answered_ + gave_up_; }
  [[nodiscard]] std::uint64_t gave_up() const { return gave_up_; }
  /// The smallest span within which the share `percent` (0 to 100] of the calls answers, by the product-limit
  /// estimate (Kaplan and Meier): a call given up after x counts as still running until x and says nothing
  /// about later. Without any such call it is the nearest-rank percentile. Zero without samples.
  [[nodiscard]] Percentile percentile(double percent) const;

  /// `5:3 70:1:2`: bucket, answers, and calls given up where there are any; ascending.
  [[nodiscard]] std::string text() const;
  /// nullopt for anything that text() does not write.
  [[nodiscard]] static std::optional<LatencySketch> parse(std::string_view text);

  friend bool operator==(const LatencySketch&, const LatencySketch&) = default;

 private:
  struct Cell {
    std::uint32_t bucket = 0;
    std::uint32_t answered = 0, gave_up = 0;
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  void count(std::uint32_t bucket, std::uint32_t answered, std::uint32_t gave_up);

  std::vector<Cell> cells_;  // ascending, none empty
  std::uint64_t answered_ = 0, gave_up_ = 0;
};

}  // namespace holdfast
