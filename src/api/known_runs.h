#pragma once
// What can be told of a run without reading the ledger.
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "holdfast/run/run.h"

namespace holdfast::api {

using RunPtr = std::shared_ptr<const run::Run>;

/// The runs that are known to be moving, and the last ones that settled: what pollers ask for again and again. Told
/// by the engine after each commit, so it never says what a crash could take back. Thread-safe. Bounded: 512 settled
/// runs of at most 4 MiB together, the oldest are let go first; the moving ones are those that the engine holds anyway.
class KnownRuns {
 public:
  /// The run is neither settled nor unknown. False may also mean that it is not known here.
  [[nodiscard]] bool moving(std::string_view run_id) const;
  /// A run that settled lately and holds at most `most_bytes`, as committed; nullptr: the ledger has to be asked.
  [[nodiscard]] RunPtr settled(std::string_view run_id, std::size_t most_bytes = SIZE_MAX) const;

  void changed(std::string_view run_id, bool rests);
  void settled(run::Run run);
  /// The run was deleted.
  void forget(std::string_view run_id);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct Kept {
    RunPtr run;
    std::size_t bytes = 0;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_set<std::string, Hash, std::equal_to<>> moving;
    std::unordered_map<std::string, Kept, Hash, std::equal_to<>> settled;
    std::deque<std::string> oldest_first;
    std::size_t bytes = 0;
  };

  [[nodiscard]] Shard& shard_of(std::string_view id) const { return shards_[Hash{}(id) % shards_.size()]; }

  mutable std::array<Shard, 16> shards_;
};

}  // namespace holdfast::api
