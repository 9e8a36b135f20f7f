#pragma once
// The run machine: what is next, and what an observation changes. No I/O, no clock: the same run, time and
// draws give the same decisions in the process, after a restart and under simulation.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"
#include "holdfast/policy/classify.h"
#include "holdfast/policy/retry.h"
#include "holdfast/policy/tool_policy.h"
#include "holdfast/run/run.h"

namespace holdfast::run {

/// What a turn changed, to be stored with it.
struct Changes {
  bool run = false;
  std::vector<std::uint32_t> steps;  // each at most once
  std::vector<Event> events;
  std::vector<std::uint32_t> cancel_calls;  // steps whose call in flight is to be ended
  // For metrics only.
  std::vector<std::uint32_t> degraded;  // steps that a fallback answered
  std::uint32_t over_budget = 0;        // steps that the run's retry budget stopped

  void touch(std::uint32_t step);
  [[nodiscard]] bool empty() const { return !run && steps.empty() && events.empty() && cancel_calls.empty(); }
  void clear();
};

/// One decision in progress.
struct Turn {
  Run& run;
  Changes& changes;
  Instant now;
  Random& random;
};

enum class MoveKind {
  start,     // send the step's call, once gates allow
  check,     // ask the tool's check for the step's write
  fallback,  // a read has given up (`reason` says why) and its tool has a fallback
  skip,      // an earlier failure stopped the run
  cancel,    // the run is being cancelled
  expire,    // the run's deadline has passed
  settle,    // nothing is left: the run gets its final state
};
struct Move {
  MoveKind kind;
  std::uint32_t step = 0;  // not for `settle`
  friend bool operator==(const Move&, const Move&) = default;
};

/// Everything that is right to do now, in the order of the steps. Empty when the run waits or is settled.
/// Pure.
[[nodiscard]] std::vector<Move> next(const Run& run, Instant now);
/// A read has given up, and what stands in for it has not answered yet. Derived, so that it survives a restart.
[[nodiscard]] bool given_up(const Step& step);
/// The run starts nothing new: it is being cancelled, or a failure stopped it.
[[nodiscard]] bool stopping(const Run& run);
/// Carries out a move that needs no tool: skip, cancel, expire, settle.
void apply(Turn& turn, Move move);
/// When next() may have something new to say by itself; nullopt: never.
[[nodiscard]] std::optional<Instant> wake_at(const Run& run);
/// The run's status, `waiting`, reason and detail, from its steps. Called once after all moves of a turn.
void refresh(Turn& turn);

/// How a repeat of this step can be made safe. What was submitted as a write stays one, whatever the tool's
/// rules say by now.
[[nodiscard]] Kind kind_of(const Step& step, const ToolPolicy& policy);

/// May a call of this step leave now, time and earlier doubts considered? Gates are asked afterwards.
/// `tool_deadline`: the one in force, where it is not the policy's.
struct Readiness {
  enum class What { send, check, fail, doubt } what = What::send;
  Reason reason = Reason::none;  // of fail and doubt
  std::string detail;
  Kind kind = Kind::plain;  // effective: an expired key is none
};
[[nodiscard]] Readiness ready(const Run& run, const Step& step, const ToolPolicy& policy, Instant now,
                              std::optional<Duration> tool_deadline = std::nullopt);

/// The attempt row of a call, check or fallback that is about to leave. Debits attempts and budget. The
/// caller has made sure that the request is frozen.
[[nodiscard]] Attempt begin(Turn& turn, std::uint32_t step, AttemptKind kind, const CallDeadline& deadline);
/// What one call showed. Fills in the attempt's row and moves the step.
void absorb_call(Turn& turn, std::uint32_t step, Attempt& attempt, const Evidence& evidence,
                 const Judgement& judgement, const ToolPolicy& policy);
/// A call of a read that we ended to shut down: it leaves again in the next life, and that counts against nothing.
void interrupt(Turn& turn, std::uint32_t step, Attempt& attempt, const Evidence& evidence, const Judgement& judgement);
/// What a check showed.
enum class Finding { found, absent, inconclusive };
[[nodiscard]] Finding read_check(const Evidence& evidence, const Judgement& judgement, const CheckRule& rule);
/// `watched_since`: when this process began. The rule's `settle` is counted in time that it has itself seen pass: a wall clock may have been
/// set while no process ran.
void absorb_check(Turn& turn, std::uint32_t step, Attempt& attempt, const Evidence& evidence,
                  const Judgement& judgement, const ToolPolicy& policy, Instant watched_since);
/// What a fallback tool answered: a complete answer gives the step its degraded result, anything else ends it
/// with the reason it had.
void absorb_fallback(Turn& turn, std::uint32_t step, Attempt& attempt, const Evidence& evidence,
                     const Judgement& judgement);
/// A complete answer that came after we gave up. Returns true when it settled the write.
bool absorb_late(Turn& turn, std::uint32_t step, Attempt& attempt, const Evidence& evidence,
                 const Judgement& judgement);

/// The step waits for a gate or slot; nothing was spent.
void hold(Turn& turn, std::uint32_t step, Wait wait);
/// The step ends without a call: failed, or unknown where an earlier attempt left doubt. `when`: the instant
/// from which on it may be tried again, for the advice.
void fail(Turn& turn, std::uint32_t step, Reason reason, std::string detail,
          std::optional<Instant> when = std::nullopt);
/// As fail(), but a read whose tool has a fallback asks that first (the next move is `fallback`).
void give_up(Turn& turn, std::uint32_t step, const ToolPolicy& policy, Reason reason, std::string detail,
             std::optional<Instant> when = std::nullopt);
/// The step ends with a fallback's answer.
void degrade(Turn& turn, std::uint32_t step, std::string result, std::string detail);
/// The step's write is in doubt and nothing more can be done by ourselves.
void doubt(Turn& turn, std::uint32_t step, Reason reason, std::string detail);

/// The run was loaded from a backup: each write that is not over may have been sent since, and nothing says so. It is in doubt from here on,
/// as if a call of it had been out when the process died.
void distrust(Turn& turn, Instant newest_known);

/// The ledger entry of a write step, made when first needed.
Write& ensure_write(Run& run, std::uint32_t step);

/// The run's first event.
void submitted(Turn& turn);
/// Nothing new starts from here on; next() says what is to be ended. Changes nothing on a settled run.
void request_cancel(Turn& turn, std::string reason);
struct Ruling {
  Resolution verdict;
  std::string result, note, who;  // result: JSON text, empty for none
  std::optional<Instant> deadline;
};
/// Errors: `already_resolved`, `not_unknown`. A repeat of the same verdict changes nothing.
[[nodiscard]] Result<void> resolve(Turn& turn, std::uint32_t step, const Ruling& ruling);
/// Open runs: the agent says it is done. Errors: `run_settled` (another finish, or settled otherwise),
/// `step_in_flight`, `unknown_write`.
[[nodiscard]] Result<void> finish(Turn& turn, RunStatus status, std::string result, std::string reason,
                                  std::string digest);

/// Appends an event with the next seq; `type` must be static text, `data` a JSON object.
/// The JSON text that a reference to a step of this run leads to; nullopt where it has not succeeded, or the pointer leads nowhere.
[[nodiscard]] std::optional<std::string> value_of(const Run& run, std::string_view step, std::string_view pointer);

void add_event(Turn& turn, std::string_view type, std::string_view step, std::string data);

}  // namespace holdfast::run
