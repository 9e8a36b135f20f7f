#pragma once
#include <string_view>

#include "holdfast/core/error.h"
#include "http/server.h"

namespace holdfast::api {

/// The HTTP status of an error code; 400 for a code that is not in the table (codes of bad input are many,
/// the others are few).
[[nodiscard]] int status_of(std::string_view code);
/// The problem+json answer of an error, with Retry-After where trying again helps.
[[nodiscard]] http::Response failure(const Error& error);

}  // namespace holdfast::api
