#pragma once
#include <memory>

#include "http/server.h"

namespace holdfast::bench {

/// The interface of our listeners on cpp-httplib's own sockets and thread pool, to measure against: no poller, no limits,
/// no tokens, and a parked request holds its thread. `threads`: of its pool.
[[nodiscard]] std::unique_ptr<http::Server> make_plain_server(const Clock& clock, std::size_t threads);

}  // namespace holdfast::bench
