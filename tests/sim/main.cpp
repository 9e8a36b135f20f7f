// A campaign of seeds, or one seed to look at.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <spdlog/spdlog.h>
#include <string>

#include "core/canary.h"
#include "sim/pools.h"
#include "sim/simulation.h"

namespace {

using namespace holdfast::sim;

struct Arguments {
  std::uint64_t first = 1, seeds = 100, jobs = 1;
  double seconds = 1e9;
  bool one = false, trace = false, twice = false, goals = false;
  std::string json;
};

/// What one worker tells; fixed size, so that it goes through a pipe in one piece.
struct Report {
  Tally tally;
  std::uint64_t seeds = 0, failed_seed = 0;
  double seconds = 0;
  bool failed = false;
  char why[3'000] = {};
};

/// Processor time of this process: others may be using the machine.
double used() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void fail(Report& report, std::uint64_t seed, const std::string& why) {
  report.failed = true;
  report.failed_seed = seed;
  std::snprintf(report.why, sizeof report.why, "%s", why.c_str());
}

Ending simulate(std::uint64_t seed, Tally& tally, bool trace) {
  Simulation simulation(seed, tally, trace);
  return simulation.run();
}

/// Every `jobs`-th seed from `offset` on, until one fails or time is up.
Report work(const Arguments& arguments, std::uint64_t offset) {
  Report report;
  const double begin = now(), used_before = used();
  for (std::uint64_t i = offset; i < arguments.seeds; i += arguments.jobs) {
    if (now() - begin > arguments.seconds) break;
    const std::uint64_t seed = arguments.first + i;
    const Ending ending = simulate(seed, report.tally, arguments.trace);
    ++report.seeds;
    if (ending.violation) {
      fail(report, seed, ending.violation->oracle + ": " + ending.violation->what);
      break;
    }
    if (!arguments.twice) continue;
    Tally again;
    const Ending second = simulate(seed, again, false);
    if (second.hash == ending.hash && second.digest == ending.digest && !second.violation) continue;
    fail(report, seed, "same_seed_same_history: events " + std::to_string(ending.hash) + " and " +
                           std::to_string(second.hash) + ", database " + std::to_string(ending.digest) + " and " +
                           std::to_string(second.digest));
    break;
  }
  report.seconds = used() - used_before;
  return report;
}

std::vector<Report> work_in_processes(const Arguments& arguments) {
  if (arguments.jobs <= 1) return {work(arguments, 0)};
  std::vector<int> pipes;
  for (std::uint64_t j = 0; j < arguments.jobs; ++j) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(nullptr);
    if (fork() == 0) {
      close(ends[0]);
      const Report report = work(arguments, j);
      const auto* bytes = reinterpret_cast<const char*>(&report);
      for (std::size_t sent = 0; sent < sizeof report;) {
        const ssize_t n = write(ends[1], bytes + sent, sizeof report - sent);
        if (n <= 0) _exit(1);
        sent += static_cast<std::size_t>(n);
      }
      _exit(0);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
  }
  std::vector<Report> reports;
  for (const int end : pipes) {
    Report report;
    auto* bytes = reinterpret_cast<char*>(&report);
    std::size_t got = 0;
    while (got < sizeof report) {
      const ssize_t n = read(end, bytes + got, sizeof report - got);
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    if (got < sizeof report) fail(report, 0, "a worker died without a word");
    reports.push_back(report);
    close(end);
  }
  while (wait(nullptr) > 0) {
  }
  return reports;
}

void write_json(const std::string& path, const Report& total, double seconds) {
  std::ofstream out(path);
  const Tally& t = total.tally;
  out << "{\n  \"seeds\": " << total.seeds << ",\n  \"runs\": " << t.runs << ",\n  \"calls\": " << t.calls
      << ",\n  \"hits\": " << t.hits << ",\n  \"effects\": " << t.effects << ",\n  \"commits\": " << t.commits
      << ",\n  \"lives\": " << t.lives << ",\n  \"rows_proven_at_send\": " << t.power_cut_proofs
      << ",\n  \"seconds\": " << seconds << ",\n  \"failed\": " << (total.failed ? "true" : "false")
      << ",\n  \"faults\": {";
  for (std::size_t i = 0; i < kFaultNames.size(); ++i)
    out << (i ? ", " : "") << "\"" << kFaultNames[i] << "\": " << t.faults[i];
  out << "},\n  \"goals\": {";
  for (std::size_t i = 0; i < kGoalNames.size(); ++i)
    out << (i ? ", " : "") << "\"" << kGoalNames[i] << "\": " << t.goals[i];
  out << "}\n}\n";
}

bool print_goals(const Tally& tally) {
  bool all = true;
  for (std::size_t i = 0; i < kGoalNames.size(); ++i) {
    std::printf("  %10llu  %s%s\n", static_cast<unsigned long long>(tally.goals[i]),
                std::string(kGoalTexts[i]).c_str(), tally.goals[i] == 0 ? "   <-- never" : "");
    all = all && tally.goals[i] > 0;
  }
  return all;
}

Arguments read(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&]() -> std::string {
      if (i + 1 < count) return words[++i];
      std::fprintf(stderr, "%s needs a value\n", word.c_str());
      std::exit(2);
    };
    if (word == "--seeds") arguments.seeds = std::strtoull(value().c_str(), nullptr, 10);
    else if (word == "--first") arguments.first = std::strtoull(value().c_str(), nullptr, 10);
    else if (word == "--seed") {
      arguments.first = std::strtoull(value().c_str(), nullptr, 10);
      arguments.seeds = 1;
      arguments.one = true;
    } else if (word == "--seconds") arguments.seconds = std::strtod(value().c_str(), nullptr);
    else if (word == "--jobs") arguments.jobs = std::strtoull(value().c_str(), nullptr, 10);
    else if (word == "--json") arguments.json = value();
    else if (word == "--trace") arguments.trace = true;
    else if (word == "--twice") arguments.twice = true;
    else if (word == "--goals") arguments.goals = true;
    else {
      std::fprintf(stderr,
                   "usage: sim [--seeds N] [--first S] [--seed S] [--trace] [--twice] [--goals] [--seconds T] "
                   "[--jobs N] [--json FILE]\n");
      std::exit(2);
    }
  }
  return arguments;
}

}  // namespace

int main(int count, char** words) {
  const Arguments arguments = read(count, words);
  if (!holdfast::kHasCanaries && std::getenv("HOLDFAST_CANARY") != nullptr) {
    std::fprintf(stderr, "HOLDFAST_CANARY is set, and this build has no canaries: scripts/prove canaries\n");
    return 2;
  }
  spdlog::set_level(spdlog::level::off);
  // There are no threads here, and nobody asks SQLite what it holds.
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  use_pools_for_sqlite();
  // Each seed frees megabytes that the next one wants again.
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_MMAP_THRESHOLD, 512 << 20);
  const double begin = now();
  Report total;
  for (const Report& report : work_in_processes(arguments)) {
    total.tally.add(report.tally);
    total.seeds += report.seeds;
    total.seconds += report.seconds;
    if (report.failed && (!total.failed || report.failed_seed < total.failed_seed)) {
      total.failed = true;
      total.failed_seed = report.failed_seed;
      std::memcpy(total.why, report.why, sizeof total.why);
    }
  }
  const double seconds = now() - begin;
  const Tally& tally = total.tally;
  const double runs_of_a_seed = arguments.twice ? 2.0 : 1.0;
  std::printf("%llu seeds, %llu runs, %llu calls, %llu effects, %llu commits, %llu lives in %.1f s; %.0f calls per second of processor time\n",
              static_cast<unsigned long long>(total.seeds), static_cast<unsigned long long>(tally.runs),
              static_cast<unsigned long long>(tally.calls), static_cast<unsigned long long>(tally.effects),
              static_cast<unsigned long long>(tally.commits), static_cast<unsigned long long>(tally.lives), seconds,
              static_cast<double>(tally.calls) * runs_of_a_seed / total.seconds);
  bool complete = true;
  if (arguments.goals) complete = print_goals(tally);
  if (!arguments.json.empty()) write_json(arguments.json, total, seconds);
  if (total.failed) {
    std::printf("\nFAILED seed %llu\n%s\n\nreplay: ./scripts/prove sim --seed %llu --trace\n",
                static_cast<unsigned long long>(total.failed_seed), total.why,
                static_cast<unsigned long long>(total.failed_seed));
    return 1;
  }
  if (!complete && !arguments.one) {
    std::printf("\nFAILED: a goal was never reached\n");
    return 1;
  }
  return 0;
}
