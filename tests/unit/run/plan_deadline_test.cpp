#include <catch2/catch.hpp>

#include "unit/run/plan_support.h"

using namespace holdfast;
using namespace holdfast::run;

namespace {

std::string with_deadline(const std::string& json) {
  return "{\"deadline\":" + json + R"(,"steps":[{"id":"l","server":"api","tool":"look"}]})";
}

}  // namespace

TEST_CASE("odd deadlines of a run are refused") {
  const std::string text =
      GENERATE("0", "-1", "-0", "\"0s\"", "\"-5s\"", "\"10\"", "1.5", "1e18", "1.0", "\"\"", "\"soon\"",
               "true", "null", "[]", "{}", "\"2001-01-01T00:00:00Z\"", "\"2030-13-01T00:00:00Z\"",
               "\"2030-01-01\"", "\"2030-01-01T00:00:00\"", "\"nan\"", "\"2026-11-30T00:53:20Z\"",
               "\"99999999d\"", "-99999999999999999999");
  CAPTURE(text);
  const Error error = refused(with_deadline(text));
  CHECK(error.code == "bad_submission");
  CHECK(error.pointer == "/deadline");
}

TEST_CASE("deadlines of a run become instants and never wrap") {
  const auto deadline = [](const std::string& json) { return planned(with_deadline(json)).deadline; };
  CHECK(deadline("\"2h\"") == kNow + Duration{7'200'000});
  CHECK(deadline("1500") == kNow + Duration{1'500});
  CHECK(deadline("2147483648") == kNow + Duration{2'147'483'648});
  CHECK(deadline("1000000000000000000") == kNow + kLongestDuration);
  CHECK(deadline("99999999999999999999") == kNow + kLongestDuration);
  CHECK(deadline("\"36500d\"") == kNow + kLongestDuration);
  CHECK(deadline("\"9999-12-31T23:59:59Z\"") == Instant{kEndOfTime.ms - 999});
  CHECK(deadline("\"2026-11-30T00:53:21Z\"") == kNow + Duration{1'000});
  CHECK(deadline("\"2026-11-30T02:53:20.5+01:00\"") == kNow + Duration{3'600'500});
}

TEST_CASE("an over-long duration names the maximum") {
  CHECK(refused(with_deadline("\"106752d\"")).message.find("36500d") != std::string::npos);
}

TEST_CASE("a step that cannot fit is cut, and the run says so") {
  const Run run = planned(
      R"({"deadline":"5s","steps":[{"id":"l","server":"api","tool":"look","deadline":"20s","max_attempts":9}]})");
  CHECK(run.steps[0].spec.deadline == Duration{5'000});
  CHECK(run.steps[0].max_attempts == 5);
  CHECK(run.steps[0].spec.max_attempts == 5);
  const auto warnings = json::parse(run.warnings);
  REQUIRE(warnings);
  REQUIRE(warnings->items.size() == 2);
  CHECK(warnings->items[0].text() ==
        "step \"l\": its deadline of 20s is longer than the run's and is cut to 5s");
  CHECK(warnings->items[1].text() ==
        "step \"l\": its max_attempts is higher than the tool's and is cut to 5");
}

TEST_CASE("a step that fits gives no warning") {
  const Run run = planned(
      R"({"deadline":"5s","steps":[{"id":"l","server":"api","tool":"look","deadline":5000,"max_attempts":5}]})");
  CHECK(run.warnings == "[]");
  CHECK(run.steps[0].spec.deadline == Duration{5'000});
}

TEST_CASE("a budget or a number of attempts that is too large for its field is cut, not wrapped") {
  const Run run = planned(
      R"({"retry_budget":4294967296,"steps":[{"id":"l","server":"api","tool":"look","max_attempts":99999999999999999999}]})");
  CHECK(run.retry_limit == 4'294'967'295U);
  CHECK(run.steps[0].max_attempts == 5);
  CHECK(planned(R"({"retry_budget":0,"steps":[{"id":"l","server":"api","tool":"look"}]})").retry_limit == 0);
}
