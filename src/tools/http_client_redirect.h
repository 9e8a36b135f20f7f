#pragma once
// Redirects of reads, followed by hand: libcurl would drop two well-known headers at another origin, we drop
// all that are configured.
#include "tools/http_client_exchange.h"

namespace holdfast::tools {

inline constexpr int kMostHops = 5;

enum class Hop {
  none,   // no redirect, or one that is not followed: the answer stands
  next,   // the exchange is set to the next place; start it again
  limit,  // one hop too many
};

/// Looks at a complete answer of an exchange that may follow redirects. On `next` the request is changed for
/// the next hop and all that was seen of this one is forgotten, but for its byte counts.
[[nodiscard]] Hop follow(Exchange& exchange, const HttpOutcome& outcome);

}  // namespace holdfast::tools
