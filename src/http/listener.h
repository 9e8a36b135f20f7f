#pragma once
#include <string>

#include "holdfast/core/error.h"

namespace holdfast::http {

struct Listener {
  int socket = -1;
  std::string address;  // with the real port
};

/// Binds and listens without blocking. `address` is `host:port`, `[v6]:port` or `unix:/path`; a socket file that nobody
/// listens on is replaced, and the new one has `mode`. Error `listen_failed` names the address and the cause.
[[nodiscard]] Result<Listener> open_listener(const std::string& address, unsigned mode = 0600);
/// Takes the file of a `unix:` address away; nothing for others.
void remove_unix_socket(const std::string& address);

/// `127.0.0.1` or `::1` of a connected socket, `unix` of a local one.
[[nodiscard]] std::string peer_address(const void* sockaddr_storage);
/// What counts as one client: an IPv4 address, or the /64 that an IPv6 client may choose its address from.
[[nodiscard]] std::string address_group(const std::string& address);
[[nodiscard]] bool is_loopback(const std::string& address);

}  // namespace holdfast::http
