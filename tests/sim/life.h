#pragma once
// One life of the process, and its only number that somebody looks at.
#include "sim/simulation.h"

namespace holdfast::sim {

class Gauges final : public engine::Metrics {
 public:
  void attempt_finished(std::string_view, std::string_view, AttemptClass, double, bool) override {}
  void run_settled(run::RunStatus) override {}
  void retried(Reason, std::string_view) override {}
  void retry_budget_exhausted() override {}
  void late_answer() override {}
  void fallback(std::string_view, std::string_view) override {}
  void circuit(std::string_view, std::string_view, BreakerState, bool) override {}
  void committed(double, std::size_t) override {}
  void gauges(const engine::RunsByStatus&, std::uint64_t unknown, std::optional<Instant>, std::optional<Instant>, Instant,
              std::uint64_t) override {
    unknown_writes = unknown;
  }
  std::uint64_t unknown_writes = 0;
};

class NoObserver final : public engine::Observer {
 public:
  void run_changed(std::string_view, bool) override {}
  void run_left(run::Run) override {}
  void run_pruned(std::string_view) override {}
};

/// One life of the process.
struct Simulation::Life {
  Life(Simulation& sim, Instant wall, int drift_ppm)
      : clock(sim.world_, wall, drift_ppm),
        transport(sim.world_, sim.truth_, sim.town_, sim.oracles_, sim.network_, clock,
                  {[&sim](const tools::Call& call, const Op* op) {
                     if (sim.doom_.kind == Doom::Kind::at_send && --sim.doom_.countdown == 0) {
                       sim.world_.tally.reached(Goal::crash_between_commit_and_send);
                       throw Crash{};
                     }
                     sim.prove_durable(call, op);
                   },
                   [&sim] { sim.posted(); }}) {}
  LifeClock clock;
  Transport transport;
  Gauges metrics;
  NoObserver observer;
  ledger::Opened opened;
  std::optional<Spy> spy;
  std::optional<engine::Engine> engine;
};

}  // namespace holdfast::sim
