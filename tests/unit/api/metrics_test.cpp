#include "api/metrics.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

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

TEST_CASE("each metric of the contract is there, with exactly its labels, after what touches it") {
  FixedClock clock;
  api::MetricsRegistry metrics(clock);
  metrics.attempt_finished("api", "w", AttemptClass::timeout, 0.3, true);
  for (const auto status : {run::RunStatus::succeeded, run::RunStatus::failed, run::RunStatus::cancelled})
    metrics.run_settled(status);
  metrics.retried(Reason::none, "timeout");
  metrics.retry_budget_exhausted();
  metrics.late_answer();
  metrics.fallback("api", "r");
  metrics.circuit("api", "w", BreakerState::half_open, false);
  metrics.committed(0.004, 3);
  metrics.gauges({}, 0, std::nullopt, std::nullopt, Instant{99'000}, 4096);
  std::map<std::string, std::set<std::string>> seen;
  std::istringstream lines(metrics.text());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::string name = line.substr(0, line.find_first_of("{ "));
    for (const char* suffix : {"_bucket", "_sum", "_count"})
      if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
    std::string labels;
    if (line.find('{') != std::string::npos)
      for (auto at = line.find('{') + 1; at != std::string::npos && line[at - 1] != '}';) {
        const auto end = line.find('=', at);
        const auto label = line.substr(at, end - at);
        if (label != "le") labels += (labels.empty() ? "" : ",") + label;
        at = line.find_first_of(",}", line.find('"', end + 2)) + 1;
      }
    seen[name].insert(labels);
  }
  const std::map<std::string, std::set<std::string>> contract{
      {"holdfast_runs_total", {"status"}},
      {"holdfast_runs_open", {"status"}},
      {"holdfast_attempts_total", {"class,server,tool"}},
      {"holdfast_tool_timeouts_total", {"server,tool"}},
      {"holdfast_call_seconds", {"server,tool"}},
      {"holdfast_circuit_open_total", {"server,tool"}},
      {"holdfast_circuit_state", {"server,tool"}},
      {"holdfast_unknown_writes", {""}},
      {"holdfast_oldest_unknown_seconds", {""}},
      {"holdfast_oldest_attempt_seconds", {""}},
      {"holdfast_last_progress_seconds", {""}},
      {"holdfast_retries_total", {"reason"}},
      {"holdfast_retry_budget_exhausted_total", {""}},
      {"holdfast_late_answers_total", {""}},
      {"holdfast_fallbacks_total", {"server,tool"}},
      {"holdfast_ledger_commit_seconds", {""}},
      {"holdfast_ledger_batch_size", {""}},
      {"holdfast_wal_bytes", {""}},
  };
  CHECK(seen == contract);
}

TEST_CASE("tool names that submitters make up do not grow the metrics without end") {
  FixedClock clock;
  api::MetricsRegistry metrics(clock);
  for (int i = 0; i < 2500; ++i) metrics.fallback("mcp", "tool" + std::to_string(i));
  CHECK(has(metrics.text(), "holdfast_fallbacks_total{server=\"mcp\",tool=\"other\"} 500"));
}
