#pragma once
// The real ledger, watched at its border, with places to die at.
#include "sim/oracles.h"
#include "support/forwarding_ledger.h"
#include "support/sim_vfs.h"

namespace holdfast::sim {

/// How this life is going to end.
struct Doom {
  enum class Kind { none, before_commit, after_commit, at_send, power_cut_at_operation, kill_at_operation, between_turns };
  Kind kind = Kind::none;
  std::uint64_t countdown = 0;
};

class Spy final : public testing::ForwardingLedger {
 public:
  Spy(ledger::Ledger& inner, Disk& disk, World& world, Oracles& oracles, Doom& doom)
      : ForwardingLedger(inner), disk_(disk), world_(world), oracles_(oracles), doom_(doom) {}

  Result<ledger::Committed> commit(ledger::Batch& batch) override;
  Result<Open> load_open() override { return heed(inner_.load_open()); }
  Result<std::optional<run::Run>> load(std::string_view id) override { return heed(inner_.load(id)); }
  Result<std::optional<Submission>> find_submission(std::string_view owner, std::string_view key) override {
    return heed(inner_.find_submission(owner, key));
  }
  Result<std::optional<run::Attempt>> find_attempt(std::int64_t run_seq, std::uint32_t step,
                                                   std::uint32_t n) override {
    return heed(inner_.find_attempt(run_seq, step, n));
  }
  Result<std::optional<ledger::CachedAnswer>> find_answer(std::string_view server, std::string_view tool,
                                                          std::string_view arguments) override {
    return heed(inner_.find_answer(server, tool, arguments));
  }
  Result<PruneSlice> prunable(Instant ended_before, std::int64_t after_seq, std::uint32_t most) override {
    return heed(inner_.prunable(ended_before, after_seq, most));
  }
  void checkpoint_if_due() override {
    inner_.checkpoint_if_due();
    if (!disk_.running()) throw Crash{};
  }
  std::uint64_t wal_bytes() const override { return disk_.size(std::string(kDatabase) + "-wal"); }

 private:
  /// A read that finds the storage broken ends the process.
  template <class T>
  static Result<T> heed(Result<T> read) {
    if (!read && read.error().code == "storage_broken") throw Crash{};
    return read;
  }
  [[nodiscard]] bool dies(Doom::Kind kind) {
    return doom_.kind == kind && (doom_.countdown == 0 || --doom_.countdown == 0);
  }
  Disk& disk_;
  World& world_;
  Oracles& oracles_;
  Doom& doom_;
  bool failed_before_ = false;
};

}  // namespace holdfast::sim
