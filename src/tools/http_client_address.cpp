#include "tools/http_client_address.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

namespace holdfast::tools {
namespace {

struct Block {
  std::uint32_t network;
  int bits;
};

constexpr std::uint32_t quad(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// The special-purpose registry's blocks that are not globally reachable.
constexpr std::array kPrivateBlocks{
    Block{quad(0, 0, 0, 0), 8},     Block{quad(10, 0, 0, 0), 8},      Block{quad(100, 64, 0, 0), 10},
    Block{quad(127, 0, 0, 0), 8},   Block{quad(169, 254, 0, 0), 16},  Block{quad(172, 16, 0, 0), 12},
    Block{quad(192, 0, 0, 0), 24},  Block{quad(192, 0, 2, 0), 24},    Block{quad(192, 168, 0, 0), 16},
    Block{quad(198, 18, 0, 0), 15}, Block{quad(198, 51, 100, 0), 24}, Block{quad(203, 0, 113, 0), 24},
    Block{quad(224, 0, 0, 0), 3},
};

bool is_private_v4(std::uint32_t host_order) {
  return std::ranges::any_of(kPrivateBlocks, [&](const Block& block) {
    return (host_order ^ block.network) >> (32 - block.bits) == 0;
  });
}

std::uint32_t v4_at(const std::uint8_t* bytes) {
  return quad(bytes[0], bytes[1], bytes[2], bytes[3]);
}

constexpr std::array<std::uint8_t, 12> kCompatible{};  // also :: and ::1

/// The IPv4 address that is wrapped into this one: mapped, NAT64, compatible, 6to4.
std::optional<std::uint32_t> v4_inside(const std::uint8_t* bytes) {
  static constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static constexpr std::array<std::uint8_t, 12> kNat64{0, 0x64, 0xff, 0x9b};
  for (const auto& prefix : {kMapped, kNat64, kCompatible}) {
    if (std::memcmp(bytes, prefix.data(), prefix.size()) == 0) return v4_at(bytes + 12);
  }
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return v4_at(bytes + 2);
  return std::nullopt;
}

bool is_private_v6(const in6_addr& address) {
  const std::uint8_t* bytes = address.s6_addr;
  if (std::memcmp(bytes, kCompatible.data(), kCompatible.size()) == 0) return true;
  if (const auto inner = v4_inside(bytes)) return is_private_v4(*inner);
  return bytes[0] >= 0xfc || (bytes[0] & 0xe0) != 0x20;  // only 2000::/3 is global unicast
}

bool is_forbidden_v4(std::uint32_t address) {
  return address >> 16 == quad(0, 0, 169, 254) || address == quad(100, 100, 100, 200) || address == quad(192, 0, 0, 192);
}

bool is_forbidden_v6(const in6_addr& address) {
  static constexpr std::array<std::uint8_t, 16> kMetadata{0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54};
  const std::uint8_t* bytes = address.s6_addr;
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return true;
  if (std::memcmp(bytes, kMetadata.data(), kMetadata.size()) == 0) return true;
  const auto inner = v4_inside(bytes);
  return inner && is_forbidden_v4(*inner);
}

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;

std::optional<std::string> part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK || text == nullptr) return std::nullopt;
  std::string out = text;
  curl_free(text);
  return out;
}

bool is_http(const std::string& scheme) {
  return scheme == "http" || scheme == "https";
}

}  // namespace

bool is_private_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return is_private_v4(ntohl(in.sin_addr.s_addr));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    return is_private_v6(in.sin6_addr);
  }
  return true;
}

bool is_private_address(std::string_view address) {
  const std::string text(address);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return is_private_v4(ntohl(v4.s_addr));
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return is_private_v6(v6);
  return true;
}

bool is_forbidden_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return is_forbidden_v4(ntohl(in.sin_addr.s_addr));
  }
  sockaddr_in6 in{};
  if (address->sa_family != AF_INET6) return true;
  std::memcpy(&in, address, sizeof in);
  return is_forbidden_v6(in.sin6_addr);
}

bool is_forbidden_address(std::string_view address) {
  const std::string text(address);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return is_forbidden_v4(ntohl(v4.s_addr));
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) != 1 || is_forbidden_v6(v6);
}

std::optional<Origin> origin_of(const std::string& text) {
  const Url url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return std::nullopt;
  auto scheme = part(url, CURLUPART_SCHEME);
  auto host = part(url, CURLUPART_HOST);
  auto port = part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!scheme || !host || !port || !is_http(*scheme)) return std::nullopt;
  std::ranges::transform(*host, host->begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return Origin{std::move(*scheme), std::move(*host), std::move(*port)};
}

bool is_host_name(std::string_view host) {
  if (host == "localhost" || host.starts_with('[')) return false;
  in_addr v4{};
  return inet_pton(AF_INET, std::string(host).c_str(), &v4) != 1;
}

std::optional<std::string> resolve_location(const std::string& base, const std::string& location) {
  if (location.empty() || has_control_bytes(location)) return std::nullopt;
  const Url url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK) return std::nullopt;
  // Relative places inherit everything; user information is what a server must not be able to choose.
  curl_url_set(url.get(), CURLUPART_USER, nullptr, 0);
  curl_url_set(url.get(), CURLUPART_PASSWORD, nullptr, 0);
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_DISALLOW_USER | CURLU_URLENCODE) !=
      CURLUE_OK)
    return std::nullopt;
  curl_url_set(url.get(), CURLUPART_FRAGMENT, nullptr, 0);
  const auto scheme = part(url, CURLUPART_SCHEME);
  if (!scheme || !is_http(*scheme)) return std::nullopt;
  return part(url, CURLUPART_URL);
}

bool has_control_bytes(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace holdfast::tools
