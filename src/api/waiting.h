#pragma once
// Long polls: a handler looks, parks the request, and is run again when its run has changed.
#include "api/reading.h"
#include "http/server.h"

namespace holdfast::api {

/// The instant until which this request may wait, fixed at its first look and kept in the request's state
/// while it is parked. nullopt: it does not wait.
[[nodiscard]] inline std::optional<Instant> wait_until(http::Request& request, std::optional<Duration> wait,
                                                       Instant now) {
  if (!wait || wait->count() == 0 || request.waited_out) return std::nullopt;
  if (request.state) {
    if (const Instant* kept = std::any_cast<Instant>(request.state)) {
      if (*kept <= now) return std::nullopt;
      return *kept;
    }
    *request.state = now + *wait;
  }
  return now + *wait;
}

}  // namespace holdfast::api
