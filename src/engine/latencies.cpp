#include "holdfast/engine/latencies.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>

#include "core/canary.h"

namespace holdfast::engine {
namespace {

constexpr std::size_t kMostTools = 4'096;
constexpr Duration kBetweenStores{10'000};
constexpr Duration kLookAgain{60'000};  // also without samples: old ones leave the window

}  // namespace

Latencies::Tool* Latencies::remembered(std::string_view server, std::string_view tool) {
  const auto found = tools_.find(std::pair(server, tool));
  if (found != tools_.end()) return &found->second;
  if (tools_.size() >= kMostTools || tool.empty()) return nullptr;
  return &tools_.try_emplace(std::pair(std::string(server), std::string(tool))).first->second;
}

void Latencies::load(const std::vector<ledger::LatencyRow>& rows, Instant now) {
  const std::scoped_lock lock(mutex_);
  next_store_ = now + kBetweenStores;
  std::size_t unread = 0;
  for (const ledger::LatencyRow& row : rows) {
    Tool* tool = remembered(row.server, row.tool);
    if (tool == nullptr || !tool->window.restore(row.slice)) {
      ++unread;
      continue;
    }
    const bool later = row.sized && (!tool->sized || tool->sized->since < row.sized->since);
    if (later) tool->sized = row.sized;
  }
  for (auto& [name, tool] : tools_) {
    tool.window.age(now);
    if (tool.window.all().samples() == 0) tool.sized.reset();
  }
  if (unread != 0) spdlog::warn("{} stored rows of service times can't be used and are left out", unread);
}

void Latencies::add(const ToolPolicy& policy, Sample sample, Duration span, Instant now) {
  if (sample == Sample::none) return;
  const std::scoped_lock lock(mutex_);
  Tool* tool = remembered(policy.server, policy.tool);
  if (tool == nullptr) return;
  tool->dirty |= 1u << tool->window.add(span, sample == Sample::gave_up, now);
  tool->grown = true;
}

void Latencies::size(Tool& tool, const AutoDeadline& rule, Kind kind, Instant now) {
  if (!tool.grown && now < tool.looked + kLookAgain && tool.looked <= now) return;
  if (!tool.grown) tool.window.age(now);
  tool.grown = false;
  tool.looked = now;
  const std::optional<Duration> wanted = wanted_deadline(tool.window, rule, kind);
  const std::optional<SizedDeadline> before = tool.sized;
  if (wanted)
    tool.sized = resized(tool.sized, *wanted, now);
  else
    tool.sized.reset();
  const bool moved = before.has_value() != tool.sized.has_value() ||
                     (before && before->value != tool.sized->value);
  if (moved) tool.dirty |= 1u << tool.window.newest_slot();
}

Duration Latencies::deadline(const ToolPolicy& policy, Instant now) {
  if (!policy.sized) return policy.deadline;
  {
    const std::scoped_lock lock(mutex_);
    if (Tool* tool = remembered(policy.server, policy.tool)) size(*tool, *policy.sized, policy.kind(), now);
  }
  return in_force(policy).deadline;
}

Latencies::InForce Latencies::in_force(const ToolPolicy& policy) const {
  if (!policy.sized) return {policy.deadline, false};
  const std::scoped_lock lock(mutex_);
  const auto found = tools_.find(std::pair<std::string_view, std::string_view>(policy.server, policy.tool));
  if (found == tools_.end() || !found->second.sized) return {policy.sized->ceiling, false};
  if (canary(Canary::sized_below_its_floor)) return {policy.sized->floor / 2, true};
  // The rule may have changed since the value was stored.
  return {std::clamp(found->second.sized->value, policy.sized->floor, policy.sized->ceiling), true};
}

LatencySummary Latencies::summary(std::string_view server, std::string_view tool, Kind kind,
                                  Instant now) const {
  LatencySummary out;
  LatencyWindow window;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = tools_.find(std::pair(server, tool));
    if (found == tools_.end()) return out;
    window = found->second.window;
  }
  window.age(now);
  out.samples = window.all().samples();
  out.timeouts = window.all().gave_up();
  out.p50 = window.all().percentile(50);
  out.p95 = window.all().percentile(95);
  out.p99 = window.all().percentile(99);
  out.suggested = suggested_deadline(window, kind);
  return out;
}

std::vector<std::pair<std::string, std::string>> Latencies::tools() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, tool] : tools_) out.push_back(name);
  return out;
}

void Latencies::collect(std::vector<ledger::LatencyRow>& rows, Instant now, bool all) {
  const std::scoped_lock lock(mutex_);
  if (!all && now < next_store_) return;
  next_store_ = now + kBetweenStores;
  for (auto& [name, tool] : tools_) {
    for (std::uint32_t dirty = std::exchange(tool.dirty, 0); dirty != 0; dirty &= dirty - 1) {
      LatencySlice slice = tool.window.stored(static_cast<std::uint32_t>(std::countr_zero(dirty)));
      if (slice.start > Instant{}) rows.push_back({name.first, name.second, std::move(slice), tool.sized});
    }
  }
}

void Latencies::store_again(const ledger::LatencyRow& row) {
  const std::scoped_lock lock(mutex_);
  if (Tool* tool = remembered(row.server, row.tool)) tool->dirty |= 1u << row.slice.slot;
  next_store_ = {};
}

}  // namespace holdfast::engine
