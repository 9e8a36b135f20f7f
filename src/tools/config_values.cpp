#include "config_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/ascii.h"
#include "holdfast/core/ids.h"

namespace holdfast::tools::config {
namespace {

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_port(std::string_view text, std::uint32_t least) {
  std::uint32_t port = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), port);
  return fault == std::errc{} && end == text.data() + text.size() && port >= least && port <= 65535;
}

bool is_ipv6(std::string_view text) {
  in6_addr address{};
  return inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

bool is_ipv4(std::string_view text) {
  in_addr address{};
  return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

bool is_host(std::string_view text) {
  if (text.starts_with('[')) return text.ends_with(']') && is_ipv6(text.substr(1, text.size() - 2));
  const auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; };
  if (text.empty() || text.size() > 253 || !std::ranges::all_of(text, allowed)) return false;
  const bool numeric = text.find_first_not_of("0123456789.") == std::string_view::npos;
  return !numeric || is_ipv4(text);
}

/// Splits at the last colon outside brackets.
std::pair<std::string_view, std::optional<std::string_view>> split_port(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto bracket = text.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
    return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

bool is_url_text(std::string_view text) {
  constexpr std::string_view kPunctuation = "-._~:/?@!$&'()*+,;=%";
  return std::ranges::all_of(
      text, [&](char c) { return is_alnum(c) || kPunctuation.find(c) != std::string_view::npos; });
}

constexpr std::string_view kUnixListen = "unix:";
constexpr std::size_t kLongestSocketPath = 107;

}  // namespace

std::string listen_fault(std::string_view text) {
  if (text.starts_with(kUnixListen)) {
    const auto path = text.substr(kUnixListen.size());
    if (!path.starts_with('/')) return "names no absolute path";
    return path.size() > kLongestSocketPath ? "has a path longer than 107 bytes" : "";
  }
  const auto [host, port] = split_port(text);
  if (!port) return "has no port";
  if (!is_host(host)) return "has no usable host";
  if (!is_port(*port, 0)) return "has no port from 0 to 65535";
  return {};
}

bool is_loopback_listen(std::string_view text) {
  if (text.starts_with(kUnixListen)) return true;
  const auto host = split_port(text).first;
  if (host == "[::1]" || ascii::lowered(host) == "localhost") return true;
  return is_ipv4(host) && host.starts_with("127.");
}

std::string url_fault(std::string_view text, bool query_allowed) {
  std::string_view rest = text;
  if (rest.starts_with("http://"))
    rest.remove_prefix(7);
  else if (rest.starts_with("https://"))
    rest.remove_prefix(8);
  else
    return "doesn't start with http:// or https://";
  const auto authority = rest.substr(0, rest.find_first_of("/?#"));
  const auto path = rest.substr(authority.size());
  if (authority.find('@') != std::string_view::npos)
    return "holds a user or password, which belong into headers";
  const auto [host, port] = split_port(authority);
  if (!is_host(host)) return "has no usable host";
  if (port && !is_port(*port, 1)) return "has no port from 1 to 65535";
  if (path.find('#') != std::string_view::npos) return "holds a fragment";
  if (!query_allowed && path.find('?') != std::string_view::npos)
    return "holds a query, which belongs into the tool's path";
  if (!is_url_text(path)) return "holds characters that must be percent-encoded";
  return {};
}

bool is_token(std::string_view text) {
  constexpr std::string_view kPunctuation = "!#$%&'*+-.^_`|~";
  const auto allowed = [&](char c) { return is_alnum(c) || kPunctuation.find(c) != std::string_view::npos; };
  return !text.empty() && text.size() <= 256 && std::ranges::all_of(text, allowed);
}

bool is_header_value(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); });
}

bool is_reserved_header(std::string_view name) {
  constexpr std::array<std::string_view, 10> kReserved{
      "host", "content-length", "transfer-encoding", "connection",     "expect", "upgrade",
      "te",   "trailer",        "keep-alive",        "accept-encoding"};
  return std::ranges::find(kReserved, ascii::lowered(name)) != kReserved.end();
}

std::optional<std::vector<std::string>> path_arguments(std::string_view path) {
  std::vector<std::string> names;
  while (true) {
    const auto brace = path.find_first_of("{}");
    if (brace == std::string_view::npos) return names;
    const auto end = path.find_first_of("{}", brace + 1);
    if (path[brace] != '{' || end == std::string_view::npos || path[end] != '}') return std::nullopt;
    const auto name = path.substr(brace + 1, end - brace - 1);
    if (!is_name(name)) return std::nullopt;
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    path.remove_prefix(end + 1);
  }
}

std::string path_fault(std::string_view path) {
  if (!path.starts_with('/')) return "doesn't start with /";
  if (path.size() > 4096) return "is longer than 4096 bytes";
  std::string plain;
  for (const char c : path) {
    if (c != '{' && c != '}') plain += c;
  }
  if (!is_url_text(plain)) return "holds characters that must be percent-encoded";
  if (!path_arguments(path)) return "has a `{` or `}` that stands around no argument name";
  return {};
}

}  // namespace holdfast::tools::config
