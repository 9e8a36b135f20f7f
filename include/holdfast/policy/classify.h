#pragma once
// The failure table (docs/policy.md), as data. A failure that no row names is, on a write, ambiguous.
#include <span>
#include <string>
#include <string_view>

#include "holdfast/policy/evidence.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast {

/// What is right after one attempt, before budgets, gates and earlier doubts are asked.
enum class Action {
  done,              // the step has its result
  retry,             // RT: backoff, then again
  retry_once,        // RT1: as retry, but this row allows one repeat only; then stop
  resend,            // RS: same key and bytes after backoff
  resend_once,       // RS once, then stop (or unknown where doubt remains)
  wait_once,         // WAIT: not before the server's instant, then one try; without a usable one as retry
  wait_resend,       // WAIT, RS: not before the server's instant, else after backoff; again, same key
  check,             // PB: ask the tool's check before any repeat
  unknown,           // UNK
  stop,              // STOP: final, no effect of this attempt
  result_lost,       // the write landed, its result is lost; never again
  result_too_large,  // the write landed (a read failed), its result is over a limit; never again
  repair_session,    // D4: new MCP session, then the call once more; not counted
};
/// As docs/policy.md spells it: `retry once`, `result lost`, …
[[nodiscard]] std::string_view word(Action);

/// Who is struck. A complete answer of the agreed kind is a success for the server's breaker.
struct Strikes {
  bool server = false;
  bool tool = false;
  bool gate = false;
};

/// One row of the table.
struct Row {
  std::string_view id;        // "A4"
  std::string_view observed;  // the table's words
  Verdict verdict;
  Action read, keyed, checkable, plain;
  Strikes strikes;
  AttemptClass klass;
  /// The step's reason when the action is `stop`, and after `retry_once` is used up where it is not none.
  Reason failure;
  Reason doubt;  // the reason of `unknown`; none on rows that raise no doubt
};

/// The rows in the order of docs/policy.md; the last one, `other`, stands for everything that no row names.
[[nodiscard]] std::span<const Row> failure_table();

struct Judgement {
  std::string_view row;  // "" for a plain success; C7 (303) is a success with its own row
  Verdict verdict = Verdict::ok;
  Action action = Action::done;
  AttemptClass klass = AttemptClass::ok;
  Reason failure = Reason::none;
  Reason doubt = Reason::none;
  Strikes strikes;
  bool success_for_server = false;  // a complete answer of the agreed kind
  bool success_for_tool = false;
  Delivery delivery = Delivery::answered;
};

/// What `evidence` proves about one attempt of a tool with these rules. `kind` is passed beside the policy
/// because an expired key turns a keyed tool into a checkable or plain one. `clipped`: the call's deadline
/// was cut by the run's, so a timeout says nothing about the tool. Any 429 is `wait_once`, and whether its
/// time is usable only the caller can say, who knows what time it is. A read has no doubt. Pure;
/// never fails: what no row names is `ambiguous` on a write and retryable once on a read.
[[nodiscard]] Judgement classify(const Evidence& evidence, const ToolPolicy& policy, Kind kind, bool clipped);

/// One sentence that a language model can act on, for a step that ended with `reason` (or waits). `when` is
/// an RFC 3339 instant or empty. Never empty for a failure or a doubt.
[[nodiscard]] std::string advice(Reason reason, std::string_view tool, std::string_view when);

}  // namespace holdfast
