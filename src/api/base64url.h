#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::api {

/// RFC 4648 base64url without padding.
[[nodiscard]] std::string base64url(std::string_view bytes);
/// nullopt for any other alphabet, padding, an impossible length or stray bits in the last character.
[[nodiscard]] std::optional<std::string> from_base64url(std::string_view text);

}  // namespace holdfast::api
