#pragma once
#include <expected>
#include <memory>
#include <string_view>

#include "http/exchange.h"
#include "http/head.h"

namespace holdfast::http {

struct Admitted {
  std::unique_ptr<Exchange> exchange;  // without connection, socket and body
  std::uint64_t body_length = 0;
  bool expect_continue = false;
};

/// Everything that can be decided before the body is read: syntax, route, token, scope, size.
[[nodiscard]] std::expected<Admitted, Refusal> admit(std::string_view head, const Router& router,
                                                     const Options& options);

}  // namespace holdfast::http
