#include "service.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "wire.h"

namespace holdfast::bench {
namespace {

constexpr int kReadyMs = 10'000;
constexpr int kStopMs = 12'000;

std::string configuration(std::uint16_t tool_port) {
  const std::string write = "effect: write, deadline: 30s, request: {method: POST, path: /do}";
  return "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndatabase: bench.db\nservers:\n  tool:\n    http: "
         "{base_url: "
         "\"http://127.0.0.1:" +
         std::to_string(tool_port) + "\"}\n    max_in_flight: 256\n    tools:\n" + "      plain: {" + write +
         "}\n      keyed: {" + write + ", key: {header: Idempotency-Key}}\n";
}

std::filesystem::path new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  return name;
}

/// The ready line, or what came instead of it.
std::string read_line(int descriptor) {
  std::string line;
  while (line.find('\n') == std::string::npos) {
    pollfd p{.fd = descriptor, .events = POLLIN, .revents = 0};
    std::array<char, 512> buffer;
    if (::poll(&p, 1, kReadyMs) <= 0) break;
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n <= 0) break;
    line.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return line;
}

std::uint16_t port_after(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name + "127.0.0.1:");
  if (at == std::string::npos) throw std::runtime_error("not ready, but: " + line);
  return static_cast<std::uint16_t>(std::stoul(line.substr(at + name.size() + 10, 5)));
}

}  // namespace

Service::Service(const std::string& binary, std::uint16_t tool_port) : folder_(new_folder()) {
  std::ofstream(folder_ / "holdfast.yaml") << configuration(tool_port);
  start(std::filesystem::absolute(binary).string());
}

void Service::start(const std::string& binary) {
  std::array<int, 2> out{};
  if (pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::string config = (folder_ / "holdfast.yaml").string();
  process_ = fork();
  if (process_ == 0) {
    if (chdir(folder_.c_str()) != 0) _exit(126);
    dup2(out[1], STDOUT_FILENO);
    const int log = ::open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (log >= 0) dup2(log, STDERR_FILENO);
    execl(binary.c_str(), binary.c_str(), "serve", "--config", config.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  ::close(out[1]);
  const std::string line = read_line(out[0]);
  ::close(out[0]);
  client_port_ = port_after(line, "client=");
  admin_port_ = port_after(line, "admin=");
}

Service::~Service() {
  stop();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Service::stop() {
  if (process_ <= 0) return;
  kill(process_, SIGTERM);
  int waited_ms = 0;
  for (; waitpid(process_, nullptr, WNOHANG) == 0 && waited_ms < kStopMs; waited_ms += 20) {
    ::poll(nullptr, 0, 20);
  }
  if (waited_ms >= kStopMs) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  process_ = -1;
}

long Service::peak_rss_kib() const {
  std::ifstream status("/proc/" + std::to_string(process_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return -1;
}

std::uint64_t Service::bytes_on_disk() const {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    if (file.path().filename().string().starts_with("bench.db")) bytes += file.file_size();
  }
  return bytes;
}

double Service::metric(const std::string& name) const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = loopback(admin_port_);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
  std::string text;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    std::array<char, 16384> buffer;
    for (ssize_t n = 0; (n = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }
  ::close(socket);
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

}  // namespace holdfast::bench
