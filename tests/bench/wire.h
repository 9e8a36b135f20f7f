#pragma once
#include <netinet/in.h>
#include <sys/epoll.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace holdfast::bench {

/// Faster than string_view's own on JSON, which holds the first byte of a name everywhere.
inline std::size_t place_of(std::string_view text, std::string_view what) {
  const void* at = memmem(text.data(), text.size(), what.data(), what.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

/// The size of the complete message at the front of `text` (a head and the body of its Content-Length); 0
/// while it is not complete.
inline std::size_t message_size(std::string_view text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  std::size_t body = 0;
  for (const std::string_view name : {"\r\nContent-Length: ", "\r\ncontent-length: "}) {
    const std::size_t at = text.substr(0, head).find(name);
    if (at != std::string_view::npos) std::from_chars(text.data() + at + name.size(), text.data() + head, body);
  }
  return text.size() >= head + 4 + body ? head + 4 + body : 0;
}

inline std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline void watch(int epoll, int descriptor, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace holdfast::bench
