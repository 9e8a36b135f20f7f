#pragma once
#include <string>
#include <string_view>

namespace holdfast {

/// `hf1_` + the first 40 characters of lower-case base32 (no padding) of SHA-256 over run id, step id and
/// target, each preceded by its length as 8 bytes big-endian; bytes as given (contract, section 5).
[[nodiscard]] std::string intent_key(std::string_view run_id, std::string_view step_id,
                                     std::string_view target);

/// SHA-256 in lower-case hexadecimal.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace holdfast
