#include "ledger/sqlite/record.h"

#include <array>

namespace holdfast::ledger::sqlite {
namespace {

constexpr char kFormat = 1;

// Texts that nearly every record holds, numbered by their place: never changed within a format.
constexpr auto kKnown = std::to_array<std::string_view>({
    "",          "{}",        "[]",          "plan",     "open",        "queued",          "running",       "waiting",      "unknown",
    "succeeded", "failed",    "cancelled",   "pending",  "skipped",     "intended",        "dispatched",    "landed",       "not_landed",
    "none",      "backoff",   "retry_after", "circuit",  "rate_gate",   "slot",            "storage",       "human",        "client",
    "stop",      "continue",  "wait",        "fail",     "abandon",     "evidence",        "read",          "write",        "call",
    "check",     "in_flight", "answered",    "not_sent", "maybe_sent",  "ok",              "local",         "tx_all",       "rx_all",
    "parsed",    "C4",        "run.submitted", "run.waiting", "run.unknown", "run.cancel_requested", "run.settled", "step.dispatched",
    "step.waiting", "step.settled", "write.unknown", "write.settled", "attempt.late_answer",
});

const std::unordered_map<std::string_view, std::uint64_t>& known_texts() {
  static const auto known = [] {
    std::unordered_map<std::string_view, std::uint64_t> map;
    for (std::size_t i = 0; i < kKnown.size(); ++i) map.emplace(kKnown[i], i + 1);
    return map;
  }();
  return known;
}

}  // namespace

RecordWriter::RecordWriter() : bytes_(1, kFormat) {}

void RecordWriter::number(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void RecordWriter::whole(std::int64_t value) {
  number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

/// A number of a text that was there before, or 0, its length and its bytes.
void RecordWriter::text(std::string_view text) {
  if (const auto known = known_texts().find(text); known != known_texts().end()) return number(known->second);
  const auto [place, fresh] = texts_.try_emplace(text, kKnown.size() + texts_.size() + 1);
  if (!fresh) return number(place->second);
  number(0);
  number(text.size());
  bytes_ += text;
}

RecordReader::RecordReader(std::string_view bytes) : bytes_(bytes) {
  if (bytes.empty() || bytes[at_++] != kFormat) fail();
}

void RecordReader::fail() {
  throw SQLite::Exception("a record that this version can't read", SQLITE_CORRUPT);
}

std::uint64_t RecordReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == bytes_.size()) fail();
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

std::int64_t RecordReader::whole() {
  const std::uint64_t value = number();
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::string_view RecordReader::text() {
  const std::uint64_t place = number();
  std::string_view text;
  if (place == 0) {
    const std::uint64_t size = number();
    if (size > bytes_.size() - at_) fail();
    text = texts_.emplace_back(bytes_.substr(at_, size));
    at_ += size;
  } else if (place <= kKnown.size()) {
    text = kKnown[place - 1];
  } else if (place - kKnown.size() <= texts_.size()) {
    text = texts_[place - kKnown.size() - 1];
  } else {
    fail();
  }
  text_bytes_ += text.size();
  return text;
}

}  // namespace holdfast::ledger::sqlite
