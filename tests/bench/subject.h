#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "load.h"
#include "process.h"

namespace holdfast::bench {

/// A running orchestrator: what is measured.
class Subject {
 public:
  virtual ~Subject() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// The bytes that submit a run of `steps` sequential steps.
  [[nodiscard]] virtual std::string request(int steps) const = 0;
  [[nodiscard]] virtual Verdict judge(std::string_view answer) const = 0;
  /// Durable commits since the start; -1 where it does not say.
  [[nodiscard]] virtual double commits() const { return -1; }
  /// What its data takes on disk; asked after stop().
  [[nodiscard]] virtual std::uint64_t bytes_on_disk() const = 0;

  [[nodiscard]] Usage usage() const { return process_.usage(); }
  [[nodiscard]] double memory_kib() const { return process_.memory_kib(); }
  void stop() { process_.stop(); }

 protected:
  Process process_;
};

}  // namespace holdfast::bench
