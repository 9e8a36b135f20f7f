#include "holdfast/policy/classify.h"

#include <array>
#include <utility>

#include "core/canary.h"
#include "holdfast/policy/retry.h"
#include "recognise.h"

namespace holdfast {
namespace {

using namespace std::string_view_literals;

constexpr std::array kActionWords{"done"sv,          "retry"sv,     "retry once"sv,   "resend"sv,
                                  "resend once"sv,   "wait once"sv, "wait, resend"sv, "check"sv,
                                  "unknown"sv,       "stop"sv,      "result lost"sv,  "result too large"sv,
                                  "repair session"sv};
static_assert(kActionWords.size() == std::to_underlying(Action::repair_session) + 1);

Action action_for(const Row& row, Kind kind) {
  switch (kind) {
    case Kind::read:
      return row.read;
    case Kind::keyed:
      return row.keyed;
    case Kind::checkable:
      return row.checkable;
    case Kind::plain:
      break;
  }
  return row.plain;
}

bool struck(const Strikes& s) {
  return s.server || s.tool || s.gate;
}

/// Ended by us, not by the server. A failed handshake may be a timeout: where the deadline was cut short it
/// is taken for one.
bool says_nothing(const Evidence& e, bool clipped) {
  if (e.failure == Failure::cancelled) return true;
  return clipped && (e.failure == Failure::timeout || e.failure == Failure::handshake);
}

Delivery delivery_of(const Evidence& e, const Finding& found, Verdict verdict) {
  if (verdict == Verdict::not_sent) return Delivery::not_sent;
  if (e.failure == Failure::none || found.by_status) return Delivery::answered;
  switch (e.failure) {
    case Failure::too_large:
    case Failure::foreign:
    case Failure::body_unreadable:
    case Failure::session_lost:
    case Failure::redirect_limit:
    case Failure::malformed_rpc:
      return Delivery::answered;
    default:
      return Delivery::maybe_sent;
  }
}

/// A well-formed Retry-After; whether its time is still ahead only the caller can tell.
bool names_a_time(const Evidence& e) {
  return retry_after_wait(e.retry_after, {}, Instant{0}).has_value();
}

void apply_refusal(Judgement& j, const Evidence& e) {
  j.verdict = Verdict::refused;
  j.action = e.http_status == 503 && !e.retry_after.empty() ? Action::wait_resend : Action::retry;
  j.failure = Reason::none;
  j.doubt = Reason::none;
}

/// What one row says differently for a kind, a setting or a failure of its group.
void apply_row_details(Judgement& j, const Evidence& e, const ToolPolicy& policy, Kind kind) {
  if (j.row == "C1" && kind == Kind::read) j.failure = Reason::none;
  if (j.row == "C2" && kind == Kind::read) j.failure = Reason::malformed_answer;
  if (j.row == "E4") j.strikes.gate = names_a_time(e);
  if (j.row == "D3" && names_a_time(e)) {
    j.action = Action::wait_once;
    j.failure = Reason::rate_limited;
    j.strikes.gate = true;
  }
  if (j.row == "F12" && policy.single_step) {
    j.verdict = Verdict::refused;
    j.doubt = Reason::none;
    if (kind == Kind::plain) j.action = Action::wait_once;
  }
  if (j.row == "other") {
    if (e.http_status >= 400 && e.http_status <= 499) j.klass = AttemptClass::http_4xx;
    if (e.http_status >= 300 && e.http_status <= 399) j.klass = AttemptClass::redirect;
    if (e.answer == Answer::rpc_error) j.klass = AttemptClass::rpc_error;
  }
}

void apply_failure_details(Judgement& j, const Evidence& e) {
  switch (e.failure) {
    case Failure::proxy_auth:
      if (j.verdict == Verdict::not_sent) j.action = Action::stop;
      break;
    case Failure::address_refused:
      j.klass = AttemptClass::connect;
      j.strikes = {};
      break;
    case Failure::bad_session:
      j.klass = AttemptClass::malformed;
      break;
    case Failure::not_listed:
      j.failure = Reason::tool_not_found;
      break;
    case Failure::foreign:
      j.strikes.server = true;
      break;
    case Failure::timeout:
      if (j.row == "A9" || j.row == "B4" || j.row == "B5" || j.row == "C1") j.klass = AttemptClass::timeout;
      if (j.row == "B5") j.doubt = Reason::timed_out;
      break;
    case Failure::cancelled:
      j.klass = AttemptClass::cancelled;
      if (j.verdict == Verdict::not_sent) j.failure = Reason::cancelled;
      if (j.verdict == Verdict::ambiguous) j.doubt = Reason::cancelled_in_flight;
      break;
    default:
      break;
  }
}

void apply_successes(Judgement& j, const Finding& found) {
  if (!found.complete) return;
  j.success_for_server = !j.strikes.server;
  j.success_for_tool = !struck(j.strikes) && j.verdict != Verdict::ambiguous;
}

}  // namespace

std::string_view word(Action action) {
  const auto index = static_cast<std::size_t>(std::to_underlying(action));
  return index < kActionWords.size() ? kActionWords[index] : std::string_view{};
}

Judgement classify(const Evidence& evidence, const ToolPolicy& policy, Kind kind, bool clipped) {
  const auto found = recognise(evidence, policy, kind);
  if (found.row.empty()) return {.success_for_server = true, .success_for_tool = true};
  const auto& row = row_of(found.row);
  Judgement j{.row = row.id,
              .verdict = row.verdict,
              .action = action_for(row, kind),
              .klass = row.klass,
              .failure = row.failure,
              .doubt = row.doubt,
              .strikes = row.strikes};
  apply_row_details(j, evidence, policy, kind);
  apply_failure_details(j, evidence);
  const bool bold = canary(Canary::server_error_is_refusal) && j.klass == AttemptClass::http_5xx;
  if (found.refusal || bold) apply_refusal(j, evidence);
  if (j.verdict == Verdict::ok) j.row = {};
  if (j.action == Action::check && !policy.check) j.action = Action::unknown;
  if (kind == Kind::read) j.doubt = Reason::none;
  if (says_nothing(evidence, clipped)) j.strikes = {};
  apply_successes(j, found);
  j.delivery = delivery_of(evidence, found, j.verdict);
  return j;
}

}  // namespace holdfast
