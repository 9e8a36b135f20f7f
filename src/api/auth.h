#pragma once
#include <functional>
#include <optional>
#include <string_view>

#include "holdfast/tools/config.h"
#include "http/server.h"

namespace holdfast::api {

/// Who a bearer token belongs to: its SHA-256 is compared with every configured one, in time that tells
/// nothing about the token. An empty function when no tokens are configured. `tokens` is copied.
[[nodiscard]] std::function<std::optional<http::Identity>(std::string_view)> authenticator(
    const std::vector<tools::Token>& tokens);

}  // namespace holdfast::api
