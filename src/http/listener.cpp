#include "http/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

namespace holdfast::http {
namespace {

constexpr int kBacklog = 4096;
constexpr int kSendBuffer = 256 * 1024;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::unexpected<Error> failed(const std::string& address, const std::string& why) {
  return std::unexpected(Error{"listen_failed", "Cannot listen on " + address + ": " + why + ".", ""});
}

/// "127.0.0.1:80" and "[::1]:80" to host and port; an empty port where there is none.
std::pair<std::string, std::string> split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, ""};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

std::string with_real_port(int socket, const std::string& address) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return address;
  const std::uint16_t port = bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                         : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  return address.substr(0, address.rfind(':') + 1) + std::to_string(ntohs(port));
}

bool bind_and_listen(int socket, const addrinfo& to) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (to.ai_family == AF_INET6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  // Accepted sockets inherit it. Without it an answer in two pieces waits 40 ms for an acknowledgement.
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Inherited as well. The kernel would take up to 4 MB of an answer for a client that may never read it.
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  return bind(socket, to.ai_addr, to.ai_addrlen) == 0 && listen(socket, kBacklog) == 0;
}

constexpr std::string_view kUnix = "unix:";

/// True when a server accepts connections there. What nobody listens on is left over from a process that was killed.
bool somebody_listens(const sockaddr_un& to) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return true;
  const bool refused =
      connect(probe, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno == ECONNREFUSED;
  close(probe);
  return !refused;
}

Result<Listener> open_unix_listener(const std::string& address, unsigned mode) {
  const std::string path = address.substr(kUnix.size());
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof to.sun_path) return failed(address, "the path is too long or empty");
  path.copy(to.sun_path, path.size());
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) return failed(address, "there is a file that is no socket");
    if (somebody_listens(to)) return failed(address, "another server listens there");
    unlink(path.c_str());
  }
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return failed(address, std::strerror(errno));
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  // Nobody may connect before the mode is right: the file is made for its owner alone, and nobody listens yet.
  const mode_t before = umask(S_IRWXG | S_IRWXO);
  const bool bound = bind(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  umask(before);
  if (bound && chmod(path.c_str(), mode) == 0 && listen(socket, kBacklog) == 0) return Listener{socket, address};
  const std::string why = std::strerror(errno);
  if (bound) unlink(path.c_str());
  close(socket);
  return failed(address, why);
}

}  // namespace

void remove_unix_socket(const std::string& address) {
  if (address.starts_with(kUnix)) unlink(address.substr(kUnix.size()).c_str());
}

Result<Listener> open_listener(const std::string& address, unsigned mode) {
  if (address.starts_with(kUnix)) return open_unix_listener(address, mode);
  const auto [host, port] = split_address(address);
  if (port.empty()) return failed(address, "it names no port");
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int rc = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
      rc != 0) {
    return failed(address, gai_strerror(rc));
  }
  const Addresses addresses(found, freeaddrinfo);
  std::string why = "no address";
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const int socket = ::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket >= 0 && bind_and_listen(socket, *to)) return Listener{socket, with_real_port(socket, address)};
    why = std::strerror(errno);
    if (socket >= 0) close(socket);
  }
  return failed(address, why);
}

std::string address_group(const std::string& address) {
  in6_addr v6{};
  if (inet_pton(AF_INET6, address.c_str(), &v6) != 1) return address;
  return std::string(reinterpret_cast<const char*>(v6.s6_addr), 8);
}

bool is_loopback(const std::string& address) {
  return address == "unix" || address == "::1" || address.starts_with("127.");
}

std::string peer_address(const void* storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto* any = static_cast<const sockaddr_storage*>(storage);
  if (any->ss_family == AF_UNIX) return "unix";
  const void* bytes = any->ss_family == AF_INET6
                          ? static_cast<const void*>(&static_cast<const sockaddr_in6*>(storage)->sin6_addr)
                          : static_cast<const void*>(&static_cast<const sockaddr_in*>(storage)->sin_addr);
  return inet_ntop(any->ss_family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace holdfast::http
