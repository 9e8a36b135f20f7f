#pragma once
// The contract's metrics (section 7) on a Prometheus registry.
#include <memory>
#include <string>

#include "holdfast/engine/engine.h"

namespace holdfast::api {

/// Written by the engine's thread, read by any.
class MetricsRegistry final : public engine::Metrics {
 public:
  explicit MetricsRegistry(const Clock& clock);
  ~MetricsRegistry() override;

  void attempt_finished(std::string_view server, std::string_view tool, AttemptClass klass, double seconds,
                        bool timed_out) override;
  void run_settled(run::RunStatus status) override;
  void retried(Reason or_none, std::string_view reason) override;
  void retry_budget_exhausted() override;
  void late_answer() override;
  void fallback(std::string_view server, std::string_view tool) override;
  void circuit(std::string_view server, std::string_view tool, BreakerState state, bool opened) override;
  void committed(double seconds, std::size_t events) override;
  void gauges(const engine::RunsByStatus& open, std::uint64_t unknown_writes,
              std::optional<Instant> oldest_unknown, std::optional<Instant> oldest_attempt,
              Instant last_progress, std::uint64_t wal_bytes) override;

  /// Prometheus text (0.0.4). Ages are as of now.
  [[nodiscard]] std::string text();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::api
