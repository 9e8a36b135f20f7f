#include "holdfast/policy/latency_sketch.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

namespace holdfast {
namespace {

constexpr std::uint32_t kPerDoubling = 32;
constexpr std::uint32_t kExact = 2 * kPerDoubling;  // below this a bucket is one millisecond

/// How far the values of a bucket are shifted right to give its place in the doubling.
constexpr std::uint32_t shift_of(std::uint32_t bucket) {
  return bucket < kExact ? 0 : bucket / kPerDoubling - 1;
}

constexpr std::uint32_t bucket_of(std::int64_t ms) {
  const auto value = static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 0, LatencySketch::kMost));
  if (value < kExact) return value;
  const auto shift = static_cast<std::uint32_t>(std::bit_width(value) - std::bit_width(kExact - 1));
  return kPerDoubling * shift + (value >> shift);
}

constexpr std::uint32_t kBuckets = bucket_of(LatencySketch::kMost) + 1;
static_assert(kBuckets == 736);

constexpr Duration middle_of(std::uint32_t bucket) {
  const std::uint32_t shift = shift_of(bucket);
  const std::int64_t low = std::int64_t{bucket - kPerDoubling * shift} << shift;
  return Duration{low + ((std::int64_t{1} << shift) - 1) / 2};
}
static_assert(bucket_of(63) == 63 && bucket_of(64) == 64 && bucket_of(127) == 95 && bucket_of(128) == 96);
static_assert(middle_of(63).count() == 63 && middle_of(bucket_of(1'000)).count() == 999);

void add_up(std::uint32_t& sum, std::uint32_t more) {
  sum = more > std::numeric_limits<std::uint32_t>::max() - sum ? std::numeric_limits<std::uint32_t>::max()
                                                               : sum + more;
}

/// Takes a number of plain digits, and what must follow it is left in `text`.
bool take_number(std::string_view& text, std::uint32_t& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{} || (text.size() > 1 && text[0] == '0' && end != text.data() + 1)) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

void LatencySketch::count(std::uint32_t bucket, std::uint32_t answered, std::uint32_t gave_up) {
  auto at = std::ranges::lower_bound(cells_, bucket, {}, &Cell::bucket);
  if (at == cells_.end() || at->bucket != bucket) at = cells_.insert(at, Cell{bucket, 0, 0});
  const Cell before = *at;
  add_up(at->answered, answered);
  add_up(at->gave_up, gave_up);
  answered_ += at->answered - before.answered;
  gave_up_ += at->gave_up - before.gave_up;
}

void LatencySketch::add(Duration span, bool gave_up) {
  count(bucket_of(span.count()), gave_up ? 0 : 1, gave_up ? 1 : 0);
}

void LatencySketch::merge(const LatencySketch& other) {
  for (const Cell& cell : other.cells_) count(cell.bucket, cell.answered, cell.gave_up);
}

Percentile LatencySketch::percentile(double percent) const {
  if (cells_.empty()) return {};
  constexpr double kRounding = 1e-9;  // so that the last rank that should count does
  const double share = percent / 100 - kRounding;
  double at_risk = static_cast<double>(samples());
  double running = 1;  // the share of calls that would still be running
  for (const Cell& cell : cells_) {
    if (cell.answered != 0) running *= 1 - cell.answered / at_risk;
    if (cell.answered != 0 && 1 - running >= share) return {middle_of(cell.bucket), false};
    at_risk -= static_cast<double>(cell.answered) + static_cast<double>(cell.gave_up);
  }
  return {middle_of(cells_.back().bucket), true};
}

std::string LatencySketch::text() const {
  std::string out;
  for (const Cell& cell : cells_) {
    if (!out.empty()) out += ' ';
    out += std::to_string(cell.bucket) + ':' + std::to_string(cell.answered);
    if (cell.gave_up != 0) out += ':' + std::to_string(cell.gave_up);
  }
  return out;
}

std::optional<LatencySketch> LatencySketch::parse(std::string_view text) {
  LatencySketch out;
  while (!text.empty()) {
    if (!out.cells_.empty() && !take_char(text, ' ')) return std::nullopt;
    Cell cell;
    if (!take_number(text, cell.bucket) || !take_char(text, ':') || !take_number(text, cell.answered))
      return std::nullopt;
    if (take_char(text, ':') && (!take_number(text, cell.gave_up) || cell.gave_up == 0)) return std::nullopt;
    const bool ascending = out.cells_.empty() || out.cells_.back().bucket < cell.bucket;
    if (!ascending || cell.bucket >= kBuckets || cell.answered + std::uint64_t{cell.gave_up} == 0)
      return std::nullopt;
    out.answered_ += cell.answered;
    out.gave_up_ += cell.gave_up;
    out.cells_.push_back(cell);
  }
  return out;
}

}  // namespace holdfast
