#include <catch2/catch.hpp>
#include <set>

#include "holdfast/policy/classify.h"

using namespace holdfast;

TEST_CASE("every reason has one sentence of its own that names the tool") {
  std::set<std::string> seen;
  for (int i = static_cast<int>(Reason::tool_refused); i <= static_cast<int>(Reason::deadline_in_flight);
       ++i) {
    const auto reason = static_cast<Reason>(i);
    for (const auto* when : {"", "2026-11-30T01:02:03.004Z"}) {
      const auto text = advice(reason, "billing/charge", when);
      CAPTURE(word(reason), text);
      REQUIRE_FALSE(text.empty());
      CHECK(text.find("billing/charge") != text.npos);
      CHECK(text.back() == '.');
      CHECK(text.find('{') == text.npos);
      CHECK(text.find(". ") == text.npos);
      if (*when == '\0') CHECK(seen.insert(text).second);
    }
  }
}

TEST_CASE("advice gives the instant where waiting for one is the right thing") {
  const auto* when = "2026-11-30T01:02:03.004Z";
  for (const auto reason : {Reason::none, Reason::rate_limited, Reason::circuit_open}) {
    CHECK(advice(reason, "crm/search", when).find(when) != std::string::npos);
  }
  CHECK(advice(Reason::none, "crm/search", "").empty());
}

TEST_CASE("every doubt warns against submitting again") {
  for (int i = static_cast<int>(Reason::timed_out); i <= static_cast<int>(Reason::deadline_in_flight); ++i) {
    const auto text = advice(static_cast<Reason>(i), "crm/post", "");
    CAPTURE(text);
    CHECK(text.find("may have been done; do not submit it again") != text.npos);
  }
}

TEST_CASE("without a tool's name the sentence still reads") {
  CHECK(advice(Reason::timed_out, "", "").starts_with("The tool did not answer"));
  CHECK(advice(Reason::connection_lost, "", "").starts_with("The connection to the tool"));
  CHECK(advice(Reason::timed_out, "{when}", "").starts_with("{when} did not answer"));
}
