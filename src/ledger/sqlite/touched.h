#pragma once
#include <mutex>
#include <string>
#include <unordered_set>

#include "ledger/sqlite/pending.h"

namespace holdfast::ledger::sqlite {

/// Which runs have something committed that is not in the tables. Thread-safe, so that who reads another run waits for nobody.
class Touched {
 public:
  void add(const Batch& batch) {
    const std::lock_guard lock(mutex_);
    for (const run::Run* run : batch.new_runs) add(*run);
    for (const run::Run* run : batch.runs) add(*run);
    for (const auto& of : batch.new_steps) add(*of.run);
    for (const auto& of : batch.steps) add(*of.run);
    for (const auto& [run, attempt] : batch.attempts) add(*run);
    for (const auto& [run, event] : batch.events) add(*run);
  }
  /// Forgets those that are not in `pending` any more.
  void keep_only(const Pending& pending) {
    const std::lock_guard lock(mutex_);
    seqs_.clear();
    ids_.clear();
    for (const auto& [seq, of] : pending.runs()) add(of.run);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    seqs_.clear();
    ids_.clear();
  }
  [[nodiscard]] bool has(std::int64_t seq) const {
    const std::lock_guard lock(mutex_);
    return seqs_.contains(seq);
  }
  [[nodiscard]] bool has(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    return ids_.contains(std::string(id));
  }

 private:
  void add(const run::Run& run) {
    if (seqs_.insert(run.seq).second) ids_.insert(run.id);
  }

  mutable std::mutex mutex_;
  std::unordered_set<std::int64_t> seqs_;
  std::unordered_set<std::string> ids_;
};

}  // namespace holdfast::ledger::sqlite
