#pragma once
// The loop: events in, decide, commit everything decided as one durable transaction, and only then let
// effects leave.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"
#include "holdfast/ledger/ledger.h"
#include "holdfast/run/plan.h"
#include "holdfast/run/run.h"
#include "holdfast/tools/catalog.h"
#include "holdfast/tools/transport.h"

namespace holdfast::engine {

/// Answers are given on the engine's thread after the commit that makes them true; handlers must not block.
template <class T>
using Answer = std::move_only_function<void(Result<T>)>;

struct Submitted {
  std::string run_id;
  bool replayed = false;  // the key was known and the request is the same
  std::shared_ptr<const run::Run> run = nullptr;  // a new run as it was committed; null for a replay
};
struct StepAdded {
  bool replayed = false;
};

/// What the rest of the process is told after a commit.
class Observer {
 public:
  virtual ~Observer() = default;
  /// A run changed durably: its status, a step, or an event. Once per run and commit, engine thread, must not
  /// block.
  /// `rests`: it is settled, or unknown: nothing more comes by itself.
  virtual void run_changed(std::string_view run_id, bool rests) = 0;
  /// A settled run leaves the engine's memory: its state as committed. Before run_changed() of the same commit; also
  /// after a command that looked at a settled run and changed nothing.
  virtual void run_left(run::Run run) = 0;
  /// A settled run was deleted, durably: nobody may be told of it any more. Engine thread, must not block.
  virtual void run_pruned(std::string_view run_id) = 0;
};

/// Runs that are not settled, by status.
struct RunsByStatus {
  std::uint64_t queued = 0, running = 0, waiting = 0, unknown = 0;
};

class Metrics {  // implemented by api/, called on the engine's thread; must not block
 public:
  virtual ~Metrics() = default;
  virtual void attempt_finished(std::string_view server, std::string_view tool, AttemptClass klass,
                                double seconds, bool timed_out) = 0;
  virtual void run_settled(run::RunStatus status) = 0;
  virtual void retried(Reason or_none, std::string_view reason) = 0;
  virtual void retry_budget_exhausted() = 0;
  virtual void late_answer() = 0;
  virtual void fallback(std::string_view server, std::string_view tool) = 0;
  virtual void circuit(std::string_view server, std::string_view tool, BreakerState state, bool opened) = 0;
  virtual void committed(double seconds, std::size_t events) = 0;
  virtual void gauges(const RunsByStatus& open, std::uint64_t unknown_writes,
                      std::optional<Instant> oldest_unknown, std::optional<Instant> oldest_attempt,
                      Instant last_progress, std::uint64_t wal_bytes) = 0;
};

class Latencies;

struct Options {
  std::size_t inbox = 10'000;  // commands waiting; more are answered `overloaded` (503)
  Duration shutdown_grace{10'000};
};

/// Owns all runs. The commands are thread-safe: they post into the bounded inbox and return. Besides its own
/// errors every one may be answered `overloaded`, `storage_full`, `storage_error` or `shutting_down`.
class Engine final : public tools::CallSink {
 public:
  Engine(const Clock& clock, Random& random, ledger::Ledger& ledger, const tools::Catalog& catalog,
         tools::Transport& transport, Observer& observer, Metrics& metrics, Options options);
  ~Engine() override;

  /// Loads what is open, absorbs attempts that were in flight as crashed, and starts the loop's thread.
  /// Errors: those of the ledger.
  [[nodiscard]] Result<void> start();
  /// The same without a thread: the caller turns the loop. For simulation and tests.
  [[nodiscard]] Result<void> load();
  /// One turn: takes what is in the inbox and what is due, decides, commits, lets effects leave. Returns when
  /// to turn again at the latest.
  std::optional<Instant> turn();
  /// Stops dispatching, lets writes in flight finish within the grace, then joins the thread. Idempotent.
  void drain();
  /// The first half of drain(), for who turns the loop: nothing is dispatched any more, and calls that change nothing are given up.
  void begin_drain();
  /// After begin_drain(): no step's call is out any more, and what they came to is stored.
  [[nodiscard]] bool drained() const;

  /// `planned` has no id and no seq yet. Errors: `key_reused` (its message names the owning run).
  void submit(run::Run planned, Answer<Submitted> answer);
  /// The run that a submit key owns, for a body that can't be planned (any more): nullopt when the key is unknown. Error `key_reused`.
  void replay(std::string owner, std::string key, std::string digest, Answer<std::optional<Submitted>> answer);
  /// Open runs only. `bind` reads the step against the run's steps as they are, on the engine's thread; its
  /// error is the answer. Errors: `run_not_found`, `step_reused`, `run_settled`, `not_open`.
  using Bind = std::move_only_function<Result<run::PostedStep>(const run::Run&)>;
  void add_step(std::string run_id, std::string owner_or_any, std::string step_id, std::string digest,
                Bind bind, Answer<StepAdded> answer);
  /// Open runs only. `digest` tells a repeat (which changes nothing) from another finish. Errors:
  /// `run_not_found`, `not_open`, `run_settled`, `step_in_flight`, `unknown_write`.
  void finish(std::string run_id, std::string owner_or_any, run::RunStatus status, std::string result,
              std::string reason, std::string digest, Answer<void> answer);
  /// Answered once the wish is durable; calls in flight end after that. A settled run stays as it is. Error:
  /// `run_not_found`.
  void cancel(std::string run_id, std::string owner_or_any, std::string who, std::string reason,
              Answer<void> answer);
  struct Verdict {
    run::Resolution verdict;
    std::string result;  // JSON text, empty for none
    std::string note;
    std::string who;
    std::optional<Instant> deadline;
  };
  /// Errors: `write_not_found`, `already_resolved`, `not_unknown`.
  void resolve(std::string write_id, Verdict verdict, Answer<void> answer);
  /// `tool` empty: the server's. `span` empty: until it is closed. Errors: `server_not_found`,
  /// `tool_not_found`.
  void force_breaker(std::string server, std::string tool, bool open, std::string who, std::string why,
                     std::optional<Duration> span, Answer<Breaker> answer);
  /// Service times and the deadlines in force. Lives as long as the engine; thread-safe.
  [[nodiscard]] const Latencies& latencies() const;
  /// Runs `work` on the engine's thread between two events, so that no decision sees the world before and after it. Always
  /// taken, also while the engine drains; dropped when it has stopped. Must not block.
  void between_events(std::move_only_function<void()> work);
  /// An entry of the audit log, for what changes nothing else here; its time is that of the commit. Answered once it is durable.
  void note(ledger::AuditEntry entry, Answer<void> answer);
  /// False while the ledger cannot be written or the engine is stopping: /readyz.
  [[nodiscard]] bool ready() const;
  /// False from a commit that failed for want of storage until one succeeds: no run moves meanwhile, and what
  /// the ledger says of them is what was true before. Any thread.
  [[nodiscard]] bool storage_ok() const;

  /// How many open runs are at rest, for who turns the loop.
  [[nodiscard]] std::size_t resting() const;

  void finished(tools::CallId id, Evidence evidence) override;
  void late(tools::CallId id, Evidence evidence) override;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::engine
