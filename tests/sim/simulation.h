#pragma once
// One seed: one history of a whole machine and its world.
#include <optional>

#include "sim/network.h"
#include "sim/people.h"
#include "sim/spy.h"

namespace holdfast::sim {

struct Ending {
  std::uint64_t hash = 0;    // of every event
  std::uint64_t digest = 0;  // of the disk
  std::optional<Violation> violation;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Tally& tally, bool tracing);
  ~Simulation();
  [[nodiscard]] Ending run();

 private:
  struct Life;
  struct Copy;
  void history();
  void boot();
  void try_boot();
  void crash(std::string_view how);
  void process_ends();
  void turn();
  void draw_doom();
  void draw_storage_faults();
  [[nodiscard]] Fault draw_storage_fault();
  void restart_tools();
  void heal();
  void posted();
  void prove_durable(const tools::Call& call, const Op* op);
  [[nodiscard]] bool at_rest() const;
  void last_look();

  // --- upkeep.cpp: what its keepers do ---
  /// From time to time the configuration is exchanged, the wall clock is set, and once a copy of the ledger is made.
  void keep();
  void reload(std::shared_ptr<const tools::Config> next);
  void exchange();
  void draw_drain();
  void stop_gracefully(Duration grace);
  void end_gracefully(std::string_view how);
  void make_backup();
  /// The copy becomes the ledger of a server of its own: what may it send by itself?
  void start_from_backup();

  const std::uint64_t seed_;
  World world_;
  Dice fate_;
  const Swarm swarm_;
  Dice keepers_;
  Town town_;
  tools::Catalog catalog_;
  Truth truth_;
  Oracles oracles_;
  Disk disk_;
  Vfs vfs_;
  Network network_;
  Desk desk_;
  People people_;
  Doom doom_;
  std::unique_ptr<Random> engine_random_;
  std::unique_ptr<Life> life_;
  std::vector<std::unique_ptr<Life>> past_;  // events still name them
  std::optional<Instant> next_turn_;
  Instant committed_at_{};  // the last turn's batch, on a disk that takes its time
  Duration wall_offset_{0};
  std::shared_ptr<const tools::Config> next_config_;  // written, not yet in force
  std::string backup_;
  int reloads_ = 0;
  bool healed_ = false;
  std::uint64_t steps_ = 0;
};

}  // namespace holdfast::sim
