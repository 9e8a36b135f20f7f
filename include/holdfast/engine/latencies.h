#pragma once
// How long each tool's calls took lately, and the deadlines that follow from it.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/ledger/ledger.h"
#include "holdfast/policy/latency_window.h"
#include "holdfast/policy/sized_deadline.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast::engine {

/// What GET /v1/tools says of a tool's speed. Zero samples: never measured, or not in the last eight days.
struct LatencySummary {
  std::uint64_t samples = 0;
  std::uint64_t timeouts = 0;  // among them: calls given up at our own deadline
  Percentile p50, p95, p99;
  std::optional<Duration> suggested;  // empty: too few samples to say
};

/// Thread-safe. Remembers 4,096 tools at most; one beyond that is not measured, and has its ceiling where its
/// deadline is sized. Names come from submissions where a server lists its own tools, so there must be an end.
class Latencies {
 public:
  /// At start: what the ledger kept. Rows that can't be read are left out.
  void load(const std::vector<ledger::LatencyRow>& rows, Instant now);

  /// One call of `policy`'s tool that took `span`. Sample::none changes nothing.
  void add(const ToolPolicy& policy, Sample sample, Duration span, Instant now);
  /// The deadline in force: the policy's where it is fixed. A sized one follows the samples, and is the ceiling
  /// while there are too few.
  [[nodiscard]] Duration deadline(const ToolPolicy& policy, Instant now);
  /// As deadline(), for a look: changes nothing.
  struct InForce {
    Duration deadline{0};
    bool measured = false;  // of a sized one: it comes from samples
  };
  [[nodiscard]] InForce in_force(const ToolPolicy& policy) const;
  [[nodiscard]] LatencySummary summary(std::string_view server, std::string_view tool, Kind kind,
                                       Instant now) const;
  /// Every tool that is remembered.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> tools() const;

  /// The rows that have changed, every ten seconds at most, or `all` of them now. They ride in a batch that is
  /// committed anyway: what a crash loses of them is measured again.
  void collect(std::vector<ledger::LatencyRow>& rows, Instant now, bool all);
  /// A row that collect() gave and that could not be stored: it is given again.
  void store_again(const ledger::LatencyRow& row);

 private:
  struct Tool {
    LatencyWindow window;
    std::optional<SizedDeadline> sized;
    bool grown = true;        // samples since the deadline was sized
    std::uint32_t dirty = 0;  // slots to store, as bits
    Instant looked{};         // when the deadline was sized
  };
  /// Compares names without making strings of them.
  struct ByName {
    using is_transparent = void;
    using View = std::pair<std::string_view, std::string_view>;
    static View view(const std::pair<std::string, std::string>& name) { return {name.first, name.second}; }
    static View view(const View& name) { return name; }
    bool operator()(const auto& a, const auto& b) const { return view(a) < view(b); }
  };
  Tool* remembered(std::string_view server, std::string_view tool);
  void size(Tool& tool, const AutoDeadline& rule, Kind kind, Instant now);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Tool, ByName> tools_;
  Instant next_store_{};
};

}  // namespace holdfast::engine
