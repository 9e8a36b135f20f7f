#pragma once
// What must hold after every event. Each oracle has a name; a contradiction throws a Violation.
#include <functional>
#include <map>
#include <set>

#include "holdfast/ledger/ledger.h"
#include "holdfast/tools/transport.h"
#include "sim/truth.h"

namespace holdfast::sim {

/// A run as the ledger must have it, by the last commit that was acknowledged.
struct Stored {
  run::Run run;
  std::map<std::pair<std::uint32_t, std::uint32_t>, run::Attempt> attempts;
  std::vector<run::Event> events;
};

class Oracles {
 public:
  Oracles(World& world, Truth& truth, const Town& town) : world_(world), truth_(truth), town_(town) {}

  // --- from the ledger's border ---
  /// A batch is about to be committed: what of it contradicts what is stored or what is true?
  void deciding(const ledger::Batch& batch);
  /// It is durable.
  void committed(const ledger::Batch& batch);
  /// Nobody knows whether it is: the process ended inside.
  void perhaps_committed(const ledger::Batch& batch);
  /// A new life has read the disk: it must be what was acknowledged, with the commit in doubt whole or absent.
  void recovered(ledger::Reader& reader);

  /// `most` open runs from this one on are what was acknowledged; returns how many there were.
  std::uint64_t survive(ledger::Reader& reader, const std::string& from, std::uint64_t most) const;

  // --- from the transport's border ---
  void starting(const tools::Call& call, Op& op, Instant engine_now);
  /// A probe that is no step's call: it has no row.
  void probing(const tools::Call& call);
  void acted(Op& op);
  void handed_over(Op& op, std::size_t send, Shown shown, std::optional<Instant> not_before);
  /// A good answer that may stand in for equal arguments later.
  void answered(const Op& op, std::string_view args, const std::string& result);
  void call_lost_with_process(Op& op, std::size_t send);

  /// A probe leaves, of the submission with this number.
  std::function<void(int)> on_probe = [](int) {};

  // --- at the end ---
  void at_rest(const std::vector<Submission>& submissions, ledger::Reader& reader);

  [[nodiscard]] const std::map<std::string, Stored>& stored() const { return stored_; }
  [[nodiscard]] const Stored* find(const std::string& run_id) const {
    const auto it = stored_.find(run_id);
    return it == stored_.end() ? nullptr : &it->second;
  }
  /// The runs of a client's submission may grow new ones; a run must be somebody's.
  void expect_ops(const std::string& op_name, const Submission* owner) { owners_[op_name] = owner; }
  void new_life() {
    ++life_;
    ++turn_;
    draining_since_.reset();
  }
  /// An operator closes a server's circuit, and with it opens its rate gate.
  void gate_opened(const std::string& server) { gates_.erase(server); }
  /// `now`: by the engine's clock.
  void turn_begins(Instant now);
  /// Nothing that is decided from here on may leave.
  void draining(Instant since) { draining_since_ = since; }
  /// A graceful stop has ended by itself: it has left nothing that is out.
  void drained() const;
  [[nodiscard]] bool is_draining() const { return draining_since_.has_value(); }
  /// Its run was deleted because it was old.
  [[nodiscard]] bool pruned(const std::string& run_id) const { return pruned_.contains(run_id); }
  /// The same, of a run whose client may not know its id.
  [[nodiscard]] bool gone(int number) const { return gone_.contains(number); }
  /// A turn is over: who waits for a slot waits for one that somebody has. `out`: calls by server.
  void slots_are_taken(const std::map<std::string, std::uint32_t>& out) const;
  [[nodiscard]] bool probe_out() const;

 private:
  struct Circuit {
    Breaker row;
    std::uint32_t starts = 0;  // while this half-open generation lasts
    std::string prober;        // the run, step and row of the one that started
    std::uint32_t step = 0, n = 0;
    std::uint64_t since_turn = 0;  // the row
  };
  struct Gate {
    Instant until{};
    std::uint64_t since_turn = 0;
  };
  /// A call on its way out, with the row it leaves on.
  struct Leaving {
    const tools::Call& call;
    Op& op;
    const run::Run& run;
    const run::Attempt& attempt;
    const ToolPolicy& policy;
    Instant now;  // the engine's
    [[nodiscard]] std::string about() const;
  };
  void check_transition(const Stored* before, const run::Run& after);
  void check_step(const run::Run& run, std::uint32_t index, const run::Step* before);
  void check_outcome(const Op& op, const run::Run& run, const run::Step& step, const run::Step* before) const;
  void check_attempt(const run::Run& run, const run::Attempt& attempt);
  void check_verdict(const run::Run& run, const run::Attempt& attempt);
  [[nodiscard]] const run::Attempt& row_of(const tools::Call& call, const Op& op) const;
  void check_gates(const Leaving& leaving);
  void check_limits(const Leaving& leaving);
  void check_write(const Leaving& leaving);
  void check_sized(const Leaving& leaving) const;
  void check_prune(const ledger::Batch& batch);
  [[nodiscard]] std::vector<std::string> named_by(const std::vector<std::int64_t>& seqs) const;
  void check_kept(const run::Step& step, const run::Run& run) const;
  void mark_pruned(const std::string& id);
  void note_circuits(const ledger::Batch& batch);
  void circuits_are(ledger::Reader& reader);
  void check_probes(const ledger::Batch& batch) const;
  void note_goals(const Stored* before, const run::Run& run);
  void record(Op& op, const run::Attempt& attempt);
  void apply(const ledger::Batch& batch);
  void compare(ledger::Reader& reader, const std::string& id, const Stored& expected,
               const std::string& place) const;
  [[nodiscard]] bool same(ledger::Reader& reader, const std::string& id, const Stored& expected) const;
  void check_events(const std::string& id, const Stored& stored) const;
  void check_end(const std::string& id, const Stored& stored);
  Op* op_of(const run::Step& step) { return truth_.find(Truth::name_in(step.spec.args)); }

  const ledger::Batch* deciding_ = nullptr;  // while its transitions are judged
  World& world_;
  Truth& truth_;
  const Town& town_;
  std::map<std::string, Stored> stored_;
  std::map<std::string, Stored> perhaps_;  // as they would be with the commit in doubt
  std::vector<std::pair<Op*, run::Attempt>> perhaps_recorded_;
  std::vector<std::string> perhaps_pruned_;
  bool in_doubt_ = false;
  std::set<std::string> pruned_;
  std::set<int> gone_;
  struct Kept {
    std::string result;
    Instant at{};
  };
  std::map<std::string, std::vector<Kept>> answers_;  // good answers, by server, tool and what was asked
  std::vector<std::pair<std::string, std::string>> handed_;  // answers that the next turn takes
  Instant now_{};
  std::optional<Instant> draining_since_;
  std::set<std::string> touched_;  // since the last life began
  std::map<std::pair<std::string, std::string>, Circuit> circuits_;
  std::map<std::string, Gate> gates_;
  std::map<std::string, const Submission*> owners_;
  std::uint64_t life_ = 0, turn_ = 0;
  std::map<std::string, std::uint64_t> spent_in_life_;  // run id -> life of its last spending
};

}  // namespace holdfast::sim
