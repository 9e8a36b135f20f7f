#pragma once
// A run as it is stored and as the engine holds it: one plain value, changed only by the functions of
// run/machine.h.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/policy/words.h"

namespace holdfast::run {

enum class Mode { plan, open };
enum class RunStatus { queued, running, waiting, unknown, succeeded, failed, cancelled };
enum class StepStatus { pending, running, waiting, succeeded, failed, unknown, skipped, cancelled };
enum class WriteState { intended, dispatched, landed, not_landed, unknown };
enum class WaitFor { none, backoff, retry_after, circuit, rate_gate, slot, storage, human, client };
enum class OnFailure { stop, proceed };  // `proceed` is spelled "continue"
enum class OnCircuitOpen { wait, fail };
enum class Resolution {
  none,
  landed,
  not_landed,
  abandon,
  evidence
};  // evidence: settled by a check or a late answer

[[nodiscard]] std::string_view word(Mode);
[[nodiscard]] std::string_view word(RunStatus);
[[nodiscard]] std::string_view word(StepStatus);
[[nodiscard]] std::string_view word(WriteState);
[[nodiscard]] std::string_view word(WaitFor);
[[nodiscard]] std::string_view word(OnFailure);
[[nodiscard]] std::string_view word(OnCircuitOpen);
[[nodiscard]] std::string_view word(Resolution);
template <class E>
[[nodiscard]] std::optional<E> from_word(std::string_view text);  // for each enumeration above
extern template std::optional<Mode> from_word<Mode>(std::string_view);
extern template std::optional<RunStatus> from_word<RunStatus>(std::string_view);
extern template std::optional<StepStatus> from_word<StepStatus>(std::string_view);
extern template std::optional<WriteState> from_word<WriteState>(std::string_view);
extern template std::optional<WaitFor> from_word<WaitFor>(std::string_view);
extern template std::optional<OnFailure> from_word<OnFailure>(std::string_view);
extern template std::optional<OnCircuitOpen> from_word<OnCircuitOpen>(std::string_view);
extern template std::optional<Resolution> from_word<Resolution>(std::string_view);

/// `until` empty: no instant is known.
struct Wait {
  WaitFor what = WaitFor::none;
  std::optional<Instant> until;
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// The exact request, frozen before the first attempt and sent unchanged on every later one. Plain HTTP:
/// `head` is "POST /path?query", `body` the body. MCP: `head` is the tool's name, `body` the arguments' JSON
/// text, key included.
struct FrozenRequest {
  std::string head;
  std::string body;
  friend bool operator==(const FrozenRequest&, const FrozenRequest&) = default;
};

/// What the submitter said of a step; never changes.
struct StepSpec {
  std::string id;
  std::string server;
  std::string tool;
  std::string target;       // as submitted, empty when none was named
  std::string args = "{}";  // JSON object, references unresolved
  /// Indices of the steps to wait for: from `after`, the default order and references; ascending, unique.
  std::vector<std::uint32_t> after;
  std::optional<Duration> deadline;
  std::optional<std::uint32_t> max_attempts;  // clamped to the tool's
  OnFailure on_failure = OnFailure::stop;
  OnCircuitOpen on_circuit_open = OnCircuitOpen::wait;
  std::string key;     // replaces the derived key when not empty
  std::string digest;  // open runs: SHA-256 of the canonical step, to tell a repeat from another body
  friend bool operator==(const StepSpec&, const StepSpec&) = default;
};

/// The ledger entry of a write step. Its id follows from run and step (write_id()).
struct Write {
  std::string key;
  WriteState state = WriteState::intended;
  FrozenRequest request;
  bool keyed = false;                        // the key goes with the frozen request
  std::optional<Instant> first_sent_at;  // of the key: retention counts from here
  std::optional<Instant> last_sent_at;   // the last possible delivery: `settle` counts from its end
  std::optional<Instant> unknown_since;
  Resolution resolution = Resolution::none;
  std::string resolution_note, resolved_by;
  std::optional<Instant> resolved_at;
  bool open = false;  // an unknown that waits for a verdict (listed by GET /v1/unknowns?state=open)
  friend bool operator==(const Write&, const Write&) = default;
};

struct Step {
  StepSpec spec;
  Effect effect = Effect::write;
  std::string target;  // effective: named, from the tool's template, or server/tool
  std::uint32_t max_attempts = 3;
  StepStatus status = StepStatus::pending;
  Reason reason = Reason::none;
  std::string detail;
  std::string advice;
  std::uint32_t attempts = 0;  // counted sends
  std::uint32_t rows = 0;      // attempt rows, of every kind: the next one is rows + 1
  Wait wait;
  std::string result;  // JSON text, empty for none
  bool degraded = false;
  std::optional<Write> write;   // of a write step, once anything was recorded
  Reason doubt = Reason::none;  // first ambiguous outcome that nothing has settled
  std::string doubt_detail;
  bool hinted_wait_used = false;  // the one try after a Retry-After has been given
  bool session_repaired = false;
  bool ordered = false;      // the next send was ordered by an operator: it counts against nothing
  std::string once_rows;     // rows of the failure table whose one repeat is used up, joined by spaces
  std::uint32_t checks = 0;  // checks made since the last possible delivery
  std::optional<Instant> next_check;
  std::uint32_t crashes = 0;

  // The attempt in flight (its row is in the ledger with delivery in_flight).
  bool in_flight = false;
  std::uint32_t in_flight_n = 0;
  AttemptKind in_flight_kind = AttemptKind::call;
  std::optional<Instant> sent_at;
  friend bool operator==(const Step&, const Step&) = default;
};

struct Run {
  std::int64_t seq = 0;  // row id in the ledger, ascending; 0 before it is stored
  std::string id;
  std::string owner;          // token name, empty without tokens
  std::string submit_key;     // empty: none
  std::string submit_digest;  // SHA-256 of the canonical submission
  std::string name;
  Mode mode = Mode::plan;
  RunStatus status = RunStatus::queued;
  Reason reason = Reason::none;
  std::string detail;
  Wait wait;
  Instant created_at{};
  std::optional<Instant> started_at, finished_at;
  Instant deadline{};
  std::uint32_t retry_limit = 20;
  std::uint32_t retry_spent = 0;
  std::string labels = "{}";    // JSON object of strings
  std::string warnings = "[]";  // JSON array of strings
  std::string result;           // JSON text, empty for none
  std::string result_template;  // from the submission's `result`, JSON text, empty for none
  bool cancel_requested = false;
  std::string cancel_reason;
  std::string finish_digest;    // open runs: SHA-256 of the canonical finish body, once finished
  std::int64_t last_event = 0;  // seq of the newest event
  std::vector<Step> steps;

  [[nodiscard]] bool settled() const {
    return status == RunStatus::succeeded || status == RunStatus::failed || status == RunStatus::cancelled;
  }
  friend bool operator==(const Run&, const Run&) = default;
};

/// One row of `GET /v1/runs/{id}/attempts`.
struct Attempt {
  std::int64_t run_seq = 0;
  std::uint32_t step = 0;  // index
  std::uint32_t n = 0;     // 1, 2, … within the step
  AttemptKind kind = AttemptKind::call;
  bool counted = true;
  Instant started_at{};
  Duration deadline{0};
  bool clipped = false;  // the run's deadline cut the call's
  std::optional<Instant> finished_at;
  Delivery delivery = Delivery::in_flight;
  Phase phase = Phase::local;
  Verdict verdict = Verdict::none;
  AttemptClass klass = AttemptClass::none;
  std::string row;  // of the failure table
  bool late = false;
  std::string late_detail;
  int http_status = 0;
  std::optional<std::int64_t> rpc_code;
  std::string detail;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
};

struct Event {
  std::int64_t run_seq = 0;
  std::int64_t seq = 0;  // 1, 2, … within the run, gap-free
  Instant at{};
  std::string_view type;    // `run.submitted`, `step.settled`, …: static text
  std::string step;         // step id or empty
  std::string data = "{}";  // JSON object
};

}  // namespace holdfast::run
