#pragma once
// What is durable. The engine writes whole batches; everybody else reads what was committed.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/policy/breaker.h"
#include "holdfast/policy/latency_window.h"
#include "holdfast/policy/rate_gate.h"
#include "holdfast/policy/sized_deadline.h"
#include "holdfast/run/run.h"

namespace holdfast::ledger {

struct AuditEntry {
  std::int64_t seq = 0;
  Instant at{};
  std::string who;      // token name, or "operator" without tokens
  std::string action;   // resolve.landed, cancel, breaker.open, backup, reload, …
  std::string subject;  // write id, run id, server/tool, path, …
  std::string why;
  std::string data = "{}";
};

/// The last good answer of a read, kept for its tool's `cached` fallback: one for each server, tool and equal
/// arguments.
struct CachedAnswer {
  std::string server, tool;
  std::string arguments;  // SHA-256 of their canonical JSON, hex
  Instant at{};
  std::string result;  // JSON text as received
};

/// One slice of a tool's service times. Losing some is no harm: they are measured again.
struct LatencyRow {
  std::string server, tool;
  LatencySlice slice;
  std::optional<SizedDeadline> sized;  // the deadline in force when the row was made
};

/// Everything decided in one turn of the loop, as pointers to the engine's own values: nothing is copied. The
/// pointees must live until commit() has returned. Within a batch, order: inserts of runs, then of steps,
/// then updates, then attempts and events.
struct Batch {
  struct StepOf {
    const run::Run* run;
    std::uint32_t step;
  };

  std::vector<run::Run*> new_runs;    // commit sets `seq`; their steps are inserted with them
  std::vector<StepOf> new_steps;      // added to open runs
  std::vector<const run::Run*> runs;  // changed
  std::vector<StepOf> steps;          // changed, write included (inserted when it is new)
  /// Inserted, or replaced when the row (run, step, n) exists; run_seq is taken from the run.
  std::vector<std::pair<const run::Run*, run::Attempt>> attempts;
  std::vector<std::pair<const run::Run*, run::Event>> events;  // run_seq is taken from the run
  std::vector<Breaker> breakers;                               // upserted
  std::vector<RateGate> gates;                                 // upserted
  /// Each replaces the one before it. The ledger keeps 10,000 and 64 MiB in all; the oldest goes first.
  std::vector<CachedAnswer> answers;
  std::vector<AuditEntry> audit;
  std::vector<LatencyRow> latencies;  // upserted
  std::vector<std::int64_t> prune;  // seq of settled runs to delete, with all that belongs to them
  bool probe = false;  // write although there is nothing to store: can the storage be written again?
  bool adopt = false;  // a restored backup becomes this server's ledger: load_open() says `restored` no more

  [[nodiscard]] bool empty() const {
    return !probe && !adopt && new_runs.empty() && new_steps.empty() && runs.empty() && steps.empty() &&
           attempts.empty() && events.empty() && breakers.empty() && gates.empty() && answers.empty() &&
           audit.empty() && latencies.empty() && prune.empty();
  }
  void clear();
};

/// Proof that a batch is durable. Only a Ledger makes one; an outgoing call can be built only with it.
class Committed {
 public:
  Committed(const Committed&) = default;

 private:
  friend class Ledger;
  Committed() = default;
};

/// Why a commit failed: `storage_full` and `storage_error` (code of the Error) leave the ledger as it was and
/// may be tried again with the same batch; `storage_broken` (an fsync failed, the file is corrupt) means stop
/// and start again from disk.
class Ledger {
 public:
  virtual ~Ledger() = default;

  /// One transaction, durable when this returns (it survives a power cut). All or nothing. Engine thread
  /// only.
  [[nodiscard]] virtual Result<Committed> commit(Batch& batch) = 0;
  /// Every run that is not settled, steps and writes included, oldest first; and the attempts that were in
  /// flight. At start, once.
  struct Open {
    std::vector<run::Run> runs;
    std::vector<run::Attempt> in_flight;
    std::vector<Breaker> breakers;
    std::vector<RateGate> gates;
    std::vector<LatencyRow> latencies;
    /// Set when this is a copy that backup() made and nobody has adopted: calls may have left after it that it does not know. When its newest
    /// event was (no call left unrecorded before that), or the beginning of time without any.
    std::optional<Instant> restored;
  };
  [[nodiscard]] virtual Result<Open> load_open() = 0;
  /// A run by id, with its steps and writes, as committed; nullopt when there is none. Engine thread only
  /// (the writer's connection).
  [[nodiscard]] virtual Result<std::optional<run::Run>> load(std::string_view run_id) = 0;
  struct Submission {
    std::string run_id;
    std::string digest;
  };
  /// The run that owns a submit key. Engine thread only.
  [[nodiscard]] virtual Result<std::optional<Submission>> find_submission(std::string_view owner,
                                                                          std::string_view key) = 0;
  /// The attempt (run, step, n) as stored, for evidence that comes late; nullopt when there is none. Engine
  /// thread only.
  [[nodiscard]] virtual Result<std::optional<run::Attempt>> find_attempt(std::int64_t run_seq,
                                                                         std::uint32_t step,
                                                                         std::uint32_t n) = 0;
  /// The kept answer to equal arguments, whatever its age; nullopt when there is none. Engine thread only.
  [[nodiscard]] virtual Result<std::optional<CachedAnswer>> find_answer(std::string_view server,
                                                                        std::string_view tool,
                                                                        std::string_view arguments) = 0;
  /// A settled run that is old enough to be deleted, with what may still speak against it.
  struct Prunable {
    struct SentKey {  // of a keyed write that was sent
      std::string server, tool;
      Instant last_sent_at{};  // the tool may know the key since then only
    };
    std::int64_t seq = 0;
    std::string id;
    std::vector<SentKey> keys;
  };
  /// One slice of a walk through the ledger, in order of acceptance.
  struct PruneSlice {
    std::vector<Prunable> runs;
    std::int64_t next_after = 0;  // where the next slice starts
    bool at_end = false;          // nothing beyond can be old enough
  };
  /// Settled runs that ended before `ended_before`, after run `after_seq` (0: from the oldest), and that `may_go` lets go. Looks
  /// at no more than `most` rows, and stops after runs to delete whose texts are 8 MiB together, so that a transaction that
  /// deletes them is short. The newest run is never among them: its number is where counting goes on. Engine thread only.
  /// `may_go` is called while the ledger is locked: it must not call the ledger.
  using MayGo = std::function<bool(const Prunable&)>;
  [[nodiscard]] virtual Result<PruneSlice> prunable(Instant ended_before, std::int64_t after_seq, std::uint32_t most,
                                                    const MayGo& may_go) = 0;
  /// What is committed and may be tidied up: where it is kept in another form than readers look for, and the WAL when it has
  /// grown (its own policy); engine thread, after effects have left. Never fails a commit.
  virtual void checkpoint_if_due() = 0;
  [[nodiscard]] virtual std::uint64_t wal_bytes() const = 0;
  /// `tell` hears of the failure after which nothing can be committed any more (`storage_broken`), whoever met it: a commit, tidying up, or a reader. On
  /// any thread, which holds what commits wait for: it may only pass the word on. Empty: nobody is told.
  virtual void when_broken(std::function<void(const Error&)> tell) = 0;
  /// A consistent copy of the whole ledger at `path` (error `exists` when it is taken), mode 0600, marked as one:
  /// who loads it is told so. Any thread; does not stop the writer.
  [[nodiscard]] virtual Result<void> backup(const std::string& path) = 0;

 protected:
  /// For implementations, after the commit is durable.
  [[nodiscard]] static Committed committed() { return Committed{}; }
};

struct RunFilter {
  std::optional<std::string> owner;
  std::optional<run::RunStatus> status;
  std::optional<std::string> name;
  std::vector<std::pair<std::string, std::string>> labels;  // all must be equal
  std::int64_t before_seq = 0;  // cursor: only runs older than this; 0: from the newest
  std::uint32_t limit = 50;
};

struct UnknownFilter {
  bool open_only = true;
  std::optional<std::string> server, tool;
  /// cursor: only unknowns after this one; 0/0: from the oldest
  std::int64_t after_since_ms = 0, after_run_seq = 0, after_step = -1;
  std::uint32_t limit = 50;
};

struct UnknownEntry {  // one row of GET /v1/unknowns
  std::int64_t run_seq = 0;
  std::string run_id, run_name, owner;
  std::uint32_t step = 0;
  run::Step state;                     // with its write
  std::vector<run::Attempt> attempts;  // of this step, oldest first
};

/// Reads what is committed, and nothing else. Thread-safe; every call sees one consistent state and is short, but for a
/// commit under way that it may wait for, and commits that it may have to put in order first (milliseconds).
class Reader {
 public:
  virtual ~Reader() = default;
  [[nodiscard]] virtual Result<std::optional<run::Run>> run(std::string_view run_id) = 0;
  /// Newest first, as a listing shows them: without the run's result, its steps' args and results and its
  /// writes' requests.
  [[nodiscard]] virtual Result<std::vector<run::Run>> runs(const RunFilter& filter) = 0;
  /// In the order in which they were begun. `after_row`: how many rows to pass over, those read before.
  [[nodiscard]] virtual Result<std::vector<run::Attempt>> attempts(std::int64_t run_seq,
                                                                   std::int64_t after_row,
                                                                   std::uint32_t limit) = 0;
  [[nodiscard]] virtual Result<std::vector<run::Event>> events(std::int64_t run_seq, std::int64_t after,
                                                               std::uint32_t limit) = 0;
  [[nodiscard]] virtual Result<std::vector<UnknownEntry>> unknowns(const UnknownFilter& filter) = 0;
  /// nullopt when this step's write is not there or was never unknown.
  [[nodiscard]] virtual Result<std::optional<UnknownEntry>> unknown(std::string_view run_id,
                                                                    std::uint32_t step) = 0;
  [[nodiscard]] virtual Result<std::vector<AuditEntry>> audit(std::int64_t before_seq,
                                                              std::uint32_t limit) = 0;
  [[nodiscard]] virtual Result<std::vector<Breaker>> breakers() = 0;
};

struct Options {
  std::string path;
  std::uint32_t readers = 4;
  bool create = true;  // false: a missing file is an error
};

/// A database file, opened: created 0600 and migrated where needed, exclusively locked against a second
/// process (the error names the holder's pid), settings asserted. Errors: `database_locked`, `schema_newer`,
/// `database_foreign`, `storage_error`, each naming the file. A file that is refused is left byte for byte as
/// it was.
struct Opened {
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<Reader> reader;  // asks the ledger for what it has not tidied up yet: not to be used without it
  /// Of the newest event of a run that is not settled; Instant{} without one. A clock that reads earlier has been set
  /// back, and would make waits longer and keys younger than they are.
  Instant newest{};
};
[[nodiscard]] Result<Opened> open_sqlite(const Options& options);

}  // namespace holdfast::ledger
