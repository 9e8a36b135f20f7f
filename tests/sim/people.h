#pragma once
// Clients that submit, repeat, cancel, poll and drive open runs; an operator who settles what is unknown.
#include <deque>

#include "holdfast/engine/engine.h"
#include "holdfast/run/plan.h"
#include "sim/oracles.h"

namespace holdfast::sim {

/// What they can reach: nothing while the process is down.
struct Desk {
  engine::Engine* engine = nullptr;
  ledger::Reader* reader = nullptr;
  const Clock* clock = nullptr;
  const tools::Catalog* catalog = nullptr;
  const std::uint64_t* unknown_writes = nullptr;  // as its gauge says
  std::uint64_t life = 0;
  std::function<void()> posted;
};

class People {
 public:
  People(std::uint64_t seed, World& world, Truth& truth, const Town& town, const Swarm& swarm,
         Oracles& oracles, Desk& desk);

  /// Spreads the submissions over the chaos phase and sends the operator on rounds.
  void begin();
  /// The process ended: no answer that was due will come.
  void process_gone();
  void process_back();
  /// From here on everybody wants everything finished.
  void heal();
  void go_home() { home_ = true; }
  /// Nobody waits for an answer or has something left to say.
  [[nodiscard]] bool content() const;
  [[nodiscard]] const std::vector<Submission>& submissions() const { return submissions_; }
  [[nodiscard]] Instant latest_deadline() const { return latest_deadline_; }

 private:
  void write_submission(int number);
  [[nodiscard]] std::string step_text(Submission& submission, int index, int count, bool open);
  void submit(int number);
  void ask_again(int number, std::string digest);
  void submitted(int number, const std::string& run_id, bool replayed);
  void refused(int number, const Error& error);
  void later(int number, Duration least);
  void try_other_body(int number);
  void cancel(int number);
  void poll(int number);
  void drive(int number);
  void finish(int number);
  void round();
  void settle(const ledger::UnknownEntry& entry);
  void force();
  [[nodiscard]] run::PlanContext context() const;

  Dice dice_;
  World& world_;
  Truth& truth_;
  const Town& town_;
  const Swarm& swarm_;
  Oracles& oracles_;
  Desk& desk_;
  std::vector<Submission> submissions_;
  std::map<std::string, run::Resolution> ruled_;  // by write, as acknowledged
  std::set<std::string> left_alone_;              // writes that the operator never settles
  std::set<std::pair<std::string, std::string>> forced_;
  Instant latest_deadline_{};
  bool healed_ = false, home_ = false;
};

}  // namespace holdfast::sim
