#pragma once
// A step's arguments as the exact request. Pure.
#include <string>
#include <string_view>

#include "holdfast/core/error.h"
#include "holdfast/core/json.h"
#include "holdfast/run/run.h"
#include "holdfast/tools/config.h"

namespace holdfast::tools::catalog {

/// The object's text with `key` as a string at `pointer`: replaced where a member stands, else appended, with
/// missing parents created. Error `bad_arguments` where the way leads through something that is no object.
[[nodiscard]] Result<std::string> with_key(const json::Value& object, std::string_view pointer,
                                           std::string_view key);

/// "POST /path" and the body, or "GET /path?query". Error `bad_arguments` with a pointer into the arguments.
[[nodiscard]] Result<run::FrozenRequest> http_request(const RequestTemplate& request,
                                                      const json::Value& arguments);

}  // namespace holdfast::tools::catalog
