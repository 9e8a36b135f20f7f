#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::json {

/// The code unit of the four hexadecimal digits at the start of `text`, -1 when they are not there.
[[nodiscard]] std::int32_t hex4(std::string_view text);

/// What a string literal's inside stands for. `escaped` must be valid: parse() has seen it.
[[nodiscard]] std::string unescape(std::string_view escaped);

}  // namespace holdfast::json
