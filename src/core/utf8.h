#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::utf8 {

/// The length of the well-formed sequence at `at` (1 to 4), 0 when the bytes there are none: overlong forms,
/// surrogates and code points over U+10FFFF are none.
[[nodiscard]] inline std::size_t sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (!tail(at + 1)) return 0;
  if (lead < 0xE0) return 2;
  const unsigned char second = byte(at + 1);
  if (!tail(at + 2)) return 0;
  if (lead < 0xF0) return (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ? 0 : 3;
  if (!tail(at + 3)) return 0;
  return (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F) ? 0 : 4;
}

/// `code` must be a code point that is no surrogate.
inline void append(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
        put(0x80 | (code & 0x3F));
  }
}

}  // namespace holdfast::utf8
