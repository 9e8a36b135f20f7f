#include "api/metrics.h"

#include <catch2/catch.hpp>

using namespace holdfast;

namespace {

struct FixedClock final : Clock {
  Instant at{100'000};
  [[nodiscard]] Instant now() const override { return at; }
};

bool has(const std::string& text, std::string_view line) {
  return text.find(line) != std::string::npos;
}

}  // namespace

TEST_CASE("metrics carry the contract's names and labels") {
  FixedClock clock;
  api::MetricsRegistry metrics(clock);
  CHECK(has(metrics.text(), "holdfast_runs_total{status=\"succeeded\"} 0"));
  metrics.attempt_finished("api", "w", AttemptClass::timeout, 0.3, true);
  metrics.attempt_finished("api", "w", AttemptClass::ok, 0.02, false);
  metrics.run_settled(run::RunStatus::failed);
  metrics.retried(Reason::none, "timeout");
  metrics.circuit("api", "", BreakerState::open, true);
  metrics.committed(0.004, 3);
  metrics.gauges({.queued = 1, .unknown = 2}, 2, Instant{90'000}, std::nullopt, Instant{99'000}, 4096);
  const std::string text = metrics.text();
  CHECK(has(text, "holdfast_runs_total{status=\"failed\"} 1"));
  CHECK(has(text, "holdfast_runs_open{status=\"unknown\"} 2"));
  CHECK(has(text, "holdfast_attempts_total{class=\"timeout\",server=\"api\",tool=\"w\"} 1"));
  CHECK(has(text, "holdfast_tool_timeouts_total{server=\"api\",tool=\"w\"} 1"));
  CHECK(has(text, "holdfast_call_seconds_count{server=\"api\",tool=\"w\"} 2"));
  CHECK(has(text, "holdfast_retries_total{reason=\"timeout\"} 1"));
  CHECK(has(text, "holdfast_circuit_open_total{server=\"api\",tool=\"\"} 1"));
  CHECK(has(text, "holdfast_circuit_state{server=\"api\",tool=\"\"} 2"));
  CHECK(has(text, "holdfast_ledger_commit_seconds_count 1"));
  CHECK(has(text, "holdfast_ledger_batch_size_sum 3"));
  CHECK(has(text, "holdfast_unknown_writes 2"));
  CHECK(has(text, "holdfast_oldest_unknown_seconds 10"));
  CHECK(has(text, "holdfast_oldest_attempt_seconds 0"));
  CHECK(has(text, "holdfast_last_progress_seconds 1"));
  CHECK(has(text, "holdfast_wal_bytes 4096"));
}

TEST_CASE("tool names that submitters make up do not grow the metrics without end") {
  FixedClock clock;
  api::MetricsRegistry metrics(clock);
  for (int i = 0; i < 2500; ++i) metrics.fallback("mcp", "tool" + std::to_string(i));
  CHECK(has(metrics.text(), "holdfast_fallbacks_total{server=\"mcp\",tool=\"other\"} 500"));
}
