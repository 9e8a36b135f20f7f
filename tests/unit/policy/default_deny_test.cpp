#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <set>

#include "evidence_samples.h"

using namespace holdfast;
using namespace holdfast::sample;

namespace {

const std::set<int> kListedStatuses{301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406,
                                    408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423,
                                    424, 425, 426, 428, 429, 431, 451, 460, 499, 501, 505};
const std::set<std::int64_t> kListedCodes{-32700, -32600, -32601, -32602, -32603,
                                          -32042, -32020, -32021, -32022};

bool never_sends_again(Action action) {
  return action == Action::unknown;
}

}  // namespace

TEST_CASE("a status that no row names proves nothing about a write") {
  REQUIRE(rc::check([] {
    const int status =
        *rc::gen::suchThat(rc::gen::inRange(300, 1000), [](int s) { return !kListedStatuses.contains(s); });
    for (const auto kind : kWrites) {
      const auto j = classify(http(status), policy(), kind, false);
      RC_ASSERT(j.verdict == Verdict::ambiguous);
      RC_ASSERT(j.doubt != Reason::none);
      RC_ASSERT(kind != Kind::plain || never_sends_again(j.action));
    }
  }));
}

TEST_CASE("an error code that no row names proves nothing about a write") {
  REQUIRE(rc::check([] {
    const auto code = *rc::gen::suchThat(rc::gen::arbitrary<std::int64_t>(),
                                         [](std::int64_t c) { return !kListedCodes.contains(c); });
    const auto near = *rc::gen::suchThat(rc::gen::inRange<std::int64_t>(-33000, -31900),
                                         [](std::int64_t c) { return !kListedCodes.contains(c); });
    for (const auto c : {code, near}) {
      const auto j = classify(rpc(c), policy(), Kind::plain, false);
      RC_ASSERT(j.verdict == Verdict::ambiguous);
      RC_ASSERT(never_sends_again(j.action));
    }
  }));
}

TEST_CASE("whatever was seen after the first byte, only a complete refusal lets a plain write go again") {
  REQUIRE(rc::check([] {
    Evidence e;
    e.failure = static_cast<Failure>(*rc::gen::inRange(0, static_cast<int>(Failure::crashed) + 2));
    e.phase = static_cast<Phase>(
        *rc::gen::inRange(static_cast<int>(Phase::tx_part), static_cast<int>(Phase::parsed) + 1));
    e.answer = static_cast<Answer>(*rc::gen::inRange(0, static_cast<int>(Answer::rpc_error) + 1));
    e.http_status = *rc::gen::elementOf(
        std::vector<int>{0, 100, 200, 204, 302, 303, 304, 404, 408, 418, 429, 500, 503, 700});
    e.over_mcp = *rc::gen::arbitrary<bool>();
    e.reused_connection = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>())
      e.rpc_code = *rc::gen::elementOf(std::vector<std::int64_t>{-32603, -32602, -32000, 9});
    const auto j = classify(e, policy(), Kind::plain, *rc::gen::arbitrary<bool>());
    // These say in their own definition that the call had not left.
    const bool never_left = e.failure == Failure::handshake || e.failure == Failure::bad_session ||
                            e.failure == Failure::not_listed || e.failure == Failure::address_refused;
    RC_ASSERT(never_left || j.verdict != Verdict::not_sent);
    const bool again = j.action == Action::retry || j.action == Action::retry_once ||
                       j.action == Action::wait_once || j.action == Action::wait_resend ||
                       j.action == Action::repair_session;
    RC_ASSERT(!again || never_left || j.verdict == Verdict::refused);
    RC_ASSERT(j.verdict != Verdict::none);
    RC_ASSERT(j.verdict != Verdict::ambiguous || j.doubt != Reason::none);
    RC_ASSERT(!(j.success_for_server && j.strikes.server));
    RC_ASSERT(!(j.success_for_tool && j.strikes.tool));
  }));
}

TEST_CASE("a claim of never sent that the phase contradicts is a doubt") {
  for (const auto failure :
       {Failure::dns_temporary, Failure::dns_not_found, Failure::connect, Failure::local_resource,
        Failure::proxy, Failure::proxy_auth, Failure::tls_handshake, Failure::tls_certificate,
        Failure::dead_connection, Failure::process_start}) {
    CAPTURE(static_cast<int>(failure));
    CHECK(classify(failed(failure, Phase::tx0), policy(), Kind::plain, false).verdict == Verdict::not_sent);
    const auto j = classify(failed(failure, Phase::tx_part), policy(), Kind::plain, false);
    CHECK(j.verdict == Verdict::ambiguous);
    CHECK(j.action == Action::unknown);
    CHECK(j.doubt == Reason::connection_lost);
  }
}
