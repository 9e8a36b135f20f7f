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
  void checkpoint_if_due() override {
    inner_.checkpoint_if_due();
    if (!disk_.running()) throw Crash{};
  }
  std::uint64_t wal_bytes() const override { return disk_.size(std::string(kDatabase) + "-wal"); }

 private:
  /// A read that finds the storage broken ends the process.
  void answered(const Error* error) override {
    if (error != nullptr && error->code == "storage_broken") throw Crash{};
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
