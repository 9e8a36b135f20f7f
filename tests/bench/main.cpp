// Runs per second, latency, CPU, memory, disk and commits of the built binary and of the peers that are installed, doing
// the same work: one JSON line per subject, kind of run and concurrency, each the median of its repetitions, each
// repetition on new data. The subjects take turns, so that what else the machine does meets all of them.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "arguments.h"
#include "holdfast.h"
#include "peer.h"
#include "report.h"
#include "tool_server.h"

namespace holdfast::bench {
namespace {

constexpr auto kWithOldLedger = "holdfast, old ledger";

double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

Sample measure(const Plan& plan, const Row& row) {
  ToolServer tools;
  std::unique_ptr<Subject> subject;
  if (row.subject == "holdfast") {
    subject = std::make_unique<Holdfast>(plan.binary, row.tool, tools.port(), "");
  } else if (row.subject == kWithOldLedger) {
    subject = std::make_unique<Holdfast>(plan.binary, row.tool, tools.port(), plan.ledger);
  } else {
    subject = std::make_unique<Peer>(row.subject, plan.packages, tools.port());
  }

  std::vector<Usage> usage;
  const double commits_before = subject->commits();
  LoadResult load = run_load({.port = subject->port(),
                              .request = subject->request(row.steps),
                              .judge = [&](std::string_view answer) { return subject->judge(answer); },
                              .concurrency = row.concurrency,
                              .warm_up = plan.warm_up,
                              .time = plan.time,
                              .meter = [&] { usage.push_back(subject->usage()); }});
  const double memory_kib = subject->memory_kib();
  std::ranges::sort(load.latencies_ms);
  if (load.errors > 0) std::cerr << load.errors << " runs failed; the first: " << load.first_error << '\n';
  Sample s;
  s.runs = load.latencies_ms.size();
  s.errors = load.errors;
  const double runs = std::max<double>(1, static_cast<double>(s.runs));
  const double all = std::max<double>(1, static_cast<double>(load.succeeded));
  s.runs_per_second = static_cast<double>(s.runs) / load.seconds;
  s.p50_ms = percentile(load.latencies_ms, 0.50);
  s.p99_ms = percentile(load.latencies_ms, 0.99);
  s.cpu_ms_per_run = (usage.back().cpu_ms - usage.front().cpu_ms) / runs;
  s.written_bytes_per_run = (usage.back().written_bytes - usage.front().written_bytes) / runs;
  s.memory_mib = memory_kib / 1024;
  s.rss_mib = usage.back().peak_rss_kib / 1024;
  const double commits = subject->commits();
  if (commits >= 0) s.commits_per_run = (commits - std::max(commits_before, 0.0)) / all;
  subject->stop();
  s.disk_bytes_per_run = static_cast<double>(subject->bytes_on_disk()) / all;
  if (tools.requests() < load.succeeded * static_cast<std::uint64_t>(row.steps))
    throw std::runtime_error(row.subject + ": fewer calls than steps that succeeded");
  return s;
}

/// One row of the table: every subject once, then every subject again, and so on. Returns how many runs failed.
std::uint64_t measure_all(const Plan& plan, int steps, std::size_t concurrency) {
  std::vector<Row> rows;
  for (const std::string& tool : plan.tools) rows.push_back({"holdfast", tool, steps, concurrency});
  if (!plan.ledger.empty()) {
    for (const std::string& tool : plan.tools) rows.push_back({kWithOldLedger, tool, steps, concurrency});
  }
  for (const std::string& peer : plan.peers) rows.push_back({peer, "keyed", steps, concurrency});
  std::vector<std::vector<Sample>> samples(rows.size());
  std::uint64_t errors = 0;
  for (int repetition = 0; repetition < plan.repetitions; ++repetition) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      samples[i].push_back(measure(plan, rows[i]));
      errors += samples[i].back().errors;
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) report(rows[i], samples[i]);
  return errors;
}

int run(const Plan& plan) {
  std::vector<Floor> floors;
  std::uint64_t errors = 0;
  for (const int steps : plan.steps) {
    for (const std::size_t concurrency : plan.concurrencies) {
      if (plan.floor) floors.push_back(measure_floor(plan.time / 10));
      errors += measure_all(plan, steps, concurrency);
    }
  }
  if (plan.floor) report(floors);
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main(int count, char** words) {
  try {
    return holdfast::bench::run(holdfast::bench::read_arguments(count, words));
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
