#include "peer.h"

#include <stdexcept>

#include "wire.h"

namespace holdfast::bench {
namespace {

std::filesystem::path node_of(const std::filesystem::path& packages) {
  return packages / "node_modules" / "node" / "bin" / "node";
}

std::string word_after(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name);
  if (at == std::string::npos) throw std::runtime_error("no " + name + " in: " + line);
  const std::size_t from = at + name.size();
  return line.substr(from, line.find_first_of(" \n", from) - from);
}

}  // namespace

Peer::Peer(const std::string& name, const std::string& packages, std::uint16_t tool_port) {
  const std::filesystem::path folder = std::filesystem::absolute(packages);
  const std::filesystem::path script = std::filesystem::path(HOLDFAST_BENCH_PEERS) / (name + ".mjs");
  const std::string line =
      process_.start({node_of(folder).string(), script.string()},
                     {{"BENCH_PEERS", folder.string()}, {"BENCH_TOOL_PORT", std::to_string(tool_port)}});
  port_ = static_cast<std::uint16_t>(std::stoul(word_after(line, "port=")));
  path_ = word_after(line, "path=");
}

std::string Peer::request(int steps) const {
  return post(path_, "{\"steps\":" + std::to_string(steps) + "}");
}

Verdict Peer::judge(std::string_view answer) const {
  const bool good =
      answer.starts_with("HTTP/1.1 200") && answer.find("\"status\":\"succeeded\"") != std::string_view::npos;
  return {.kind = good ? Verdict::Kind::kSucceeded : Verdict::Kind::kFailed, .request = {}};
}

std::uint64_t Peer::bytes_on_disk() const {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(process_.folder())) {
    if (file.is_regular_file()) bytes += file.file_size();
  }
  return bytes;
}

bool peer_is_installed(const std::string& name, const std::string& packages) {
  const std::filesystem::path modules = std::filesystem::path(packages) / "node_modules";
  if (!std::filesystem::exists(node_of(packages))) return false;
  if (name == "restate") return std::filesystem::exists(modules / "@restatedev" / "restate-server");
  if (name == "bullmq") return std::filesystem::exists(modules / "bullmq");
  if (name == "dbos") return std::filesystem::exists(modules / "@dbos-inc" / "dbos-sdk");
  return false;
}

}  // namespace holdfast::bench
