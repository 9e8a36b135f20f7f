#pragma once
// A small world for the sweep: the real engine and ledger on the simulated disk, tools that only count, and a client that repeats what was not
// answered. Everything in it is repeatable, so that the same fault can be put at each I/O operation in turn.
#include <map>
#include <optional>
#include <set>

#include "holdfast/engine/engine.h"
#include "support/sim_vfs.h"
#include "unit/engine/engine_support.h"

namespace holdfast::sweep {

/// The process is gone: the power was cut, or the ledger said that it can't be trusted any more.
struct Died {};

/// The marker of calls that belong to no step alone.
inline const std::string kShared = "shared";

/// What a tool has seen: the truth.
struct Hit {
  std::string tool, key, body;
  AttemptKind kind;
};

class World;

class Tools final : public tools::Transport {
 public:
  explicit Tools(World& world) : world_(world) {}
  void start(tools::Call call) override;
  void cancel(tools::CallId id) override;
  void stop() override {}

 private:
  World& world_;
};

/// Ends the process where the real one would end, and where the disk is dead.
class Mortal final : public testing::ForwardingLedger {
 public:
  Mortal(ledger::Ledger& inner, World& world) : ForwardingLedger(inner), world_(world) {}
  Result<ledger::Committed> commit(ledger::Batch& batch) override;
  void checkpoint_if_due() override;
  std::uint64_t wal_bytes() const override { return 0; }

 private:
  void answered(const Error* error) override;
  World& world_;
};

struct Outstanding {
  tools::CallId id;
  std::string marker, tool;
};

/// What a world begins with.
struct Beginning {
  std::string image;                        // the database file; empty: none
  std::map<std::string, std::string> runs;  // that it holds: submit key -> id
};

class World {
 public:
  World(Beginning beginning, ledger::sqlite::Tuning tuning, std::optional<Duration> retention = std::nullopt);
  ~World();

  // --- what scripts do; each is repeated by the harness when the process dies in it ---
  void submit(const std::string& key, const std::string& body);
  void step(const std::string& run, const std::string& step);
  void finish(const std::string& run);
  void cancel(const std::string& run);
  void resolve(const std::string& run, std::size_t step, run::Resolution verdict);
  void force(bool open);
  /// The outstanding call of this marker (`key/step`) comes to an end. None outstanding: nothing.
  void answer(const std::string& marker, const Evidence& evidence);
  void late(const std::string& marker);  // of the call that was answered last
  void sleep(Duration span);
  void kill();  // the process, not the power

  // --- the harness ---
  void start();
  /// Carries out one action, through as many deaths as it takes.
  void carry_out(const std::function<void(World&)>& action);
  /// Faults are over, tools answer, an operator settles by what the tools saw: until every run is settled.
  void heal();
  void shut();  // closes the database in peace

  sim::Disk disk;
  sim::Vfs vfs;
  ledger::sqlite::Tuning tuning;
  std::optional<Duration> retention;
  std::optional<std::uint64_t> cut_again;  // once, at this operation of the life that follows the first power cut
  testing::HandClock clock;
  std::map<std::string, std::vector<Hit>> hits;  // by marker
  std::vector<Outstanding> outstanding;
  std::map<std::string, std::string> runs;  // submit key -> id, as acknowledged
  std::map<std::string, Instant> since;     // when each was acknowledged
  std::set<std::string> doubted;            // runs with a plain write that was lost and has no verdict yet
  std::set<std::string> kinds;              // of what was committed: the lists of ledger::Batch
  std::set<std::string> cancelled, finished, steps, verdicts;  // acknowledged; steps: key/step, verdicts: write ids
  tools::CallId last_answered = 0;
  int lives = 0;
  std::function<void(const std::string& marker)> at_send;  // looks at the disk in the moment of sending

 private:
  struct Life;
  template <class T, class Post>
  Result<T> insist(Post post);
  void turn();
  bool all_settled();
  std::vector<ledger::UnknownEntry> unknowns();
  std::unique_ptr<Life> life_;
};

[[nodiscard]] Evidence good(std::string result = "{\"ok\":true}");
[[nodiscard]] Evidence lost();
[[nodiscard]] Evidence status(int status, std::string retry_after = {});

}  // namespace holdfast::sweep
