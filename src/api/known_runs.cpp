#include "api/known_runs.h"

namespace holdfast::api {
namespace {

constexpr std::size_t kRunsPerShard = 32;
constexpr std::size_t kBytesPerShard = 256 * 1024;

/// Roughly what a run holds in memory: the texts that can be long are counted, the short ones are in the structures.
std::size_t bytes_of(const run::Run& run) {
  std::size_t bytes = sizeof run + run.labels.size() + run.warnings.size() + run.result.size();
  for (const run::Step& step : run.steps) {
    bytes += sizeof step + step.spec.args.size() + step.result.size() + step.detail.size() + step.target.size();
    if (step.write) bytes += step.write->request.head.size() + step.write->request.body.size();
  }
  return bytes;
}

}  // namespace

bool KnownRuns::moving(std::string_view run_id) const {
  const Shard& shard = shard_of(run_id);
  const std::lock_guard lock(shard.mutex);
  return shard.moving.contains(run_id);
}

RunPtr KnownRuns::settled(std::string_view run_id, std::size_t most_bytes) const {
  const Shard& shard = shard_of(run_id);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.settled.find(run_id);
  return found == shard.settled.end() || found->second.bytes > most_bytes ? nullptr : found->second.run;
}

void KnownRuns::changed(std::string_view run_id, bool rests) {
  Shard& shard = shard_of(run_id);
  const std::lock_guard lock(shard.mutex);
  if (!rests) {
    if (!shard.moving.contains(run_id)) shard.moving.emplace(run_id);
  } else if (const auto found = shard.moving.find(run_id); found != shard.moving.end()) {
    shard.moving.erase(found);
  }
}

void KnownRuns::forget(std::string_view run_id) {
  Shard& shard = shard_of(run_id);
  RunPtr let_go;  // freed outside the lock
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.settled.find(run_id);
  if (found == shard.settled.end()) return;
  shard.bytes -= found->second.bytes;
  let_go = std::move(found->second.run);
  shard.settled.erase(found);
  std::erase(shard.oldest_first, run_id);
}

void KnownRuns::settled(run::Run run) {
  const std::size_t bytes = bytes_of(run);
  const std::string id = run.id;
  Shard& shard = shard_of(id);
  std::vector<RunPtr> let_go;  // freed outside the lock
  const std::lock_guard lock(shard.mutex);
  if (const auto found = shard.settled.find(id); found != shard.settled.end()) {  // late evidence came to it
    shard.bytes -= found->second.bytes;
    shard.settled.erase(found);
    std::erase(shard.oldest_first, id);
  }
  if (bytes > kBytesPerShard) return;
  shard.bytes += bytes;
  shard.settled.emplace(id, Kept{std::make_shared<const run::Run>(std::move(run)), bytes});
  shard.oldest_first.push_back(id);
  while (shard.settled.size() > kRunsPerShard || shard.bytes > kBytesPerShard) {
    const auto oldest = shard.settled.find(shard.oldest_first.front());
    shard.bytes -= oldest->second.bytes;
    let_go.push_back(std::move(oldest->second.run));
    shard.settled.erase(oldest);
    shard.oldest_first.pop_front();
  }
}

}  // namespace holdfast::api
