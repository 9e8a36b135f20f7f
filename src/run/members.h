#pragma once
// The members of a run's values as tuples of references, for what must look at each of them. A new member does not compile until it
// is named here: a binding has as many names as there are members.
#include <concepts>
#include <tuple>
#include <type_traits>

#include "holdfast/run/run.h"

namespace holdfast::run {

template <class T, class Value>
concept Of = std::same_as<std::remove_const_t<T>, Value>;

template <Of<Wait> T>
[[nodiscard]] auto members(T& of) {
  auto& [what, until] = of;
  return std::tie(what, until);
}
template <Of<FrozenRequest> T>
[[nodiscard]] auto members(T& of) {
  auto& [head, body] = of;
  return std::tie(head, body);
}
template <Of<StepSpec> T>
[[nodiscard]] auto members(T& of) {
  auto& [id, server, tool, target, args, after, deadline, max_attempts, on_failure, on_circuit_open, key, digest] = of;
  return std::tie(id, server, tool, target, args, after, deadline, max_attempts, on_failure, on_circuit_open, key, digest);
}
template <Of<Write> T>
[[nodiscard]] auto members(T& of) {
  auto& [key, state, request, keyed, first_sent_at, last_sent_at, unknown_since, resolution, resolution_note, resolved_by, resolved_at,
         open] = of;
  return std::tie(key, state, request, keyed, first_sent_at, last_sent_at, unknown_since, resolution, resolution_note, resolved_by,
                  resolved_at, open);
}
template <Of<Step> T>
[[nodiscard]] auto members(T& of) {
  auto& [spec, effect, target, max_attempts, status, reason, detail, advice, attempts, rows, wait, result, degraded, write, doubt,
         doubt_detail, hinted_wait_used, session_repaired, ordered, once_rows, checks, next_check, crashes, in_flight, in_flight_n,
         in_flight_kind, sent_at] = of;
  return std::tie(spec, effect, target, max_attempts, status, reason, detail, advice, attempts, rows, wait, result, degraded, write,
                  doubt, doubt_detail, hinted_wait_used, session_repaired, ordered, once_rows, checks, next_check, crashes, in_flight,
                  in_flight_n, in_flight_kind, sent_at);
}
template <Of<Run> T>
[[nodiscard]] auto members(T& of) {
  auto& [seq, id, owner, submit_key, submit_digest, name, mode, status, reason, detail, wait, created_at, started_at, finished_at,
         deadline, retry_limit, retry_spent, labels, warnings, result, result_template, cancel_requested, cancel_reason, finish_digest,
         last_event, steps] = of;
  return std::tie(seq, id, owner, submit_key, submit_digest, name, mode, status, reason, detail, wait, created_at, started_at,
                  finished_at, deadline, retry_limit, retry_spent, labels, warnings, result, result_template, cancel_requested,
                  cancel_reason, finish_digest, last_event, steps);
}

/// A value with members() of its own.
template <class T>
concept Compound = requires(T& value) { members(value); };

}  // namespace holdfast::run
