#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace holdfast::http {

/// Which connections wait for which topic. Thread-safe.
class Topics {
 public:
  void watch(std::uint64_t connection, std::string_view topic);
  void unwatch(std::uint64_t connection, const std::vector<std::string>& topics);
  /// The watchers of this topic, which no longer watch it. One atomic read when nobody watches anything.
  [[nodiscard]] std::vector<std::uint64_t> take(std::string_view topic);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::unordered_set<std::uint64_t>, Hash, std::equal_to<>> watchers;
  };

  Shard& shard_of(std::string_view topic) { return shards_[Hash{}(topic) % shards_.size()]; }

  std::array<Shard, 16> shards_;
  std::atomic<std::size_t> watched_{0};
};

}  // namespace holdfast::http
