// A server that asks for less is left alone by everybody.
#include <set>

#include "unit/engine/gates_support.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("limits without a time hold every run back, longer and longer, and a restart forgets nothing") {
  World w;
  const std::string first = w.submit({"calm/read"});
  w.answer_last(World::status(429));
  CHECK(w.gate("calm").hits == 1);
  const Duration one = *w.gate("calm").until - w.clock.at;
  CHECK((one >= Duration{125} && one <= Duration{250}));
  const std::string other = w.submit({"calm/read"});
  CHECK(w.sent() == 1);
  CHECK(w.step(other).wait.what == run::WaitFor::rate_gate);
  CHECK(*w.step(other).wait.until > *w.gate("calm").until);
  CHECK(w.step(other).rows == 0);
  CHECK(*w.life->stored(first).wait.until >= w.clock.at);

  w.begin();
  CHECK(w.gate("calm").hits == 1);
  (void)w.submit({"calm/read"});
  CHECK(w.sent() == 0);
  w.pass(one);
  for (int i = 0; i < 100 && w.sent() == 0; ++i) w.pass(Duration{10});
  const std::size_t left = w.sent();  // one, or two that had the same moment
  REQUIRE(left >= 1);
  w.answer_last(World::status(429));
  CHECK(w.gate("calm").hits == 2);
  const Duration two = *w.gate("calm").until - w.clock.at;
  CHECK((two >= Duration{250} && two <= Duration{500}));
  for (int i = 0; i < 1'000 && w.sent() == left; ++i) w.pass(Duration{10});
  w.answer_last(good());
  CHECK(w.gate("calm").hits == 0);
}

TEST_CASE("calls that were out together are limited once") {
  World w;
  for (int i = 0; i < 4; ++i) (void)w.submit({"calm/read"});
  REQUIRE(w.sent() == 4);
  for (std::size_t i = 0; i < 4; ++i) w.life->answer(w.life->transport.calls[i], World::status(429));
  CHECK(w.gate("calm").hits == 1);
  CHECK(*w.gate("calm").until - w.clock.at <= Duration{250});
}

TEST_CASE("the call that met a limit has exactly one try after it, and those behind leave one by one") {
  World w;
  const std::string met = w.submit({"calm/read"});
  std::vector<std::string> others;
  w.answer_last(World::status(429, "4"));
  for (int i = 0; i < 60; ++i) others.push_back(w.submit({"calm/read"}));
  const Instant opens = w.clock.at + Duration{4'000};
  CHECK(w.gate("calm").until == opens);
  std::set<std::int64_t> instants;
  for (const auto& id : others) {
    CHECK(w.step(id).rows == 0);
    const Instant at = *w.step(id).wait.until;
    CHECK((at > opens && at <= opens + Duration{5'000}));
    instants.insert(at.ms);
  }
  CHECK(instants.size() == 60);
  w.pass(Duration{3'999});
  CHECK(w.sent() == 1);
  w.clock.at = opens;
  w.turn();
  REQUIRE(w.sent() == 2);
  CHECK(w.step(met).attempts == 2);
  w.answer_last(World::status(429, "4"));
  CHECK(w.step(met).reason == Reason::rate_limited);
  CHECK(w.step(met).attempts == 2);
  w.pass(Duration{3'900});
  CHECK(w.sent() == 2);
  for (const auto& id : others) CHECK(w.step(id).rows == 0);
}

TEST_CASE("a gate that opens after a run's deadline fails it at once; the turn after the gate never does") {
  World w;
  (void)w.submit({"calm/read"});
  w.answer_last(World::status(429, "60"));
  const std::string late = w.submit({"calm/read"}, R"(,"deadline":"60s")");
  CHECK(w.step(late).reason == Reason::rate_limited);
  std::string just;
  for (int i = 0; i < 300; ++i) just = w.submit({"calm/read"}, R"(,"deadline":"61s")");
  CHECK(w.step(just).status == run::StepStatus::waiting);
  CHECK(*w.step(just).wait.until < w.life->stored(just).deadline);
}

TEST_CASE("an operator who closes a server's circuit opens its rate gate") {
  World w;
  (void)w.submit({"calm/read"});
  w.answer_last(World::status(429, "600"));
  const std::string waits = w.submit({"calm/read"});
  w.life->engine->force_breaker("calm", "", false, "ops", "the server is well again", std::nullopt, [](auto) {});
  w.turn();
  CHECK_FALSE(w.gate("calm").until);
  w.pass(Duration{1});
  REQUIRE(w.sent() == 2);
  CHECK(w.step(waits).in_flight);
}

TEST_CASE("a limit met by a probe holds everybody back too") {
  World w;
  const std::string id = w.trip();
  w.pass(Duration{2'000});
  REQUIRE(w.last().kind == AttemptKind::probe);
  w.answer_last(World::status(429, "30"));
  CHECK(w.breaker("api").state == BreakerState::closed);
  w.pass(Duration{1'000});
  CHECK(w.sent() == 2);
  CHECK(w.step(id).wait.what == run::WaitFor::rate_gate);
}

TEST_CASE("a timeout that the run's deadline cut short says nothing about the tool") {
  World w;
  const std::string id = w.submit({"api/read"}, R"(,"deadline":"1s")");
  w.clock.at = w.clock.at + Duration{1'000};
  w.answer_last(World::timeout());
  CHECK(w.step(id).reason == Reason::deadline_exceeded);
  CHECK(w.breaker("api", "read").consecutive == 0);
  CHECK(w.breaker("api", "read").state == BreakerState::closed);
}

TEST_CASE("a forced circuit stands after a restart, with who and why") {
  World w;
  w.life->engine->force_breaker("api", "plain", true, "ops", "double postings", std::nullopt, [](auto) {});
  w.turn();
  w.begin();
  const std::string id = w.submit({"api/plain"});
  w.pass(Duration{600'000});
  CHECK(w.sent() == 0);
  CHECK(w.step(id).wait.what == run::WaitFor::circuit);
  CHECK(w.breaker("api", "plain").by == "ops");
  CHECK(w.breaker("api", "plain").why == "double postings");
  w.life->engine->force_breaker("api", "plain", false, "ops", "mended", std::nullopt, [](auto) {});
  w.turn();
  w.pass(Duration{100});
  CHECK(w.sent() == 1);
}
