#include "http/topics.h"

namespace holdfast::http {

void Topics::watch(std::uint64_t connection, std::string_view topic) {
  Shard& shard = shard_of(topic);
  {
    const std::scoped_lock lock(shard.mutex);
    auto found = shard.watchers.find(topic);
    if (found == shard.watchers.end()) found = shard.watchers.emplace(std::string(topic), 0).first;
    if (found->second.insert(connection).second) watched_.fetch_add(1);
  }
  // Whoever looks at the state after this sees the change, or its wake sees the count.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Topics::unwatch(std::uint64_t connection, const std::vector<std::string>& topics) {
  for (const std::string& topic : topics) {
    Shard& shard = shard_of(topic);
    const std::scoped_lock lock(shard.mutex);
    const auto found = shard.watchers.find(topic);
    if (found == shard.watchers.end()) continue;
    watched_.fetch_sub(found->second.erase(connection));
    if (found->second.empty()) shard.watchers.erase(found);
  }
}

std::vector<std::uint64_t> Topics::take(std::string_view topic) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (watched_.load() == 0) return {};
  Shard& shard = shard_of(topic);
  const std::scoped_lock lock(shard.mutex);
  const auto found = shard.watchers.find(topic);
  if (found == shard.watchers.end()) return {};
  std::vector<std::uint64_t> watchers(found->second.begin(), found->second.end());
  watched_.fetch_sub(watchers.size());
  shard.watchers.erase(found);
  return watchers;
}

}  // namespace holdfast::http
