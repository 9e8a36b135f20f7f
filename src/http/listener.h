#pragma once
#include <string>

#include "holdfast/core/error.h"

namespace holdfast::http {

struct Listener {
  int socket = -1;
  std::string address;  // with the real port
};

/// Binds and listens without blocking. `address` is `host:port` or `[v6]:port`. Error `listen_failed` names
/// the address and the cause.
[[nodiscard]] Result<Listener> open_listener(const std::string& address);

/// `127.0.0.1` or `::1` of a connected socket.
[[nodiscard]] std::string peer_address(const void* sockaddr_storage);

}  // namespace holdfast::http
