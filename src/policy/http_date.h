#pragma once
#include <optional>
#include <string_view>

#include "holdfast/core/time.h"

namespace holdfast {

/// Reads one of the three HTTP date forms (RFC 9110 5.6.7), always GMT, independent of locale; nullopt for
/// anything else. A year of two digits is the one that lies less than 50 years after `now`.
[[nodiscard]] std::optional<Instant> parse_http_date(std::string_view text, Instant now);

/// True for `Mon` to `Sun` and `Monday` to `Sunday`: the part of a date that stands before its comma.
[[nodiscard]] bool is_day_name(std::string_view text);

}  // namespace holdfast
