#pragma once
// The loop's state. Everything here is touched by the engine's thread only, but for the inbox and the two
// flags.
#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/gates.h"
#include "engine/inbox.h"
#include "engine/outgoing.h"
#include "engine/resting.h"
#include "holdfast/core/ids.h"
#include "holdfast/engine/engine.h"
#include "holdfast/engine/latencies.h"
#include "holdfast/run/machine.h"

namespace holdfast::engine {

/// A run in memory, with what this turn changed.
struct Live {
  run::Run run;
  run::Changes changes;
  std::vector<run::Attempt> attempts;        // rows of this turn
  std::vector<std::uint32_t> new_steps;      // added to an open run this turn
  std::vector<AttemptClass> last_class;      // of each step's last call in this life
  std::vector<run::FrozenRequest> requests;  // of reads, by step; a write's is in the ledger
  bool is_new = false;
  bool dirty = false;
  std::uint32_t flights = 0;
  bool queued = false;          // it stands, or stood, in a queue of the gates
  std::optional<Instant> wake;  // its place in the timers
  run::RunStatus counted = run::RunStatus::queued;
  bool is_counted = false;
  std::vector<std::int64_t> unknown_since;  // as counted in the gauges
};

/// A call that is out.
struct Flight {
  Live* live = nullptr;
  std::uint32_t step = 0;
  run::Attempt attempt;
  const ToolPolicy* called =
      nullptr;  // rules of the tool that was called: the step's, its check's or its fallback's
  Kind kind = Kind::plain;
  Permit permit;
  bool held_slot = false;
  std::optional<std::multiset<std::int64_t>::iterator> age;
};

/// A probe that is no call of a step: it has no attempt row. Its record is the circuit's, stored before it
/// leaves with the lease that it holds.
struct Probe {
  Permit permit;
  const ToolPolicy* asked = nullptr;
};

/// An attempt that was given up and may still be answered.
struct Lingering {
  std::string run_id;
  std::uint32_t step = 0;
  std::uint32_t n = 0;
};

/// Since when each of its open unknown writes is one.
[[nodiscard]] std::vector<std::int64_t> open_unknowns(const run::Run& run);

/// The step's arguments with every reference filled in. Error `bad_reference`.
[[nodiscard]] Result<std::string> resolved_args(const run::Run& run, const run::Step& step);

struct Engine::Impl {
  Impl(Engine& owner, const Clock& clock, Random& random, ledger::Ledger& ledger,
       const tools::Catalog& catalog, tools::Transport& transport, Observer& observer, Metrics& metrics,
       Options options);

  // --- loop.cpp ---
  Result<void> load();
  void distrust_restored(Instant newest_known);
  std::optional<Instant> turn();
  void run_thread();
  void advance(Live& live);
  void begin_drain();
  void drain();
  void mark(Live& live);
  void schedule(Live& live);
  /// Every way to an open run goes through here: one at rest is woken. nullptr: it is not open.
  Live* find(std::string_view run_id);
  void rest(Live& live);
  /// A run that is not open any more, for the time of one command; nullptr when it does not exist.
  Result<Live*> find_any(std::string_view run_id);
  /// Settled, committed and with no call out: the ledger has it.
  void let_go(Live& live);

  // --- dispatch.cpp ---
  void start_step(Live& live, std::uint32_t step, bool from_queue = false);
  [[nodiscard]] AttemptClass last_class(const Live& live, std::uint32_t step);
  void ask_checks(Live& live);
  void start_check(Live& live, std::uint32_t step, bool from_queue = false);
  [[nodiscard]] Result<void> freeze(Live& live, std::uint32_t step, const ToolPolicy& policy);
  void launch(Live& live, std::uint32_t step, AttemptKind kind, const ToolPolicy& called, Kind repeat,
              run::FrozenRequest request, const CallDeadline& deadline, Permit permit);
  void closed_circuit(Live& live, std::uint32_t step, const ToolPolicy& policy, Kind kind, Verge verge);
  const ToolPolicy& policy_of(const run::Step& step) const;

  // --- absorb.cpp ---
  void call_finished(tools::CallId id, Evidence evidence);
  void call_late(tools::CallId id, Evidence evidence);
  void end_flight(Live& live, std::uint32_t step, const Evidence& evidence, Flight& flight);
  void absorb_crash(Live& live, const run::Attempt& attempt);

  // --- waiters.cpp ---
  void serve_waiters();
  void serve_slot(const Waiter& waiter);
  /// A server's rate gate was opened by hand: who waits for it leaves.
  void release_gate(std::string_view server);

  // --- probe.cpp ---
  void send_probe(Permit permit);
  void probe_finished(tools::CallId id, const Evidence& evidence);

  // --- fallback.cpp ---
  void start_fallback(Live& live, std::uint32_t step, bool from_queue = false);
  void ask_instead(Live& live, std::uint32_t step, const FallbackRule& rule, bool from_queue);
  void answer_from_kept(run::Turn& turn, std::uint32_t step, const ToolPolicy& policy);
  /// A good answer of a tool with a `cached` fallback is stored with the batch that settles the call.
  void keep_answer(const Flight& flight, const Evidence& evidence, const Judgement& judgement);
  Result<std::optional<ledger::CachedAnswer>> find_kept(const ToolPolicy& policy, std::string_view args);
  // --- prune.cpp ---
  void prune(bool idle);
  void pruned();

  // --- commit.cpp ---
  void leave_with_doubt(Live& live);
  void flush();
  void build_batch();
  void after_commit(const ledger::Committed& proof);
  void answer_submitters();
  void send(const ledger::Committed& proof);
  void release_effects();
  static void forget_turn(Live& live);
  void storage_failed(const Error& error);
  void count_turn();
  /// Ends the process when the ledger says that only what is on disk can be trusted.
  static void stop_if_broken(const Error& error);
  template <class T>
  static Result<T> heed(Result<T> read) {
    if (!read) stop_if_broken(read.error());
    return read;
  }
  void count(Live& live);
  void report();

  template <class T>
  void reply(Answer<T>& answer, Result<T> value) {  // after the commit
    answers.push_back([a = std::move(answer), v = std::move(value)](const Error* error) mutable {
      if (error != nullptr)
        a(std::unexpected(*error));
      else
        a(std::move(v));
    });
  }

  Engine& owner;
  const Clock& clock;
  Random& random;
  ledger::Ledger& ledger;
  const tools::Catalog& catalog;
  tools::Transport& transport;
  Observer& observer;
  Metrics& metrics;
  const Options options;

  Inbox inbox;
  std::vector<Inbox::Item> items;
  RunIds ids;
  Gates gates;
  Latencies latencies;
  std::unordered_map<std::string, std::unique_ptr<Live>> runs;
  Resting resting;  // the other open runs
  std::set<std::pair<std::int64_t, std::string>> timers;  // (instant, run id)
  std::unordered_map<tools::CallId, Flight> flights;
  std::unordered_map<tools::CallId, Probe> probes;
  std::unordered_map<tools::CallId, Lingering> lingering;
  std::deque<tools::CallId> lingering_order;
  std::unordered_map<std::string, std::string>
      keys;  // submit keys of this turn, not yet in the ledger: owner NUL key -> run id
  tools::CallId next_call = 1;

  Instant loaded_at{};  // what happened before that, other processes saw

  // What this turn decided.
  Instant now{};
  std::vector<Live*> dirty;
  ledger::Batch batch;
  std::vector<ledger::AuditEntry> audit;
  std::vector<ledger::CachedAnswer> kept;  // not yet in the ledger
  bool adopt = false;  // the ledger is a restored backup, and this turn makes it ours
  std::vector<Outgoing> outgoing;
  std::vector<tools::CallId> cancels;
  std::vector<std::move_only_function<void(const Error*)>> answers;
  std::vector<std::pair<std::string, std::move_only_function<void(const Error*)>>>
      submit_answers;  // by run id

  // The walk that deletes old runs, while there is a retention.
  struct Walk {
    Instant next{};          // of the next slice
    std::int64_t after = 0;  // the run it has come to
    std::uint64_t deleted = 0;
    std::vector<std::string> ids;  // of this turn's slice, whose seqs are in `prune_seqs`
  } walk;
  std::vector<std::int64_t> prune_seqs;

  // Storage that can't be written for now.
  std::atomic<bool> storage_ok{true};
  std::optional<Instant> storage_retry;
  Duration storage_pause{250};
  Error storage_error;

  std::atomic<bool> draining{false};
  std::atomic<bool> stop{false};
  std::mutex drained_mutex;
  std::condition_variable drained_wake;
  bool last_flush = false;  // begun while draining with nothing out: it stores what is left to store
  bool drained = false;  // nothing is out any more, and nothing will leave
  std::thread thread;

  // Gauges.
  RunsByStatus open;
  std::multiset<std::int64_t> unknown_since;
  std::multiset<std::int64_t> sent_at;
  Instant last_progress{};
};

}  // namespace holdfast::engine
