#pragma once
#include <cstdint>
#include <string>

namespace holdfast::sweep {

/// The database of an older program: the schema of `version`, with those rows of `image` (today's schema) that it had columns for.
[[nodiscard]] std::string older_image(const std::string& image, std::uint32_t version);

}  // namespace holdfast::sweep
