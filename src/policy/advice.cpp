#include <algorithm>
#include <array>

#include "holdfast/policy/classify.h"

namespace holdfast {
namespace {

struct Advice {
  Reason reason;
  std::string_view timed;    // `{tool}` and `{when}` are filled in
  std::string_view untimed;  // without an instant
};

// clang-format off
constexpr std::array kAdvice{
  Advice{Reason::none, "{tool} waits until {when} and is then called by itself; do not submit it again.", ""},
  Advice{Reason::tool_refused, "", "{tool} refused the call and nothing was done; correct what the detail names before calling it again."},
  Advice{Reason::tool_error, "", "{tool} ran and reported an error; read its text in the detail and change the request rather than repeating it."},
  Advice{Reason::tool_not_found, "", "{tool} does not exist on its server; use a tool that the server lists."},
  Advice{Reason::unreachable, "", "{tool} cannot be reached with the present settings and retrying will not help; tell an operator to check its address and certificate."},
  Advice{Reason::bad_reference, "", "An argument of {tool} refers to something that an earlier result does not contain and nothing was sent; correct the reference."},
  Advice{Reason::bad_arguments, "", "The arguments of {tool} are not valid and nothing was sent; correct them as the detail says."},
  Advice{Reason::attempts_exhausted, "", "Every allowed attempt at {tool} failed without an effect; it may work later, in a new run."},
  Advice{Reason::retry_budget_exhausted, "", "The run has used up its retries, the last one at {tool}; submit a new run later or with a larger retry budget."},
  Advice{Reason::no_time_left, "", "Too little time was left for {tool} and it was not done; submit a new run with a later deadline."},
  Advice{Reason::deadline_exceeded, "", "The run's deadline passed before {tool} could finish; submit a new run with a later deadline."},
  Advice{Reason::rate_limited, "{tool} accepts no calls before {when}; call it again after that instant, not earlier.", "{tool} is being called too often; wait longer before calling it again."},
  Advice{Reason::circuit_open, "{tool} has been failing and is not called before {when}; use another tool or try after that instant.", "{tool} has been failing and is not called at present; use another tool or try later."},
  Advice{Reason::malformed_answer, "", "{tool} answered with something unreadable; do not repeat a write that may have been done, and tell an operator that its server misbehaves."},
  Advice{Reason::result_too_large, "", "The answer of {tool} is over the size limit; do not repeat a write, it was done, and ask for less data if this was a query."},
  Advice{Reason::result_lost, "", "{tool} did its work but the answer was lost; do not repeat the call, look the result up with another tool."},
  Advice{Reason::crash_loop, "", "The process ended every time {tool} was called; do not submit it again before an operator has looked."},
  Advice{Reason::cancelled, "", "{tool} was cancelled and will not be called again; submit a new run if it is still wanted."},
  Advice{Reason::abandoned, "", "An operator abandoned {tool} and whether it was done stays open; ask before doing it again."},
  Advice{Reason::step_failed, "", "{tool} was not done because an earlier step failed; mend that step and submit a new run."},
  Advice{Reason::timed_out, "", "{tool} did not answer in time and may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::connection_lost, "", "The connection to {tool} was lost and the call may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::server_error, "", "{tool} failed with a server error and may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::ambiguous_answer, "", "{tool} gave an answer that proves nothing and may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::crashed, "", "The process ended while {tool} was being called and it may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::key_expired, "", "The idempotency key of {tool} is too old to repeat the call safely and it may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::cancelled_in_flight, "", "The run was cancelled while {tool} was being called and it may have been done; do not submit it again, wait for a person to settle it."},
  Advice{Reason::deadline_in_flight, "", "The run's deadline passed while {tool} was being called and it may have been done; do not submit it again, wait for a person to settle it."},
};
// clang-format on

std::string fill(std::string_view text, std::string_view tool, std::string_view when) {
  std::string out;
  out.reserve(text.size() + tool.size() + when.size());
  while (!text.empty()) {
    const auto brace = text.find('{');
    out += text.substr(0, brace);
    if (brace == std::string_view::npos) break;
    const auto close = text.find('}', brace);
    out += text.substr(brace, close - brace + 1) == "{tool}" ? tool : when;
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

std::string advice(Reason reason, std::string_view tool, std::string_view when) {
  const auto* at = std::ranges::find(kAdvice, reason, &Advice::reason);
  if (at == kAdvice.end()) return {};
  const bool timed = !when.empty() && !at->timed.empty();
  auto sentence = fill(timed ? at->timed : at->untimed, tool.empty() ? "the tool" : tool, when);
  if (tool.empty() && sentence.starts_with('t')) sentence.front() = 'T';
  return sentence;
}

}  // namespace holdfast
