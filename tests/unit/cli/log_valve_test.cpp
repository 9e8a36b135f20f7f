#include "cli/log_valve.h"

#include <catch2/catch.hpp>

using namespace holdfast;
using namespace holdfast::cli;

TEST_CASE("a flood of one kind is cut and counted, and other lines still pass", "[log]") {
  LogValve valve;
  const Instant at{1'800'000'000'000};
  int passed = 0;
  for (int i = 0; i < 1'000; ++i) passed += valve.pass(at, "error", "run run_" + std::to_string(i) + " does not come to rest");
  CHECK(passed == 10);
  CHECK(valve.pass(at, "warning", "run run_1 does not come to rest"));
  CHECK(valve.pass(at, "error", "checkpoint failed: disk"));
  CHECK(valve.take_left_out().empty());

  CHECK(valve.pass(at + Duration{10'000}, "error", "run run_7 does not come to rest"));
  const auto left_out = valve.take_left_out();
  REQUIRE(left_out.size() == 1);
  CHECK(left_out.begin()->first == "run run_0 does not come to rest");
  CHECK(left_out.begin()->second == 990);
  CHECK(valve.take_left_out().empty());
}

TEST_CASE("all kinds together are bounded too, but for what ends the process", "[log]") {
  LogValve valve;
  const Instant at{1'800'000'000'000};
  int passed = 0;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) passed += valve.pass(at, "info", std::string("about ") + a + b);
  CHECK(passed == 50);
  CHECK(valve.pass(at, "critical", "stopping"));
  CHECK_FALSE(valve.pass(at, "info", "about zz"));
  CHECK(valve.pass(at + Duration{-1'000}, "info", "the clock was set back"));
  std::uint64_t counted = 0;
  const auto left_out = valve.take_left_out();
  for (const auto& [kind, count] : left_out) counted += count;
  CHECK(counted == 26 * 26 - 50 + 1);
  CHECK(left_out.size() <= 65);
}
