#include "ledger/sqlite/record.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace holdfast::ledger::sqlite {
namespace {

constexpr char kFormat = 1;

// Numbered by their place: never changed within a format.
constexpr auto kKnown = std::to_array<std::string_view>({
    "",          "{}",        "[]",          "plan",     "open",        "queued",          "running",       "waiting",      "unknown",
    "succeeded", "failed",    "cancelled",   "pending",  "skipped",     "intended",        "dispatched",    "landed",       "not_landed",
    "none",      "backoff",   "retry_after", "circuit",  "rate_gate",   "slot",            "storage",       "human",        "client",
    "stop",      "continue",  "wait",        "fail",     "abandon",     "evidence",        "read",          "write",        "call",
    "check",     "in_flight", "answered",    "not_sent", "maybe_sent",  "ok",              "local",         "tx_all",       "rx_all",
    "parsed",    "C4",        "run.submitted", "run.waiting", "run.unknown", "run.cancel_requested", "run.settled", "step.dispatched",
    "step.waiting", "step.settled", "write.unknown", "write.settled", "attempt.late_answer",
});

static_assert(kKnown.size() == kKnownTexts);

constexpr std::size_t kMostLooks = 16;

// Where to look for a known text: its length, first and last byte and one in the middle tell all of them apart (checked below), so that most other
// texts are known to be none at the first look.
constexpr std::size_t kPlaces = 256;
constexpr std::size_t place_of(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  if (text.empty()) return 0;
  return (text.size() * 136 + at(0) * 129 + at(text.size() - 1) * 251 + at(text.size() / 2) * 97) % kPlaces;
}

constexpr auto kNumbers = [] {
  std::array<std::uint8_t, kPlaces> numbers{};
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    std::uint8_t& place = numbers[place_of(kKnown[i])];
    if (place != 0) throw "two known texts in one place: choose other factors";
    place = static_cast<std::uint8_t>(i + 1);
  }
  return numbers;
}();

/// 0: none of the known ones.
std::uint64_t known_number(std::string_view text) {
  const std::uint64_t number = kNumbers[place_of(text)];
  return number != 0 && kKnown[number - 1] == text ? number : 0;
}

/// Of three pieces at most: long texts that differ mostly do so there.
std::uint64_t hash(std::string_view text) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::uint64_t sum = text.size() * kFactor;
  const auto mix = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t piece = 0;
    std::memcpy(&piece, text.data() + at, bytes);
    sum ^= piece;
    sum = (sum ^ sum >> 32) * kFactor;
    sum ^= sum >> 29;
  };
  if (text.size() <= 8) {
    if (!text.empty()) mix(0, text.size());
    return sum;
  }
  mix(0, 8);
  if (text.size() > 16) mix(text.size() / 2 - 4, 8);
  mix(text.size() - 8, 8);
  return sum;
}

}  // namespace

std::string_view known_text(std::size_t number) {
  return kKnown[number - 1];
}

std::uint64_t TextNumbers::find_or_add(std::string_view text) {
  if (2 * texts_.size() >= slots_.size()) grow();
  std::uint32_t* free = nullptr;
  for (std::size_t looks = 0, at = hash(text); looks < kMostLooks && free == nullptr; ++looks, ++at) {
    std::uint32_t& slot = slots_[at & (slots_.size() - 1)];
    if (slot == 0)
      free = &slot;
    else if (texts_[slot - 1] == text)
      return slot;
  }
  texts_.push_back(text);
  if (free != nullptr) *free = static_cast<std::uint32_t>(texts_.size());
  return 0;
}

void TextNumbers::grow() {
  slots_.assign(std::max<std::size_t>(128, 2 * slots_.size()), 0);
  texts_.reserve(slots_.size() / 2);
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    for (std::size_t looks = 0, at = hash(texts_[i]); looks < kMostLooks; ++looks, ++at) {
      std::uint32_t& slot = slots_[at & (slots_.size() - 1)];
      if (slot != 0) continue;
      slot = static_cast<std::uint32_t>(i + 1);
      break;
    }
  }
}

RecordWriter::RecordWriter() : bytes_(1024, '\0') {
  bytes_[size_++] = kFormat;
}

/// A number of a text that was there before, or 0, its length and its bytes.
void RecordWriter::text(std::string_view text) {
  if (const std::uint64_t known = known_number(text)) return number(known);
  if (const std::uint64_t there = texts_.find_or_add(text)) return number(kKnown.size() + there);
  number(0);
  number(text.size());
  if (bytes_.size() - size_ < text.size()) bytes_.resize(2 * bytes_.size() + text.size());
  text.copy(&bytes_[size_], text.size());
  size_ += text.size();
}

RecordReader::RecordReader(std::string_view bytes) : bytes_(bytes) {
  if (bytes.empty() || bytes[at_++] != kFormat) fail();
}

void RecordReader::fail() {
  throw SQLite::Exception("a record that this version can't read", SQLITE_CORRUPT);
}

std::uint64_t RecordReader::long_number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == bytes_.size()) fail();
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

std::string_view RecordReader::text(std::uint64_t place) {
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
