// Strings of JSON: escapes, quoting, UTF-8.
#include "core/json_text.h"

#include <array>

#include "core/utf8.h"
#include "holdfast/core/json.h"

namespace holdfast::json {
namespace {

constexpr bool is_high_surrogate(std::int32_t unit) {
  return unit >= 0xD800 && unit <= 0xDBFF;
}

/// Appends what the escape at `at` (behind the backslash) stands for; returns the position behind it.
std::size_t append_escape(std::string& out, std::string_view text, std::size_t at) {
  switch (text[at]) {
    case 'b':
      out += '\b';
      return at + 1;
    case 'f':
      out += '\f';
      return at + 1;
    case 'n':
      out += '\n';
      return at + 1;
    case 'r':
      out += '\r';
      return at + 1;
    case 't':
      out += '\t';
      return at + 1;
    case 'u':
      break;
    default:
      out += text[at];
      return at + 1;
  }
  constexpr std::size_t kUnit = 5;  // uXXXX
  const std::int32_t unit = hex4(text.substr(at + 1));
  if (!is_high_surrogate(unit)) {
    utf8::append(out, static_cast<std::uint32_t>(unit));
    return at + kUnit;
  }
  const std::int32_t low = hex4(text.substr(at + kUnit + 2));
  utf8::append(out, 0x10000U + (static_cast<std::uint32_t>(unit - 0xD800) << 10) +
                        static_cast<std::uint32_t>(low - 0xDC00));
  return at + kUnit + 1 + kUnit;
}

/// The letter of a short escape, 0 where there is none.
constexpr char short_escape(char c) {
  switch (c) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

void append_control(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

/// ASCII that needs no escape.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

constexpr bool is_plain(char c) {
  return kPlain[static_cast<unsigned char>(c)];
}

}  // namespace

std::int32_t hex4(std::string_view text) {
  if (text.size() < 4) return -1;
  std::int32_t unit = 0;
  for (const char c : text.substr(0, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

std::string unescape(std::string_view escaped) {
  std::string out;
  out.reserve(escaped.size());
  std::size_t at = 0;
  while (at < escaped.size()) {
    const std::size_t next = escaped.find('\\', at);
    out.append(escaped.substr(at, next - at));
    if (next == std::string_view::npos) break;
    at = append_escape(out, escaped, next + 1);
  }
  return out;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8::sequence(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    while (at < text.size() && is_plain(text[at])) ++at;
    out.append(text.substr(start, at - start));
    if (at == text.size()) break;
    if (const char letter = short_escape(text[at])) {
      out += '\\';
      out += letter;
      ++at;
    } else if (static_cast<unsigned char>(text[at]) < 0x20) {
      append_control(out, text[at++]);
    } else if (const std::size_t length = utf8::sequence(text, at)) {
      out.append(text.substr(at, length));
      at += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++at;
    }
  }
  out += '"';
}

std::string quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_quoted(out, text);
  return out;
}

}  // namespace holdfast::json
