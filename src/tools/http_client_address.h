#pragma once
// Which addresses a call may reach, and where a redirect leads. No I/O.
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::tools {

/// True for loopback, private, link-local (cloud metadata), shared, multicast, reserved and unspecified
/// addresses, also when they are wrapped into IPv6 (mapped, NAT64, 6to4). Anything that is neither IPv4 nor
/// IPv6 counts as private.
[[nodiscard]] bool is_private_address(const sockaddr* address);
/// The same for an address written as text; text that is no address counts as private.
[[nodiscard]] bool is_private_address(std::string_view address);

/// True for link-local addresses and those where clouds keep a machine's credentials, in every wrapping: refused even
/// where private addresses are allowed, unless the URL itself names the address.
[[nodiscard]] bool is_forbidden_address(const sockaddr* address);
[[nodiscard]] bool is_forbidden_address(std::string_view address);

struct Origin {
  std::string scheme;
  std::string host;  // normalised: lower-case, IPv4 in dotted form, IPv6 in brackets
  std::string port;
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// nullopt for anything that is not an http or https URL with a host.
[[nodiscard]] std::optional<Origin> origin_of(const std::string& url);
/// True when `host` needs a name lookup: neither a literal address nor `localhost`, which are taken as meant.
[[nodiscard]] bool is_host_name(std::string_view host);
/// `location` seen from `base`, without fragment; nullopt unless it is an http or https URL without user
/// information.
[[nodiscard]] std::optional<std::string> resolve_location(const std::string& base,
                                                          const std::string& location);
/// True for bytes that must never reach a header or a request line: control bytes, DEL.
[[nodiscard]] bool has_control_bytes(std::string_view text);

}  // namespace holdfast::tools
