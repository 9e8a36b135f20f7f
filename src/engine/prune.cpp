// Settled runs leave the ledger when their retention is over, a slice at a time.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/canary.h"
#include "engine/loop.h"

namespace holdfast::engine {

namespace {

constexpr std::uint32_t kSliceRows = 200;
constexpr Duration kBetweenSlices{50};
constexpr Duration kMostPatience{5'000};  // who has work to do all the time prunes beside it after this
constexpr Duration kShortestPause{1'000}, kLongestPause{3'600'000};

/// A walk per twenty-fourth of the retention: what is due leaves soon after, and walking costs nothing to speak of.
Duration pause_between_walks(Duration retention) {
  return std::clamp(retention / 24, kShortestPause, kLongestPause);
}

/// Does the tool still know a key of this run? Its run is what tells a client that asks again. A tool that the configuration
/// has lost is taken to have kept keys as long as one that says nothing.
bool key_in_use(const tools::Catalog& catalog, const ledger::Ledger::Prunable& run, Instant now) {
  if (canary(Canary::pruned_with_its_key)) return false;
  return std::ranges::any_of(run.keys, [&](const ledger::Ledger::Prunable::SentKey& sent) {
    const tools::ToolConfig* tool = catalog.find(sent.server, sent.tool);
    const Duration kept = tool != nullptr && tool->policy.key ? tool->policy.key->retention : KeyRule{}.retention;
    return now < sent.last_sent_at + kept;
  });
}

}  // namespace

void Engine::Impl::prune(bool idle) {
  const std::optional<Duration> retention = catalog.config().retention;
  if (!retention || now < walk.next || (!idle && now < walk.next + kMostPatience)) return;
  const auto may_go = [this](const ledger::Ledger::Prunable& run) {
    return find(run.id) == nullptr && !key_in_use(catalog, run, now);
  };
  auto slice = ledger.prunable(canary(Canary::pruned_too_early) ? now : now - *retention, walk.after, kSliceRows, may_go);
  if (!slice) {
    spdlog::warn("old runs can't be looked for: {}", slice.error().message);
    walk = {.next = now + kLongestPause};
    return;
  }
  for (const ledger::Ledger::Prunable& run : slice->runs) {
    prune_seqs.push_back(run.seq);
    walk.ids.push_back(run.id);
  }
  walk.deleted += prune_seqs.size();
  walk.after = slice->next_after;
  walk.next = now + kBetweenSlices;
  if (!slice->at_end) return;
  if (walk.deleted > 0)
    spdlog::info("deleted settled runs that ended more than {} ago: {}", format_duration(*retention), walk.deleted);
  walk.next = now + pause_between_walks(*retention);
  walk.after = 0;
  walk.deleted = 0;
}

void Engine::Impl::pruned() {
  for (const std::string& id : walk.ids) observer.run_pruned(id);
  walk.ids.clear();
  prune_seqs.clear();
}

}  // namespace holdfast::engine
