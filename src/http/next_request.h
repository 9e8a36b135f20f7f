#pragma once
#include <memory>
#include <string>

#include "http/exchange.h"

namespace holdfast::http {

/// The next request on the connection of `last`, when it comes within `options.keep_time`, in one piece, and is admitted. nullptr otherwise; what
/// was read of it is in `received` then, and every refusal is the poller's to give.
[[nodiscard]] std::unique_ptr<Exchange> next_request(const Exchange& last, const Router& router, const Options& options, std::string& received);

}  // namespace holdfast::http
