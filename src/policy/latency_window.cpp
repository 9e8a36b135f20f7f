#include "holdfast/policy/latency_window.h"

namespace holdfast {
namespace {

std::int64_t day_of(Instant at) {
  return std::max<std::int64_t>(at.ms, 0) / LatencyWindow::kSlice.count();
}

std::uint32_t slot_of(std::int64_t day) {
  return static_cast<std::uint32_t>(day % LatencyWindow::kSlices);
}

}  // namespace

Sample sample_of(AttemptKind kind, bool clipped, const Evidence& evidence, const Judgement& judgement) {
  if (kind == AttemptKind::probe) return Sample::none;
  if (evidence.failure == Failure::timeout)
    return clipped || evidence.phase < Phase::tx_part ? Sample::none : Sample::gave_up;
  const bool worked = judgement.klass == AttemptClass::ok || judgement.klass == AttemptClass::tool_error;
  return worked && evidence.answer != Answer::none ? Sample::answered : Sample::none;
}

std::uint32_t LatencyWindow::add(Duration span, bool gave_up, Instant now) {
  const std::int64_t day = day_of(now);
  const Instant start{day * kSlice.count()};
  if (slices_[newest_].start > now + kSlice) age(now);
  if (start > slices_[newest_].start) {
    newest_ = slot_of(day);
    slices_[newest_] = {start, {}};
    age(now);
  }
  slices_[newest_].sketch.add(span, gave_up);
  all_.add(span, gave_up);
  return newest_;
}

void LatencyWindow::age(Instant now) {
  bool dropped = false;
  for (Slice& slice : slices_) {
    const bool inside = slice.start + kSlices * kSlice > now && slice.start <= now + kSlice;
    if (inside || slice.start == Instant{}) continue;
    slice = {};
    dropped = true;
  }
  sum_up();
  if (!dropped) return;
  for (std::uint32_t i = 0; i < kSlices; ++i)
    if (slices_[i].start > slices_[newest_].start) newest_ = i;
}

void LatencyWindow::sum_up() {
  all_ = {};
  for (const Slice& slice : slices_) all_.merge(slice.sketch);
}

LatencySlice LatencyWindow::stored(std::uint32_t slot) const {
  return {slot, slices_[slot].start, slices_[slot].sketch.text()};
}

bool LatencyWindow::restore(const LatencySlice& slice) {
  auto sketch = LatencySketch::parse(slice.samples);
  const bool in_place = slice.start.ms > 0 && slice.start.ms % kSlice.count() == 0 &&
                        slot_of(day_of(slice.start)) == slice.slot;
  if (!sketch || !in_place) return false;
  slices_[slice.slot] = {slice.start, std::move(*sketch)};
  if (slice.start > slices_[newest_].start) newest_ = slice.slot;
  sum_up();
  return true;
}

}  // namespace holdfast
