#pragma once
#include <expected>
#include <functional>
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

/// Told of every wrong token: the seconds until its sender may try another, 0 for a plain refusal.
using WrongToken = std::function<int()>;

/// Everything that can be decided before the body is read: syntax, route, token, scope, size. A known token is never
/// held back, whoever else is at its address.
[[nodiscard]] std::expected<Admitted, Refusal> admit(std::string_view head, const Router& router,
                                                     const Options& options, const WrongToken& wrong_token);

}  // namespace holdfast::http
