#pragma once
// Cursors of lists: opaque to clients, a few whole numbers inside.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast::api {

/// At most four numbers. `list` is one letter per list, so that a cursor of one list is refused by another.
[[nodiscard]] std::string make_cursor(char list, const std::vector<std::int64_t>& numbers);
/// Exactly `count` numbers of that list's cursor. Error `bad_cursor`.
[[nodiscard]] Result<std::vector<std::int64_t>> read_cursor(char list, std::size_t count,
                                                            std::string_view cursor);

}  // namespace holdfast::api
