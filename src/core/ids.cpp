#include "holdfast/core/ids.h"

#include <algorithm>
#include <charconv>

#include "core/utf8.h"

namespace holdfast {
namespace {

constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::string_view kRunPrefix = "run_";
constexpr std::string_view kWritePrefix = "wr_";
constexpr std::size_t kIdLength = 26;
constexpr std::uint64_t kHighMask = 0xFFFF;  // 16 of the 80 random bits
constexpr std::int64_t kLastTime = (std::int64_t{1} << 48) - 1;

bool is_id_body(std::string_view text) {
  return text.size() == kIdLength && text[0] <= '7' &&
         std::ranges::all_of(text, [](char c) { return kAlphabet.find(c) != std::string_view::npos; });
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-';
}

}  // namespace

void RunIds::draw(std::int64_t ms) {
  last_ms_ = ms;
  high_ = random_.next() & kHighMask;
  low_ = random_.next();
}

bool RunIds::climb() {
  const std::uint64_t step = random_.next() | 1;
  low_ += step;
  if (low_ < step) ++high_;
  return high_ <= kHighMask;
}

std::string RunIds::next(Instant now) {
  const std::int64_t ms = std::clamp<std::int64_t>(now.ms, 0, kLastTime);
  if (ms > last_ms_) {
    draw(ms);
  } else if (!climb()) {
    draw(last_ms_ + 1);  // all 80 bits are used up: borrow the next millisecond
  }
  // 128 bits as 26 digits of five bits each, the two missing ones being zeros in front.
  std::uint64_t upper = static_cast<std::uint64_t>(last_ms_) << 16 | high_;
  std::uint64_t lower = low_;
  std::string id(kRunPrefix.size() + kIdLength, '0');
  std::ranges::copy(kRunPrefix, id.begin());
  for (std::size_t i = id.size(); i > kRunPrefix.size(); --i) {
    id[i - 1] = kAlphabet[lower & 31];
    lower = lower >> 5 | upper << 59;
    upper >>= 5;
  }
  return id;
}

bool is_run_id(std::string_view text) {
  return text.starts_with(kRunPrefix) && is_id_body(text.substr(kRunPrefix.size()));
}

std::string write_id(std::string_view run_id, std::size_t step_index) {
  std::string id(kWritePrefix);
  id += run_id.starts_with(kRunPrefix) ? run_id.substr(kRunPrefix.size()) : run_id;
  id += '_';
  id += std::to_string(step_index);
  return id;
}

std::optional<WriteRef> parse_write_id(std::string_view text) {
  constexpr std::size_t kMostDigits = 9;
  constexpr std::size_t kIndexAt = kWritePrefix.size() + kIdLength + 1;
  if (!text.starts_with(kWritePrefix) || text.size() <= kIndexAt || text[kIndexAt - 1] != '_')
    return std::nullopt;
  const std::string_view body = text.substr(kWritePrefix.size(), kIdLength);
  const std::string_view digits = text.substr(kIndexAt);
  if (!is_id_body(body) || digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0'))
    return std::nullopt;
  std::size_t index = 0;
  const auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (status != std::errc{} || stop != digits.data() + digits.size()) return std::nullopt;
  return WriteRef{std::string(kRunPrefix) + std::string(body), index};
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, is_name_character);
}

bool is_target(std::string_view text) {
  constexpr std::size_t kLongest = 1'024;
  if (text.empty() || text.size() > kLongest) return false;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8::sequence(text, at);
    if (length == 0 || byte < 0x20 || byte == 0x7F) return false;
    const bool c1 = byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;  // U+0080 to U+009F
    if (c1) return false;
    at += length;
  }
  return true;
}

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= 255 &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }) &&
         !std::ranges::all_of(text, [](char c) { return c == ' '; });
}

}  // namespace holdfast
