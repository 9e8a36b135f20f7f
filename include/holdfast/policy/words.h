#pragma once
// The words of the contract. Every enumeration here is spelled the same in the API, the ledger, the logs and
// the metrics.
#include <optional>
#include <string_view>

namespace holdfast {

enum class Effect { read, write };
/// How a repeat of the step can be made safe. An expired key turns `keyed` into `checkable` where a check
/// exists, else `plain`.
enum class Kind { read, keyed, checkable, plain };

/// The phase ladder of the failure table; never-sent is exactly `phase < tx_part`.
enum class Phase {
  local,
  dns,
  tcp,
  proxy,
  tls,
  tx0,
  tx_part,
  tx_all,
  rx_part_head,
  rx_head,
  rx_part_body,
  rx_all,
  parsed
};
enum class AttemptKind { call, check, fallback, probe };
enum class Delivery { in_flight, not_sent, maybe_sent, answered };
enum class Verdict { none, ok, not_sent, refused, ambiguous, landed };
enum class AttemptClass {
  none,
  ok,
  dns,
  connect,
  tls,
  reset,
  timeout,
  http_4xx,
  http_429,
  http_5xx,
  redirect,
  rpc_error,
  tool_error,
  malformed,
  too_large,
  cancelled,
  crashed
};

enum class Reason {
  none,
  // failures
  tool_refused,
  tool_error,
  tool_not_found,
  unreachable,
  bad_reference,
  bad_arguments,
  attempts_exhausted,
  retry_budget_exhausted,
  no_time_left,
  deadline_exceeded,
  rate_limited,
  circuit_open,
  malformed_answer,
  result_too_large,
  result_lost,
  crash_loop,
  cancelled,
  abandoned,
  step_failed,
  // doubts (malformed_answer is one of them too)
  timed_out,
  connection_lost,
  server_error,
  ambiguous_answer,
  crashed,
  key_expired,
  cancelled_in_flight,
  deadline_in_flight,
};

[[nodiscard]] std::string_view word(Effect);
[[nodiscard]] std::string_view word(Kind);
[[nodiscard]] std::string_view word(Phase);
[[nodiscard]] std::string_view word(AttemptKind);
[[nodiscard]] std::string_view word(Delivery);
/// Empty for `none`.
[[nodiscard]] std::string_view word(Verdict);
/// Empty for `none`.
[[nodiscard]] std::string_view word(AttemptClass);
/// Empty for `none`.
[[nodiscard]] std::string_view word(Reason);

/// The inverse of word(): nullopt for anything that is no word of the enumeration (the empty text is `none`
/// where there is one).
template <class E>
[[nodiscard]] std::optional<E> from_word(std::string_view text);
extern template std::optional<Effect> from_word<Effect>(std::string_view);
extern template std::optional<Kind> from_word<Kind>(std::string_view);
extern template std::optional<Phase> from_word<Phase>(std::string_view);
extern template std::optional<AttemptKind> from_word<AttemptKind>(std::string_view);
extern template std::optional<Delivery> from_word<Delivery>(std::string_view);
extern template std::optional<Verdict> from_word<Verdict>(std::string_view);
extern template std::optional<AttemptClass> from_word<AttemptClass>(std::string_view);
extern template std::optional<Reason> from_word<Reason>(std::string_view);

}  // namespace holdfast
