#include "holdfast.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "wire.h"

namespace holdfast::bench {
namespace {

std::string configuration(std::uint16_t tool_port) {
  const std::string write = "effect: write, deadline: 30s, request: {method: POST, path: /do}";
  return "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndatabase: bench.db\nservers:\n  tool:\n    http: "
         "{base_url: "
         "\"http://127.0.0.1:" +
         std::to_string(tool_port) + "\"}\n    max_in_flight: 256\n    tools:\n" + "      plain: {" + write +
         "}\n      keyed: {" + write + ", key: {header: Idempotency-Key}}\n";
}

std::uint16_t port_after(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name + "127.0.0.1:");
  if (at == std::string::npos) throw std::runtime_error("no address in: " + line);
  return static_cast<std::uint16_t>(std::stoul(line.substr(at + name.size() + 10, 5)));
}

}  // namespace

Holdfast::Holdfast(const std::string& binary, std::string tool, std::uint16_t tool_port, const std::string& ledger)
    : tool_(std::move(tool)) {
  if (!ledger.empty()) {
    std::filesystem::copy_file(ledger, process_.folder() / "bench.db");
    bytes_at_start_ = std::filesystem::file_size(ledger);
  }
  const std::string config = (process_.folder() / "holdfast.yaml").string();
  std::ofstream(config) << configuration(tool_port);
  const std::string line =
      process_.start({std::filesystem::absolute(binary).string(), "serve", "--config", config}, {});
  client_port_ = port_after(line, "client=");
  admin_port_ = port_after(line, "admin=");
}

std::string Holdfast::request(int steps) const {
  std::string body = R"({"name":"bench","steps":[)";
  for (int i = 1; i <= steps; ++i) {
    if (i > 1) body += ',';
    body += R"({"id":"s)" + std::to_string(i) + R"(","server":"tool","tool":")" + tool_ +
            R"(","args":{"customer":"c-1042","amount":1299,"memo":"benchmark"}})";
  }
  return post("/v1/runs", body + "]}");
}

Verdict Holdfast::judge(std::string_view answer) const {
  const std::size_t id = place_of(answer, "\"id\":\"run_");
  if (!answer.starts_with("HTTP/1.1 20") || id == std::string_view::npos) return {};
  const std::string_view run = answer.substr(0, place_of(answer, "\"steps\""));
  const bool settled = place_of(run, "\"settled\":true") != std::string_view::npos;
  const bool unknown = place_of(run, "\"status\":\"unknown\"") != std::string_view::npos;
  if (!settled && !unknown) {
    return {.kind = Verdict::Kind::kAskAgain,
            .request = "GET /v1/runs/" + std::string(answer.substr(id + 6, 30)) +
                       "?wait=30s HTTP/1.1\r\nHost: bench\r\n\r\n"};
  }
  const bool good = place_of(run, "\"status\":\"succeeded\"") != std::string_view::npos;
  return {.kind = good ? Verdict::Kind::kSucceeded : Verdict::Kind::kFailed, .request = {}};
}

std::uint64_t Holdfast::bytes_on_disk() const {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(process_.folder())) {
    if (file.path().filename().string().starts_with("bench.db")) bytes += file.file_size();
  }
  return bytes - std::min(bytes, bytes_at_start_);
}

double Holdfast::commits() const {
  const std::string name = "\nholdfast_ledger_commit_seconds_count ";
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
  const std::size_t at = text.find(name);
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size(), nullptr);
}

}  // namespace holdfast::bench
