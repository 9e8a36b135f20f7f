#include <catch2/catch.hpp>
#include <set>

#include "evidence_samples.h"
#include "expected_rows.h"

using namespace holdfast;
using namespace holdfast::sample;

namespace {

std::string_view letters(Verdict v) {
  switch (v) {
    case Verdict::not_sent:
      return "N";
    case Verdict::refused:
      return "R";
    case Verdict::ambiguous:
      return "A";
    case Verdict::landed:
      return "H";
    case Verdict::ok:
      return "OK";
    case Verdict::none:
      break;
  }
  return "?";
}

std::string_view letters(Action a) {
  switch (a) {
    case Action::done:
      return "DONE";
    case Action::retry:
      return "RT";
    case Action::retry_once:
      return "RT1";
    case Action::resend:
      return "RS";
    case Action::resend_once:
      return "RS1";
    case Action::wait_once:
      return "WAIT";
    case Action::wait_resend:
      return "WAIT,RS";
    case Action::check:
      return "PB";
    case Action::unknown:
      return "UNK";
    case Action::stop:
      return "STOP";
    case Action::result_lost:
      return "LOST";
    case Action::result_too_large:
      return "LARGE";
    case Action::repair_session:
      return "REPAIR";
  }
  return "?";
}

std::string letters(Strikes s) {
  return std::string(s.server ? "S" : "") + (s.tool ? "T" : "") + (s.gate ? "G" : "");
}

std::string_view action_of(const expected::Row& row, Kind kind) {
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

const expected::Row& expected_row(std::string_view id) {
  for (const auto& row : expected::kRows) {
    if (row.id == id) return row;
  }
  FAIL("no expectation for row " << id);
  throw 0;
}

struct Sample {
  std::string_view row;
  std::string_view what;
  Evidence evidence;
};

using F = Failure;
using P = Phase;
constexpr bool kMcp = true;

/// At least one attempt for every row that can be seen from outside, and every status and code that a row
/// lists.
std::vector<Sample> samples() {
  std::vector<Sample> out{
      {"A2", "dns", failed(F::dns_temporary, P::dns)},
      {"A2", "dns timeout", failed(F::timeout, P::dns)},
      {"A3", "no such name", failed(F::dns_not_found, P::dns)},
      {"A4", "refused", failed(F::connect, P::tcp)},
      {"A4", "connect timeout", failed(F::timeout, P::tcp)},
      {"A4", "handshake", failed(F::handshake, P::local, 0, kMcp)},
      {"A4", "lost while connecting", failed(F::connection_lost, P::tcp)},
      {"A5", "descriptors", failed(F::local_resource, P::local)},
      {"A6", "proxy", failed(F::proxy, P::proxy)},
      {"A6", "proxy timeout", failed(F::timeout, P::proxy)},
      {"A7", "tls reset", failed(F::tls_handshake, P::tls)},
      {"A7", "tls timeout", failed(F::timeout, P::tls)},
      {"A8", "certificate", failed(F::tls_certificate, P::tls)},
      {"A9", "dead pooled connection", failed(F::dead_connection, P::tx0)},
      {"A9", "cut before the first byte", failed(F::send_cut, P::tx0)},
      {"A13", "no process", failed(F::process_start, P::local, 0, kMcp)},
      {"A13", "process gone before the line", failed(F::process_exit, P::tx0, 0, kMcp)},
      {"B1", "cut request", failed(F::send_cut, P::tx_part)},
      {"B1", "lost in the request", failed(F::connection_lost, P::tx_part)},
      {"B2", "reset", failed(F::connection_lost, P::tx_all)},
      {"B4", "timeout", failed(F::timeout, P::tx_all)},
      {"B4", "timeout in the request", failed(F::timeout, P::tx_part)},
      {"B4", "MCP timeout after the head", failed(F::timeout, P::rx_head, 200, kMcp)},
      {"B5", "cut head", failed(F::connection_lost, P::rx_part_head)},
      {"B8", "client certificate wanted", failed(F::tls_client_certificate, P::tx_all)},
      {"B9", "no HTTP", failed(F::bad_framing, P::rx_part_head)},
      {"B9", "two lengths", failed(F::bad_framing, P::rx_head, 200)},
      {"B10", "page", failed(F::foreign, P::rx_all, 200)},
      {"B10", "page over MCP", failed(F::foreign, P::rx_all, 200, kMcp)},
      {"B11", "process died", failed(F::process_exit, P::tx_all, 0, kMcp)},
      {"B12", "crash", failed(F::crashed, P::local)},
      {"B13", "stream ended", failed(F::stream_ended, P::rx_part_body, 200, kMcp)},
      {"B13", "MCP body cut", failed(F::body_cut, P::rx_part_body, 200, kMcp)},
      {"B13", "MCP connection lost", failed(F::connection_lost, P::rx_part_body, 200, kMcp)},
      {"C1", "body cut", failed(F::body_cut, P::rx_part_body, 200)},
      {"C1", "body late", failed(F::timeout, P::rx_head, 201)},
      {"C1", "lost in the body", failed(F::connection_lost, P::rx_part_body, 200)},
      {"C2", "no JSON", failed(F::body_unreadable, P::rx_all, 200)},
      {"C3", "too large", failed(F::too_large, P::rx_part_body, 200)},
      {"C3", "too large over MCP", failed(F::too_large, P::rx_part_body, 200, kMcp)},
      {"C3", "too large over stdio", failed(F::too_large, P::rx_part_body, 0, kMcp)},
      {"C6", "sixth hop", failed(F::redirect_limit, P::rx_all, 302)},
      {"D4", "session", failed(F::session_lost, P::rx_all, 404, kMcp)},
      {"D8", "409", http(409, "version 7 is newer")},
      {"D9", "409 exists", http(409, "Already EXISTS")},
      {"D13", "422", http(422, "amount must be positive")},
      {"D17", "429 timed", http(429, "", "5")},
      {"D18", "429 bare", http(429)},
      {"F11", "business", tool_error("No such project")},
      {"F12", "quota", tool_error("Quota used up")},
      {"F13", "upstream", tool_error("UPSTREAM went away")},
      {"F13b", "other words", tool_error("hm")},
      {"F15", "malformed", failed(F::malformed_rpc, P::rx_all, 200, kMcp)},
      {"F15", "unreadable over MCP", failed(F::body_unreadable, P::rx_all, 200, kMcp)},
      {"F15", "unreadable over stdio", failed(F::body_unreadable, P::rx_all, 0, kMcp)},
      {"F15", "202 to a request", failed(F::malformed_rpc, P::rx_all, 202, kMcp)},
      {"other", "no evidence", Evidence{}},
  };
  auto reused = failed(F::connection_lost, P::tx_all);
  reused.reused_connection = true;
  out.push_back({"B3", "reset on a reused connection", reused});
  auto mcp_204 = http(204);
  mcp_204.over_mcp = true;
  out.push_back({"F15", "204 over MCP", mcp_204});
  const auto statuses = [&](std::string_view row, std::initializer_list<int> codes) {
    for (const int code : codes) out.push_back({row, "status", http(code)});
  };
  statuses("C6", {301, 302});
  statuses("C7", {303});
  statuses("C8", {307, 308});
  statuses("C9", {304, 100, 103});
  statuses("D1", {400, 402, 404, 405, 406, 410, 411, 413, 414, 415, 416, 424, 426, 428, 431, 451});
  statuses("D2", {401});
  statuses("D3", {403});
  statuses("D5", {408});
  statuses("D10", {412});
  statuses("D11", {417});
  statuses("D12", {421});
  statuses("D15", {423});
  statuses("D16", {425});
  statuses("D20", {460, 499});
  statuses("E1", {500});
  statuses("E2", {501, 505});
  statuses("E3", {502});
  statuses("E4", {503});
  statuses("E5", {504});
  statuses("E6", {506, 508, 510});
  statuses("E7", {507});
  statuses("E8", {511});
  statuses("E9", {520});
  statuses("E10", {521, 523});
  statuses("E11", {522});
  statuses("E12", {524});
  statuses("E13", {525, 526});
  statuses("E14", {527, 530, 598, 599, 509, 555});
  statuses("E15", {529});
  const auto codes = [&](std::string_view row, std::initializer_list<int> list) {
    for (const int code : list) out.push_back({row, "code", rpc(code)});
  };
  codes("F1", {-32700});
  codes("F2", {-32600});
  codes("F3", {-32601});
  codes("F4", {-32602});
  codes("F5", {-32603});
  codes("F7", {-32000, -32001, -32002, -32010, -32019});
  codes("F8", {-32042});
  codes("F9", {-32020, -32021, -32022});
  codes("F10", {-32800});
  codes("other", {7, 0, -1, -32023, -31999, -32099});
  return out;
}

}  // namespace

TEST_CASE("the table is the described one, row by row") {
  const auto rows = failure_table();
  REQUIRE(rows.size() == expected::kRows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& want = expected::kRows[i];
    CAPTURE(row.id);
    CHECK(row.id == want.id);
    CHECK(letters(row.verdict) == want.verdict);
    CHECK(letters(row.read) == want.read);
    CHECK(letters(row.keyed) == want.keyed);
    CHECK(letters(row.checkable) == want.checkable);
    CHECK(letters(row.plain) == want.plain);
    CHECK(letters(row.strikes) == want.strikes);
    CHECK(word(row.failure) == want.failure);
    CHECK(word(row.doubt) == want.doubt);
    CHECK_FALSE(row.observed.empty());
  }
}

TEST_CASE("every sample falls into its row, for every kind") {
  for (const auto& s : samples()) {
    for (const auto kind : kKinds) {
      const auto& want = expected_row(s.row);
      const auto got = classify(s.evidence, policy(), kind, false);
      CAPTURE(s.row, s.what, s.evidence.http_status, s.evidence.rpc_code.value_or(0), word(kind));
      CHECK(got.row == want.id);
      CHECK(letters(got.verdict) == want.verdict);
      CHECK(letters(got.action) == action_of(want, kind));
      CHECK(letters(got.strikes) == want.strikes);
      CHECK(word(got.doubt) == (kind == Kind::read ? "" : want.doubt));
      CHECK((got.delivery == Delivery::not_sent) == (got.verdict == Verdict::not_sent));
      if (got.success_for_server) CHECK_FALSE(got.strikes.server);
      if (got.success_for_tool) CHECK_FALSE(got.strikes.tool);
    }
  }
}

TEST_CASE("every row that a transport can produce has a sample") {
  std::set<std::string_view> seen{"A1", "A10", "A11", "B6",  "B7", "C4", "C5",
                                  "D6", "D7",  "D14", "D19", "F6", "F16"};
  for (const auto& s : samples()) seen.insert(s.row);
  for (const auto& row : failure_table()) {
    CAPTURE(row.id);
    CHECK(seen.contains(row.id));
  }
}

TEST_CASE("no row lets a plain write be sent again after a doubt") {
  const std::set<Action> harmless{Action::unknown, Action::result_lost, Action::result_too_large,
                                  Action::done};
  for (const auto& row : failure_table()) {
    if (row.verdict != Verdict::ambiguous && row.verdict != Verdict::landed) continue;
    CAPTURE(row.id);
    CHECK(harmless.contains(row.plain));
    if (row.verdict == Verdict::ambiguous) CHECK(row.doubt != Reason::none);
  }
}
