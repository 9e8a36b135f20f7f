#pragma once
// Shapes of single values: addresses, URLs, header names, request paths. Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tools::config {

/// Empty when `text` is `host:port` (`[::1]:80`, `127.0.0.1:0`, `localhost:4653`); else what is wrong.
[[nodiscard]] std::string listen_fault(std::string_view text);
/// Of a valid listen address: 127.0.0.0/8, ::1 or localhost.
[[nodiscard]] bool is_loopback_listen(std::string_view text);
/// Empty when `text` is an http or https URL with a host, without user, fragment and odd characters; else
/// what is wrong.
[[nodiscard]] std::string url_fault(std::string_view text, bool query_allowed);
/// RFC 9110 token.
[[nodiscard]] bool is_token(std::string_view text);
/// Visible ASCII, blanks, tabs and bytes above 0x7f: nothing that could end a header line.
[[nodiscard]] bool is_header_value(std::string_view text);
/// Headers that the transport itself sets.
[[nodiscard]] bool is_reserved_header(std::string_view name);
/// The `{x}` of a request path, in order; nullopt when the braces don't match or a name is none.
[[nodiscard]] std::optional<std::vector<std::string>> path_arguments(std::string_view path);
/// Empty when the path starts with `/` and holds only characters of a URL path or query; else what is wrong.
[[nodiscard]] std::string path_fault(std::string_view path);

}  // namespace holdfast::tools::config
