#include "recognise.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/ascii.h"
#include "holdfast/core/json.h"
#include "holdfast/policy/classify.h"

namespace holdfast {
namespace {

constexpr std::size_t kPatternBytes =
    64 * 1024;  // of a plain answer's body that error patterns are looked for in

struct StatusRow {
  int status;
  std::string_view row;
};

constexpr std::array kStatusRows{
    StatusRow{207, "C5"},  StatusRow{301, "C6"},  StatusRow{302, "C6"},  StatusRow{303, "C7"},
    StatusRow{304, "C9"},  StatusRow{307, "C8"},  StatusRow{308, "C8"},  StatusRow{400, "D1"},
    StatusRow{401, "D2"},  StatusRow{402, "D1"},  StatusRow{403, "D3"},  StatusRow{404, "D1"},
    StatusRow{405, "D1"},  StatusRow{406, "D1"},  StatusRow{408, "D5"},  StatusRow{410, "D1"},
    StatusRow{411, "D1"},  StatusRow{412, "D10"}, StatusRow{413, "D1"},  StatusRow{414, "D1"},
    StatusRow{415, "D1"},  StatusRow{416, "D1"},  StatusRow{417, "D11"}, StatusRow{421, "D12"},
    StatusRow{423, "D15"}, StatusRow{424, "D1"},  StatusRow{425, "D16"}, StatusRow{426, "D1"},
    StatusRow{428, "D1"},  StatusRow{431, "D1"},  StatusRow{451, "D1"},  StatusRow{460, "D20"},
    StatusRow{499, "D20"}, StatusRow{500, "E1"},  StatusRow{501, "E2"},  StatusRow{502, "E3"},
    StatusRow{503, "E4"},  StatusRow{504, "E5"},  StatusRow{505, "E2"},  StatusRow{506, "E6"},
    StatusRow{507, "E7"},  StatusRow{508, "E6"},  StatusRow{510, "E6"},  StatusRow{511, "E8"},
    StatusRow{520, "E9"},  StatusRow{521, "E10"}, StatusRow{522, "E11"}, StatusRow{523, "E10"},
    StatusRow{524, "E12"}, StatusRow{525, "E13"}, StatusRow{526, "E13"}, StatusRow{529, "E15"},
};

bool is_2xx(int status) {
  return status >= 200 && status <= 299;
}

bool any_in(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return contains_word(text, w); });
}

bool any_in(std::string_view text, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& p) { return contains_word(text, p); });
}

constexpr std::array<std::string_view, 5> kInFlight{"in progress", "in flight", "in-flight", "processing",
                                                    "concurrent"};
constexpr std::array<std::string_view, 2> kKey{"key", "idempoten"};
constexpr std::array<std::string_view, 5> kOtherPayload{"used", "reuse", "different", "mismatch",
                                                        "same param"};
constexpr std::array<std::string_view, 3> kExists{"exist", "duplicate", "unique"};

bool says_key_reused(std::string_view text) {
  return any_in(text, kKey) && any_in(text, kOtherPayload);
}

std::string_view conflict_row(std::string_view text, Kind kind) {
  if (kind == Kind::keyed && any_in(text, kInFlight)) return "D6";
  if (kind == Kind::keyed && says_key_reused(text)) return "D7";
  return any_in(text, kExists) ? "D9" : "D8";
}

std::string_view status_row(const Evidence& e, Kind kind) {
  const int status = e.http_status;
  if (status == 409) return conflict_row(e.text, kind);
  if (status == 422) return kind == Kind::keyed && says_key_reused(e.text) ? "D14" : "D13";
  if (status == 429) return e.retry_after.empty() ? "D18" : "D17";
  const auto* at = std::ranges::lower_bound(kStatusRows, status, {}, &StatusRow::status);
  if (at != kStatusRows.end() && at->status == status) return at->row;
  if (status >= 100 && status <= 199) return "C9";
  if (is_2xx(status)) return "C4";
  return status >= 500 && status <= 599 ? "E14" : "other";
}

Finding by_status(const Evidence& e, const ToolPolicy& policy, Kind kind, bool complete) {
  // Over MCP these claim success, and the verdict would be inside the body.
  if (e.over_mcp && (is_2xx(e.http_status) || e.http_status == 303)) return {.row = "F15"};
  Finding found{.row = status_row(e, kind), .complete = complete, .by_status = true};
  found.refusal = row_of(found.row).verdict == Verdict::ambiguous &&
                  std::ranges::find(policy.refusals, e.http_status) != policy.refusals.end();
  return found;
}

/// The words that error patterns are looked for in: the tool's own, else the start of its answer.
std::string_view words_of(const Evidence& e) {
  return e.text.empty() ? std::string_view(e.result).substr(0, kPatternBytes) : std::string_view(e.text);
}

std::string_view tool_error_row(const Evidence& e, const ErrorPatterns& errors) {
  const auto words = words_of(e);
  if (any_in(words, errors.business)) return "F11";
  if (any_in(words, errors.rate_limit)) return "F12";
  if (any_in(words, errors.ambiguous)) return "F13";
  return "F13b";
}

/// What is not there equals nothing.
bool fails_success_rule(const Evidence& e, const ToolPolicy& policy) {
  if (!policy.success) return false;
  const auto document = json::parse(e.result);
  const auto* value = document ? json::at(*document, policy.success->pointer) : nullptr;
  const bool equal = value != nullptr && json::canonical(*value) == policy.success->value;
  return equal == policy.success->negate;
}

std::string_view rpc_row(std::int64_t code) {
  switch (code) {
    case -32700:
      return "F1";
    case -32600:
      return "F2";
    case -32601:
      return "F3";
    case -32602:
      return "F4";
    case -32603:
      return "F5";
    case -32042:
      return "F8";
    case -32020:
    case -32021:
    case -32022:
      return "F9";
    case -32800:
      return "F10";
    default:
      return code >= -32019 && code <= -32000 ? "F7" : "other";
  }
}

/// An error status around an MCP answer: the stricter of the two decides, and a reviewed refusal or a missing
/// credential is settled by the status alone.
Finding stricter(const Finding& body, const Evidence& e, const ToolPolicy& policy, Kind kind) {
  const int status = e.http_status;
  if (status == 0 || is_2xx(status)) return body;
  const auto head = by_status(e, policy, kind, true);
  if (head.refusal || status == 401 || status == 403) return head;
  const auto verdict_of = [](const Finding& f) { return row_of(f.row).verdict; };
  if (verdict_of(head) == Verdict::ambiguous) return head;
  if (verdict_of(body) == Verdict::ambiguous) return body;
  return status == 429 ? head : body;
}

Finding by_answer(const Evidence& e, const ToolPolicy& policy, Kind kind) {
  switch (e.answer) {
    case Answer::http:
      if (!e.over_mcp && is_2xx(e.http_status) && fails_success_rule(e, policy)) {
        return {.row = tool_error_row(e, policy.errors), .complete = true};
      }
      return by_status(e, policy, kind, true);
    case Answer::result: {
      if (e.http_status != 0 && !is_2xx(e.http_status)) return stricter({.row = "F15"}, e, policy, kind);
      if (fails_success_rule(e, policy)) return {.row = tool_error_row(e, policy.errors), .complete = true};
      return {.row = "", .complete = true};
    }
    case Answer::tool_error:
      return stricter({.row = tool_error_row(e, policy.errors), .complete = true}, e, policy, kind);
    case Answer::rpc_error:
      return stricter({.row = e.rpc_code ? rpc_row(*e.rpc_code) : "F15", .complete = e.rpc_code.has_value()},
                      e, policy, kind);
    case Answer::none:
      break;
  }
  return {.row = "other"};
}

/// A break or a silence before the first request byte was accepted.
std::string_view never_sent_row(Phase phase) {
  switch (phase) {
    case Phase::dns:
      return "A2";
    case Phase::proxy:
      return "A6";
    case Phase::tls:
      return "A7";
    case Phase::tx0:
      return "A9";
    default:
      return "A4";
  }
}

std::string_view lost_row(const Evidence& e) {
  if (e.phase < Phase::tx_part) return never_sent_row(e.phase);
  if (e.over_mcp && is_2xx(e.http_status)) return "B13";
  if (e.phase == Phase::tx_part) return "B1";
  if (e.phase >= Phase::rx_part_head) return "B5";
  return e.reused_connection ? "B3" : "B2";
}

std::string_view given_up_row(const Evidence& e) {
  if (e.phase < Phase::tx_part) return e.failure == Failure::cancelled ? "A1" : never_sent_row(e.phase);
  return e.phase == Phase::rx_part_head ? "B5" : "B4";
}

/// Failures whose claim "nothing was sent" the phase must bear out.
std::string_view claimed_unsent_row(const Evidence& e, std::string_view row) {
  return e.phase < Phase::tx_part ? row : lost_row(e);
}

std::string_view failure_row(const Evidence& e) {
  switch (e.failure) {
    case Failure::dns_temporary:
      return claimed_unsent_row(e, "A2");
    case Failure::dns_not_found:
      return claimed_unsent_row(e, "A3");
    case Failure::connect:
      return claimed_unsent_row(e, "A4");
    case Failure::local_resource:
      return claimed_unsent_row(e, "A5");
    case Failure::proxy:
    case Failure::proxy_auth:
      return claimed_unsent_row(e, "A6");
    case Failure::tls_handshake:
      return claimed_unsent_row(e, "A7");
    case Failure::tls_certificate:
      return claimed_unsent_row(e, "A8");
    case Failure::dead_connection:
      return claimed_unsent_row(e, "A9");
    case Failure::process_start:
      return claimed_unsent_row(e, "A13");
    case Failure::address_refused:
      return "A8";
    // The handshake has an exchange of its own; the call had not left.
    case Failure::handshake:
    case Failure::bad_session:
      return "A4";
    case Failure::not_listed:
      return "A1";
    case Failure::send_cut:
    case Failure::connection_lost:
      return lost_row(e);
    case Failure::timeout:
    case Failure::cancelled:
      return given_up_row(e);
    case Failure::bad_framing:
      return "B9";
    case Failure::foreign:
      return "B10";
    case Failure::tls_client_certificate:
      return "B8";
    case Failure::process_exit:
      return e.phase < Phase::tx_part ? "A13" : "B11";
    case Failure::stream_ended:
      return "B13";
    case Failure::body_cut:
      return e.over_mcp ? "B13" : "B5";
    case Failure::body_unreadable:
      return e.over_mcp ? "F15" : "B9";
    case Failure::too_large:
      return "C3";
    case Failure::session_lost:
      return "D4";
    case Failure::redirect_limit:
      return "C6";
    case Failure::malformed_rpc:
      return "F15";
    case Failure::crashed:
      return "B12";
    case Failure::none:
      break;
  }
  return "other";
}

/// The status was read, then the rest of the answer failed: does the status decide already?
bool head_decides(const Evidence& e) {
  switch (e.failure) {
    case Failure::send_cut:
    case Failure::connection_lost:
    case Failure::timeout:
    case Failure::cancelled:
    case Failure::foreign:
    case Failure::stream_ended:
    case Failure::body_cut:
    case Failure::body_unreadable:
    case Failure::too_large:
    case Failure::malformed_rpc:
      return e.phase >= Phase::rx_head && e.http_status >= 300;
    default:
      return false;
  }
}

/// Plain HTTP, 2xx read, body lost: the effect happened. Empty when that is not so.
std::string_view landed_row(const Evidence& e) {
  if (e.over_mcp || !is_2xx(e.http_status) || e.phase < Phase::rx_head) return {};
  switch (e.failure) {
    case Failure::send_cut:
    case Failure::connection_lost:
    case Failure::timeout:
    case Failure::cancelled:
    case Failure::stream_ended:
    case Failure::body_cut:
      return "C1";
    case Failure::body_unreadable:
      return "C2";
    default:
      return {};
  }
}

}  // namespace

const Row& row_of(std::string_view id) {
  // Each answer is looked up, and the table is in the order of docs/policy.md.
  static const auto by_id = [] {
    std::vector<const Row*> rows;
    for (const Row& row : failure_table()) rows.push_back(&row);
    std::ranges::stable_sort(rows, {}, &Row::id);
    return rows;
  }();
  const auto at = std::ranges::lower_bound(by_id, id, {}, &Row::id);
  return at != by_id.end() && (*at)->id == id ? **at : failure_table().back();
}

bool contains_word(std::string_view text, std::string_view pattern) {
  return !pattern.empty() && !std::ranges::search(text, pattern, {}, ascii::lower, ascii::lower).empty();
}

Finding recognise(const Evidence& evidence, const ToolPolicy& policy, Kind kind) {
  if (evidence.failure == Failure::none) return by_answer(evidence, policy, kind);
  if (head_decides(evidence)) return by_status(evidence, policy, kind, false);
  if (const auto row = landed_row(evidence); !row.empty()) return {.row = row, .by_status = true};
  return {.row = failure_row(evidence), .complete = evidence.failure == Failure::session_lost};
}

}  // namespace holdfast
