#pragma once
#include "subject.h"

namespace holdfast::bench {

/// Another orchestrator that does the same work: `peers/NAME.mjs`, run by the Node that lies beside the packages.
class Peer : public Subject {
 public:
  /// `packages` is the folder that scripts/bench_peers filled. Throws std::runtime_error when the peer does not become
  /// ready.
  Peer(const std::string& name, const std::string& packages, std::uint16_t tool_port);

  [[nodiscard]] std::uint16_t port() const override { return port_; }
  [[nodiscard]] std::string request(int steps) const override;
  [[nodiscard]] Verdict judge(std::string_view answer) const override;
  [[nodiscard]] std::uint64_t bytes_on_disk() const override;

 private:
  std::uint16_t port_ = 0;
  std::string path_;
};

/// Whether `packages` holds what the peer needs.
[[nodiscard]] bool peer_is_installed(const std::string& name, const std::string& packages);

}  // namespace holdfast::bench
