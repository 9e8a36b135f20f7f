// Runs per second, latency, memory, disk and commits of the built binary: one JSON line per kind of run and
// concurrency, each the median of its repetitions, each repetition on a new database.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <stdexcept>

#include "load.h"
#include "service.h"
#include "tool_server.h"

namespace holdfast::bench {
namespace {

struct Plan {
  std::string binary;
  std::vector<std::size_t> concurrencies{1, 16, 64, 256};
  std::vector<std::string> tools{"plain", "keyed"};
  std::vector<int> steps{1, 5};
  int repetitions = 3;
  std::chrono::milliseconds time{5000};
};

struct Sample {
  double runs_per_second = 0, p50_ms = 0, p99_ms = 0, rss_mib = 0, disk_bytes_per_run = 0,
         commits_per_run = 0;
  std::uint64_t runs = 0, errors = 0;
};

std::string submission(const std::string& tool, int steps) {
  std::string body = R"({"name":"bench","steps":[)";
  for (int i = 1; i <= steps; ++i) {
    if (i > 1) body += ',';
    body += R"({"id":"s)" + std::to_string(i) + R"(","server":"tool","tool":")" + tool +
            R"(","args":{"customer":"c-1042","amount":1299,"memo":"benchmark"}})";
  }
  return body + "]}";
}

double percentile(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

Sample measure(const Plan& plan, const std::string& tool, int steps, std::size_t concurrency) {
  ToolServer tools;
  Service service(plan.binary, tools.port());
  constexpr auto kCommits = "holdfast_ledger_commit_seconds_count";
  const double commits_before = service.metric(kCommits);
  LoadResult load = run_load({service.client_port(), submission(tool, steps), concurrency, plan.time});
  std::ranges::sort(load.latencies_ms);
  Sample s;
  s.runs = load.latencies_ms.size();
  s.errors = load.errors;
  if (load.errors > 0) std::cerr << load.errors << " runs failed; the first: " << load.first_error << '\n';
  const double runs = std::max<double>(1, static_cast<double>(s.runs));
  s.runs_per_second = static_cast<double>(s.runs) / load.seconds;
  s.p50_ms = percentile(load.latencies_ms, 0.50);
  s.p99_ms = percentile(load.latencies_ms, 0.99);
  s.rss_mib = static_cast<double>(service.peak_rss_kib()) / 1024;
  const double commits = service.metric(kCommits);
  s.commits_per_run = commits < 0 ? -1 : (commits - std::max(commits_before, 0.0)) / runs;
  service.stop();
  s.disk_bytes_per_run = static_cast<double>(service.bytes_on_disk()) / runs;
  const std::uint64_t sent = tools.requests();
  if (sent < s.runs * static_cast<std::uint64_t>(steps))
    throw std::runtime_error("fewer calls than steps that succeeded");
  return s;
}

template <class Member>
auto median(const std::vector<Sample>& samples, Member member) {
  std::vector<std::remove_cvref_t<decltype(samples.front().*member)>> values;
  for (const Sample& s : samples) values.push_back(s.*member);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::uint64_t report(const std::vector<Sample>& samples, const std::string& tool, int steps,
                     std::size_t concurrency) {
  std::uint64_t errors = 0;
  for (const Sample& s : samples) errors += s.errors;
  std::printf(
      "{\"tool\":\"%s\",\"steps\":%d,\"concurrency\":%zu,\"repetitions\":%zu,\"runs\":%llu,\"errors\":%llu,"
      "\"runs_per_second\":%.1f,\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"rss_mib\":%.1f,\"disk_bytes_per_run\":%."
      "0f,",
      tool.c_str(), steps, concurrency, samples.size(),
      static_cast<unsigned long long>(median(samples, &Sample::runs)),
      static_cast<unsigned long long>(errors), median(samples, &Sample::runs_per_second),
      median(samples, &Sample::p50_ms), median(samples, &Sample::p99_ms), median(samples, &Sample::rss_mib),
      median(samples, &Sample::disk_bytes_per_run));
  const double commits = median(samples, &Sample::commits_per_run);
  if (commits < 0) std::puts("\"commits_per_run\":null}");
  if (commits >= 0) std::printf("\"commits_per_run\":%.3f}\n", commits);
  std::fflush(stdout);
  return errors;
}

Plan read_arguments(int count, char** words) {
  Plan plan;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--binary" && i + 1 < count) {
      plan.binary = words[++i];
    } else if (word == "--quick") {
      plan.repetitions = 1;
      plan.time = std::chrono::milliseconds(1500);
    } else if (word == "--smoke") {
      plan.repetitions = 1;
      plan.time = std::chrono::milliseconds(500);
      plan.concurrencies = {1, 16};
      plan.tools = {"keyed"};
    } else if (word == "--tool" && i + 1 < count) {
      plan.tools = {words[++i]};
    } else if (word == "--steps" && i + 1 < count) {
      plan.steps = {std::stoi(words[++i])};
    } else if (word == "--concurrency" && i + 1 < count) {
      plan.concurrencies = {std::stoul(words[++i])};
    } else if (word == "--seconds" && i + 1 < count) {
      plan.time = std::chrono::seconds(std::stoi(words[++i]));
    } else if (word == "--repetitions" && i + 1 < count) {
      plan.repetitions = std::stoi(words[++i]);
    } else {
      throw std::runtime_error("unknown argument " + word);
    }
  }
  if (plan.binary.empty())
    throw std::runtime_error(
        "usage: holdfast_bench --binary FILE [--quick|--smoke] [--tool plain|keyed] [--steps N] [--concurrency N] "
        "[--seconds N] [--repetitions N]");
  return plan;
}

int run(const Plan& plan) {
  std::uint64_t errors = 0;
  for (const std::string& tool : plan.tools) {
    for (const int steps : plan.steps) {
      for (const std::size_t concurrency : plan.concurrencies) {
        std::vector<Sample> samples;
        for (int i = 0; i < plan.repetitions; ++i) samples.push_back(measure(plan, tool, steps, concurrency));
        errors += report(samples, tool, steps, concurrency);
      }
    }
  }
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
