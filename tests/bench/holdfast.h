#pragma once
#include "subject.h"

namespace holdfast::bench {

/// The built binary with its defaults, serving a database in a temporary folder.
class Holdfast : public Subject {
 public:
  /// `tool` is "keyed" (the tool knows our key; connections are kept) or "plain" (a fresh connection per write).
  /// `ledger`: a database to start with, copied; empty: none. Throws std::runtime_error when the binary does not
  /// become ready.
  Holdfast(const std::string& binary, std::string tool, std::uint16_t tool_port, const std::string& ledger);

  [[nodiscard]] std::uint16_t port() const override { return client_port_; }
  [[nodiscard]] std::string request(int steps) const override;
  [[nodiscard]] Verdict judge(std::string_view answer) const override;
  [[nodiscard]] double commits() const override;
  /// Of the database and what lies beside it, less what it started with: after stop() without a log that is only waiting to be copied.
  [[nodiscard]] std::uint64_t bytes_on_disk() const override;

 private:
  const std::string tool_;
  std::uint64_t bytes_at_start_ = 0;
  std::uint16_t client_port_ = 0;
  std::uint16_t admin_port_ = 0;
};

}  // namespace holdfast::bench
