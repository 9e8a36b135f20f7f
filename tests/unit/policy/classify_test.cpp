// What settings, kinds and the rest of the evidence change about a row.
#include "holdfast/policy/classify.h"

#include <catch2/catch.hpp>

#include "evidence_samples.h"

using namespace holdfast;
using namespace holdfast::sample;

namespace {

Judgement plain(const Evidence& e, const ToolPolicy& p = policy()) {
  return classify(e, p, Kind::plain, false);
}

Evidence http_ok(std::string result) {
  auto e = http(200);
  e.result = std::move(result);
  return e;
}

Evidence mcp_result(std::string result, int status = 200) {
  return {.phase = Phase::parsed,
          .answer = Answer::result,
          .http_status = status,
          .result = std::move(result),
          .over_mcp = true};
}

}  // namespace

TEST_CASE("complete answers of the agreed kind are done") {
  for (const auto kind : kKinds) {
    for (const int status : {200, 201, 202, 204, 207, 226, 299}) {
      CAPTURE(status, word(kind));
      const auto j = classify(http(status), policy(), kind, false);
      CHECK(j.row.empty());
      CHECK(j.action == Action::done);
      CHECK(j.verdict == Verdict::ok);
      CHECK(j.klass == AttemptClass::ok);
      CHECK(j.delivery == Delivery::answered);
      CHECK(j.success_for_server);
      CHECK(j.success_for_tool);
    }
    for (const int status : {200, 0}) {
      const auto j = classify(mcp_result("{}", status), policy(), kind, false);
      CHECK(j.action == Action::done);
      CHECK(j.success_for_server);
    }
  }
}

TEST_CASE("a 303 to a write is done and keeps its Location") {
  auto e = http(303);
  e.result = R"({"location":"/t/done"})";
  for (const auto kind : kWrites) {
    const auto j = classify(e, policy(), kind, false);
    CHECK(j.row == "C7");
    CHECK(j.action == Action::done);
    CHECK(j.verdict == Verdict::landed);
    CHECK(j.klass == AttemptClass::redirect);
  }
  e.over_mcp = true;
  CHECK(plain(e).row == "F15");
}

TEST_CASE("refusals loosen an ambiguous status for every kind and nothing else") {
  auto p = policy();
  p.refusals = {503, 521, 404, 418};
  for (const auto kind : kKinds) {
    CAPTURE(word(kind));
    for (const int status : {503, 521, 418}) {
      const auto j = classify(http(status), p, kind, false);
      CHECK(j.verdict == Verdict::refused);
      CHECK(j.action == Action::retry);
      CHECK(j.failure == Reason::none);
      CHECK(j.doubt == Reason::none);
    }
    CHECK(classify(http(503, "", "2"), p, kind, false).action == Action::wait_resend);
    CHECK(classify(http(404), p, kind, false).action == Action::stop);
    CHECK(classify(http(502), p, kind, false).verdict == Verdict::ambiguous);
    CHECK(classify(rpc(-32603, 503), p, kind, false).verdict == Verdict::refused);
    CHECK(classify(rpc(-32603), p, kind, false).verdict == Verdict::ambiguous);
  }
}

TEST_CASE("a 503 with a time strikes the gate too") {
  CHECK(plain(http(503, "", "5")).strikes.gate);
  CHECK_FALSE(plain(http(503)).strikes.gate);
  for (const auto* header : {"0", "-1", "soon"}) CHECK_FALSE(plain(http(503, "", header)).strikes.gate);
  CHECK(plain(http(503, "", "5")).action == Action::unknown);
}

TEST_CASE("a 403 is waited for only when it names a time") {
  const auto timed = plain(http(403, "", "30"));
  CHECK(timed.action == Action::wait_once);
  CHECK(timed.verdict == Verdict::refused);
  CHECK(timed.failure == Reason::rate_limited);
  CHECK(timed.strikes.gate);
  for (const auto* header : {"", "0", "-1", "soon"}) {
    CAPTURE(header);
    CHECK(plain(http(403, "slow down", header)).action == Action::stop);
  }
  CHECK(plain(http(401, "", "30")).action == Action::stop);
  CHECK(plain(http(400, "", "30")).action == Action::stop);
}

TEST_CASE("409 and 422 are read by their words on keyed writes only") {
  struct Case {
    int status;
    const char* text;
    const char* row;
    Action action;
  };
  const Case cases[] = {
      {409, "A request with this key is In Progress", "D6", Action::wait_resend},
      {409, "idempotency key in flight", "D6", Action::wait_resend},
      {409, "still processing", "D6", Action::wait_resend},
      {409, "concurrent request", "D6", Action::wait_resend},
      {409, "idempotency key already used with a different request", "D7", Action::stop},
      {409, "key_reused", "D7", Action::stop},
      {409, "customer exists", "D9", Action::stop},
      {409, "", "D8", Action::stop},
      {422, "Idempotency-Key was used with another payload", "D14", Action::stop},
      {422, "name is too long", "D13", Action::stop},
  };
  for (const auto& c : cases) {
    CAPTURE(c.status, c.text);
    const auto j = classify(http(c.status, c.text), policy(), Kind::keyed, false);
    CHECK(j.row == c.row);
    CHECK(j.action == c.action);
    CHECK(j.verdict == Verdict::refused);
    CHECK(plain(http(c.status, c.text)).action == Action::stop);
    CHECK(classify(http(c.status, c.text), policy(), Kind::checkable, false).action == Action::stop);
  }
  CHECK(classify(http(409, "in progress"), policy(), Kind::read, false).action == Action::retry_once);
}

TEST_CASE("a success rule turns a 2xx into a tool error") {
  auto p = policy();
  p.success = Match{.pointer = "/ok", .value = "true"};
  CHECK(plain(http_ok(R"({"ok":true})"), p).action == Action::done);
  const auto no = plain(http_ok(R"({"ok":false})"), p);
  CHECK(no.row == "F13b");
  CHECK(no.action == Action::stop);
  CHECK(no.failure == Reason::tool_error);
  CHECK(no.strikes.tool);
  CHECK(no.success_for_server);
  CHECK(plain(http_ok(R"({"ok":false,"why":"No such customer"})"), p).row == "F11");
  CHECK(plain(http_ok(R"({"ok":false,"why":"quota"})"), p).row == "F12");
  CHECK(plain(http_ok(R"({"ok":false,"why":"upstream"})"), p).row == "F13");
  // What is not there equals nothing.
  for (const char* without : {R"({"done":true})", "null", R"("ok")", "{broken"}) {
    INFO(without);
    CHECK(plain(http_ok(without), p).row == "F13b");
    CHECK(plain(mcp_result(without), p).row == "F13b");
    auto opposite = p;
    opposite.success->negate = true;
    CHECK(plain(http_ok(without), opposite).action == Action::done);
  }
  CHECK(plain(http_ok(R"({"note":"upstream"})"), p).row == "F13");
  CHECK(plain(mcp_result(R"({"ok":false})"), p).row == "F13b");
  p.success->negate = true;
  CHECK(plain(http_ok(R"({"ok":true})"), p).row == "F13b");
  CHECK(plain(http_ok(R"({"ok":1})"), p).action == Action::done);
  p.success = Match{.pointer = "/n", .value = "1"};
  CHECK(plain(http_ok(R"({"n":1.0})"), p).row == "F13b");
}

TEST_CASE("error patterns are asked in order: business, rate limit, ambiguous") {
  CHECK(plain(tool_error("upstream: quota: no such user")).row == "F11");
  CHECK(plain(tool_error("upstream quota")).row == "F12");
  auto p = policy();
  p.errors.business = {""};
  CHECK(plain(tool_error("hm"), p).row == "F13b");
  const ToolPolicy defaults;
  CHECK(plain(tool_error("Customer NOT FOUND"), defaults).row == "F11");
  CHECK(plain(tool_error("request timed out"), defaults).row == "F13");
  CHECK(plain(tool_error("status 503"), defaults).row == "F13");
}

TEST_CASE("a rate limit in the answer proves nothing was done only for a single-step tool") {
  auto p = policy();
  CHECK(plain(tool_error("quota"), p).action == Action::unknown);
  CHECK(plain(tool_error("quota"), p).doubt == Reason::ambiguous_answer);
  p.single_step = true;
  const auto j = plain(tool_error("quota"), p);
  CHECK(j.action == Action::wait_once);
  CHECK(j.verdict == Verdict::refused);
  CHECK(j.doubt == Reason::none);
  CHECK(classify(tool_error("quota"), p, Kind::keyed, false).action == Action::wait_resend);
  CHECK(classify(tool_error("quota"), p, Kind::checkable, false).action == Action::check);
}

TEST_CASE("an error status around a JSON-RPC answer: the stricter row decides") {
  CHECK(plain(rpc(-32600, 500)).row == "E1");
  CHECK(plain(rpc(-32603, 400)).row == "F5");
  CHECK(plain(rpc(-32000, 400)).row == "F7");
  CHECK(plain(rpc(-32602, 400)).row == "F4");
  CHECK(plain(rpc(-32601, 404)).failure == Reason::tool_not_found);
  CHECK(plain(rpc(-32021, 400)).row == "F9");
  CHECK(plain(rpc(-32000, 401)).row == "D2");
  CHECK(plain(rpc(-32603, 403)).row == "D3");
  CHECK(plain(rpc(-32600, 429)).row == "D18");
  CHECK(plain(rpc(-32603, 503)).row == "E4");
  auto e = tool_error("hm");
  e.http_status = 500;
  CHECK(plain(e).row == "E1");
  e.http_status = 400;
  CHECK(plain(e).row == "F13b");
  CHECK(plain(mcp_result("{}", 400)).row == "F15");
  CHECK(plain(mcp_result("{}", 502)).row == "E3");
  auto nameless = rpc(0);
  nameless.rpc_code.reset();
  CHECK(plain(nameless).row == "F15");
}

TEST_CASE("an error status decides although its body was lost") {
  for (const auto failure : {Failure::body_cut, Failure::timeout, Failure::connection_lost, Failure::foreign,
                             Failure::body_unreadable, Failure::too_large, Failure::malformed_rpc}) {
    for (const bool over_mcp : {false, true}) {
      CAPTURE(static_cast<int>(failure), over_mcp);
      CHECK(plain(failed(failure, Phase::rx_part_body, 404, over_mcp)).row == "D1");
      const auto j = plain(failed(failure, Phase::rx_part_body, 502, over_mcp));
      CHECK(j.row == "E3");
      CHECK(j.doubt == Reason::server_error);
      CHECK(j.delivery == Delivery::answered);
      CHECK_FALSE(plain(failed(failure, Phase::rx_part_body, 404, over_mcp)).success_for_server);
    }
  }
  CHECK(plain(failed(Failure::foreign, Phase::rx_all, 404)).strikes.server);
}

TEST_CASE("timeouts: the phase says what is possible, and clipped ones strike nobody") {
  struct Case {
    Phase phase;
    int status;
    bool over_mcp;
    Verdict verdict;
    Reason doubt;
    AttemptClass klass;
    Delivery delivery;
  };
  const Case cases[] = {
      {Phase::dns, 0, false, Verdict::not_sent, Reason::none, AttemptClass::dns, Delivery::not_sent},
      {Phase::tcp, 0, false, Verdict::not_sent, Reason::none, AttemptClass::connect, Delivery::not_sent},
      {Phase::tls, 0, false, Verdict::not_sent, Reason::none, AttemptClass::tls, Delivery::not_sent},
      {Phase::tx0, 0, false, Verdict::not_sent, Reason::none, AttemptClass::timeout, Delivery::not_sent},
      {Phase::tx_part, 0, false, Verdict::ambiguous, Reason::timed_out, AttemptClass::timeout,
       Delivery::maybe_sent},
      {Phase::tx_all, 0, false, Verdict::ambiguous, Reason::timed_out, AttemptClass::timeout,
       Delivery::maybe_sent},
      {Phase::rx_part_head, 0, false, Verdict::ambiguous, Reason::timed_out, AttemptClass::timeout,
       Delivery::maybe_sent},
      {Phase::rx_part_body, 200, true, Verdict::ambiguous, Reason::timed_out, AttemptClass::timeout,
       Delivery::maybe_sent},
      {Phase::rx_part_body, 200, false, Verdict::landed, Reason::none, AttemptClass::timeout,
       Delivery::answered},
  };
  for (const auto& c : cases) {
    const auto e = failed(Failure::timeout, c.phase, c.status, c.over_mcp);
    const auto j = plain(e);
    CAPTURE(word(c.phase), c.status, c.over_mcp);
    CHECK(j.verdict == c.verdict);
    CHECK(j.doubt == c.doubt);
    CHECK(j.klass == c.klass);
    CHECK(j.delivery == c.delivery);
    const auto clipped = classify(e, policy(), Kind::plain, true);
    CHECK(clipped.verdict == c.verdict);
    CHECK_FALSE((clipped.strikes.server || clipped.strikes.tool || clipped.strikes.gate));
  }
  CHECK(plain(failed(Failure::timeout, Phase::tx_all)).strikes.tool);
  CHECK(classify(http(500), policy(), Kind::plain, true).strikes.tool);
  const auto handshake = failed(Failure::handshake, Phase::local, 0, true);
  CHECK(plain(handshake).strikes.server);
  CHECK_FALSE(classify(handshake, policy(), Kind::plain, true).strikes.server);
}

TEST_CASE("a cancelled call strikes nobody and leaves the doubt that the phase leaves") {
  const auto before = plain(failed(Failure::cancelled, Phase::tcp));
  CHECK(before.verdict == Verdict::not_sent);
  CHECK(before.action == Action::stop);
  CHECK(before.failure == Reason::cancelled);
  const auto on_the_wire = plain(failed(Failure::cancelled, Phase::tx_all));
  CHECK(on_the_wire.verdict == Verdict::ambiguous);
  CHECK(on_the_wire.action == Action::unknown);
  CHECK(on_the_wire.doubt == Reason::cancelled_in_flight);
  CHECK_FALSE(on_the_wire.strikes.tool);
  const auto after_head = plain(failed(Failure::cancelled, Phase::rx_head, 200));
  CHECK(after_head.action == Action::result_lost);
  CHECK_FALSE(after_head.strikes.tool);
  for (const auto& j : {before, on_the_wire, after_head}) CHECK(j.klass == AttemptClass::cancelled);
}

TEST_CASE("local failures") {
  const auto unlisted = plain(failed(Failure::not_listed, Phase::local, 0, true));
  CHECK(unlisted.action == Action::stop);
  CHECK(unlisted.failure == Reason::tool_not_found);
  CHECK(unlisted.klass == AttemptClass::connect);
  const auto address = plain(failed(Failure::address_refused, Phase::dns));
  CHECK(address.action == Action::stop);
  CHECK(address.failure == Reason::unreachable);
  CHECK(address.klass == AttemptClass::connect);
  CHECK_FALSE(address.strikes.server);
  const auto session = plain(failed(Failure::bad_session, Phase::local, 0, true));
  CHECK(session.verdict == Verdict::not_sent);
  CHECK(session.klass == AttemptClass::malformed);
  CHECK(session.strikes.server);
  const auto proxy = plain(failed(Failure::proxy_auth, Phase::proxy));
  CHECK(proxy.action == Action::stop);
  CHECK(proxy.failure == Reason::unreachable);
}

TEST_CASE("what a read keeps of the rows about lost answers") {
  CHECK(classify(failed(Failure::body_cut, Phase::rx_part_body, 200), policy(), Kind::read, false).failure ==
        Reason::none);
  CHECK(classify(failed(Failure::body_unreadable, Phase::rx_all, 200), policy(), Kind::read, false).failure ==
        Reason::malformed_answer);
  CHECK(classify(failed(Failure::too_large, Phase::rx_all, 200), policy(), Kind::read, false).failure ==
        Reason::result_too_large);
  CHECK(classify(http(500), policy(), Kind::read, false).doubt == Reason::none);
}

TEST_CASE("a check is asked only where there is one") {
  auto p = policy();
  p.check.reset();
  CHECK(classify(http(302), p, Kind::keyed, false).action == Action::unknown);
  CHECK(classify(http(302), policy(), Kind::keyed, false).action == Action::check);
  CHECK(classify(http(500), p, Kind::checkable, false).action == Action::unknown);
}

TEST_CASE("classes of what no row names") {
  CHECK(plain(http(418)).klass == AttemptClass::http_4xx);
  CHECK(plain(http(300)).klass == AttemptClass::redirect);
  CHECK(plain(http(700)).klass == AttemptClass::malformed);
  CHECK(plain(rpc(7)).klass == AttemptClass::rpc_error);
  CHECK(plain(http(418)).doubt == Reason::ambiguous_answer);
}

TEST_CASE("complete refusals and business errors are successes for both breakers") {
  for (const auto& e : {http(400), http(404), http(409), http(422), http(401), http(501), rpc(-32602),
                        tool_error("no such x")}) {
    const auto j = plain(e);
    CAPTURE(j.row);
    CHECK(j.success_for_server);
    CHECK(j.success_for_tool);
  }
  const auto limited = plain(http(429, "", "3"));
  CHECK(limited.success_for_server);
  CHECK_FALSE(limited.success_for_tool);
  CHECK_FALSE(limited.strikes.tool);
  CHECK(plain(tool_error("hm")).success_for_server);
  CHECK_FALSE(plain(http(502)).success_for_server);
  CHECK(plain(http(500)).success_for_server);
  CHECK_FALSE(plain(http(500)).success_for_tool);
}
