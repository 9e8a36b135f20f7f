#pragma once
// A small world for the sweep: the real engine and ledger on the simulated disk, tools that only count, and a client that repeats what was not
// answered. Everything in it is repeatable, so that the same fault can be put at each I/O operation in turn.
#include <map>
#include <set>

#include "holdfast/engine/engine.h"
#include "support/sim_vfs.h"
#include "unit/engine/engine_support.h"

namespace holdfast::sweep {

/// The process is gone: the power was cut, or the ledger said that it can't be trusted any more.
struct Died {};

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
  Mortal(ledger::Ledger& inner, sim::Disk& disk) : ForwardingLedger(inner), disk_(disk) {}
  void checkpoint_if_due() override;
  std::uint64_t wal_bytes() const override { return 0; }

 private:
  void answered(const Error* error) override;
  sim::Disk& disk_;
};

struct Outstanding {
  tools::CallId id;
  std::string marker, tool;
};

class World {
 public:
  /// `image`: the database file to begin with; empty: none.
  World(std::string image, ledger::sqlite::Tuning tuning);
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
  void list();  // as a reader does: it wants to see all that was committed
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
  testing::HandClock clock;
  std::map<std::string, std::vector<Hit>> hits;  // by marker
  std::vector<Outstanding> outstanding;
  std::map<std::string, std::string> runs;  // submit key -> id, as acknowledged
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
