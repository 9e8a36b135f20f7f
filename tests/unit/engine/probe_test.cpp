// Who asks whether a half-open circuit's server lives.
#include "unit/engine/gates_support.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("where plain writes wait the probe tool is asked, once, and only after its lease is durable") {
  World w;
  std::vector<std::string> runs{w.trip()};
  for (int i = 0; i < 9; ++i) runs.push_back(w.submit({"api/plain"}));
  REQUIRE(w.sent() == 1);
  CHECK(w.breaker("api").state == BreakerState::open);
  w.life->transport.on_start = [&](const tools::Call& call) {
    if (call.kind != AttemptKind::probe) return;
    const Breaker stored = w.breaker("api");
    CHECK(stored.state == BreakerState::half_open);
    REQUIRE(stored.probe_until);
    CHECK(*stored.probe_until > call.deadline);
  };
  w.pass(Duration{2'000});
  REQUIRE(w.sent() == 2);
  CHECK(w.last().kind == AttemptKind::probe);
  CHECK(w.last().tool == "rates");
  CHECK(w.last().request.head == "GET /rates");
  CHECK(w.last().deadline > w.clock.at);
  for (const auto& id : runs) {
    CHECK(w.step(id).wait.what == run::WaitFor::circuit);
    CHECK(w.step(id).rows == (id == runs[0] ? 1 : 0));
  }
  w.answer_last(good());
  CHECK(w.breaker("api").state == BreakerState::closed);
  std::size_t answered = 2;
  for (int i = 0; i < 10; ++i) {
    w.pass(Duration{1'000});
    for (; answered < w.sent(); ++answered) w.life->answer(w.life->transport.calls[answered], good());
  }
  for (const auto& id : runs) {
    CHECK(w.step(id).status == run::StepStatus::succeeded);
    CHECK(w.step(id).attempts == (id == runs[0] ? 2 : 1));
  }
}

TEST_CASE("every end of such a probe gives its lease back, and the next is never further than one cool-down") {
  struct Row {
    const char* name;
    Evidence evidence;
    BreakerState after;
  };
  Evidence foreign = World::status(200);
  foreign.failure = Failure::foreign;
  Evidence local;
  local.failure = Failure::not_listed;
  const Row rows[] = {
      {"answered", good(), BreakerState::closed},
      {"404", World::status(404), BreakerState::closed},
      {"401", World::status(401), BreakerState::closed},
      {"500: it lives", World::status(500), BreakerState::closed},
      {"502", World::status(502), BreakerState::open},
      {"refused", World::unreachable(), BreakerState::open},
      {"hang", World::timeout(), BreakerState::open},
      {"reset", lost(), BreakerState::open},
      {"web page", foreign, BreakerState::open},
      {"never left", local, BreakerState::open},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    World w;
    const std::string id = w.trip();
    w.pass(Duration{2'000});
    REQUIRE(w.sent() == 2);
    w.answer_last(row.evidence);
    const Breaker b = w.breaker("api");
    CHECK(b.state == row.after);
    CHECK_FALSE(b.probe_until);
    if (row.after == BreakerState::open) {
      CHECK(*b.until - w.clock.at >= Duration{2'000});
      CHECK(b.last_cause.find("api/rates, asked as a probe") != std::string::npos);
    }
    w.pass(Duration{4'000});
    REQUIRE(w.sent() == 3);
    CHECK(w.last().kind == (row.after == BreakerState::open ? AttemptKind::probe : AttemptKind::call));
    CHECK(w.step(id).attempts == (row.after == BreakerState::open ? 1 : 2));
  }
}

TEST_CASE("a probe that was out when the process ended is sent anew after the restart") {
  World w;
  const std::string id = w.trip();
  w.pass(Duration{2'000});
  REQUIRE(w.last().kind == AttemptKind::probe);
  w.begin();
  CHECK(w.breaker("api").state == BreakerState::half_open);
  REQUIRE(w.sent() == 1);
  CHECK(w.last().kind == AttemptKind::probe);
  w.answer_last(good());
  w.pass(Duration{1'000});
  w.answer_last(good());
  CHECK(w.step(id).status == run::StepStatus::succeeded);
}

TEST_CASE("a lease that its process did not outlive is void, also where nobody waits any more") {
  World w;
  const std::string id = w.trip();
  w.pass(Duration{2'000});
  w.life->engine->cancel(id, "", "ops", "enough", [](auto) {});
  w.turn();
  CHECK(w.breaker("api").probe_until);
  w.begin();
  CHECK(w.breaker("api").state == BreakerState::half_open);
  CHECK_FALSE(w.breaker("api").probe_until);
}

TEST_CASE("a probe whose answer never comes is replaced when its lease is over, and is then too late") {
  World w;
  (void)w.trip();
  w.pass(Duration{2'000});
  const tools::Call lost_one = w.last();
  const auto generation = w.breaker("api").generation;
  w.pass(Duration{6'000});
  REQUIRE(w.sent() == 3);
  CHECK(w.last().kind == AttemptKind::probe);
  CHECK(w.breaker("api").generation > generation);
  w.life->answer(lost_one, good());
  CHECK(w.breaker("api").state == BreakerState::half_open);
  w.answer_last(good());
  CHECK(w.breaker("api").state == BreakerState::closed);
}

TEST_CASE("the cancel of the only waiting run leaves the probe to end by itself") {
  World w;
  const std::string id = w.trip();
  w.pass(Duration{2'000});
  REQUIRE(w.last().kind == AttemptKind::probe);
  w.life->engine->cancel(id, "", "ops", "enough", [](auto) {});
  w.turn();
  CHECK(w.life->stored(id).status == run::RunStatus::cancelled);
  w.answer_last(good());
  CHECK(w.breaker("api").state == BreakerState::closed);
  const std::string next = w.submit({"api/plain"});
  CHECK(w.step(next).in_flight);
}

TEST_CASE("a read that waits for the same circuit is the probe, however early a plain write asks") {
  World w;
  (void)w.trip();
  const std::string read = w.submit({"api/read"});
  w.pass(Duration{900});
  for (int i = 0; i < 5; ++i) {
    (void)w.submit({"api/plain"});
    w.clock.at = w.clock.at + Duration{30};
  }
  w.pass(Duration{2'000});
  REQUIRE(w.sent() == 2);
  CHECK(w.last().kind == AttemptKind::call);
  CHECK(w.last().tool == "read");
  CHECK(w.step(read).attempts == 1);
}

TEST_CASE("over MCP the server itself is asked; where nothing else can be, the write is the probe") {
  World w;
  (void)w.trip("crm/plain");
  w.pass(Duration{2'000});
  REQUIRE(w.sent() == 2);
  CHECK(w.last().kind == AttemptKind::probe);
  CHECK(w.last().server == "crm");
  CHECK(w.last().tool.empty());
  w.answer_last(good("{}"));
  CHECK(w.breaker("crm").state == BreakerState::closed);

  const std::string id = w.trip("bare/plain");
  const std::size_t before = w.sent();
  (void)w.submit({"bare/plain"});
  w.pass(Duration{2'000});
  REQUIRE(w.sent() == before + 1);
  CHECK(w.last().kind == AttemptKind::call);
  CHECK(w.step(id).attempts + w.step(id).rows == 4);
  w.answer_last(good());
  CHECK(w.breaker("bare").state == BreakerState::closed);
}

TEST_CASE("a tool's circuit closed by a stand-in opens again with the first failure of the tool itself") {
  World w;
  const std::string first = w.submit({"api/plain"});
  w.answer_last(World::timeout());  // strikes the tool alone
  CHECK(w.step(first).status == run::StepStatus::unknown);
  CHECK(w.breaker("api").state != BreakerState::open);
  CHECK(w.breaker("api", "plain").state == BreakerState::open);
  const std::string second = w.submit({"api/plain"});
  w.pass(Duration{2'000});
  REQUIRE(w.last().kind == AttemptKind::probe);
  w.answer_last(good());
  CHECK(w.breaker("api", "plain").state == BreakerState::closed);
  w.pass(Duration{100});
  REQUIRE(w.last().tool == "plain");
  w.answer_last(World::timeout());
  const Breaker b = w.breaker("api", "plain");
  CHECK(b.state == BreakerState::open);
  CHECK(*b.until - w.clock.at >= Duration{2'000});
}

TEST_CASE("a step that fails on an open circuit still has the server asked, so that the next one can go") {
  World w;
  (void)w.trip();
  w.clock.at = w.clock.at + Duration{2'000};
  std::string id;
  w.life->engine->submit(
      w.life->plan(
          R"({"steps":[{"id":"a","server":"api","tool":"plain","on_circuit_open":"fail"}]})"),
      [&](Result<engine::Submitted> r) { id = r->run_id; });
  w.turn();
  CHECK(w.step(id).reason == Reason::circuit_open);
  CHECK(w.last().kind == AttemptKind::probe);
}

TEST_CASE("FC-20 (f) nonsense in place of a probe's answer gives the slot back") {
  const Evidence nothing;
  Evidence no_answer = good();
  no_answer.answer = Answer::none;
  Evidence no_status = good();
  no_status.http_status = 1234;
  Evidence wrong_transport = good("{broken");
  wrong_transport.answer = Answer::result;
  for (const char* place : {"bare/read", "api/plain"})
    for (const Evidence& nonsense : {nothing, no_answer, no_status, wrong_transport}) {
      INFO(place);
      World w;
      const std::string id = w.trip(place);
      w.pass(Duration{2'000});
      REQUIRE(w.sent() == 2);
      w.answer_last(nonsense);
      CHECK_FALSE(w.breaker(w.last().server).probe_until);
      w.pass(Duration{4'000});
      CHECK((w.sent() == 3 || w.step(id).status == run::StepStatus::succeeded));
    }
}

TEST_CASE("FC-20 (f) an exception where a probe leaves ends the process, and the next one has the slot") {
  for (const char* place : {"bare/read", "api/plain"}) {
    INFO(place);
    World w;
    const std::string id = w.trip(place);
    w.life->transport.on_start = [](const tools::Call&) { throw std::runtime_error("internal"); };
    CHECK_THROWS_AS(w.pass(Duration{2'000}), std::runtime_error);
    w.begin();
    w.pass(Duration{2'000});
    REQUIRE(w.sent() == 1);
    w.answer_last(good());
    const Breaker after = w.breaker(w.last().server);
    CHECK(after.state == BreakerState::closed);
    CHECK_FALSE(after.probe_until);
    w.pass(Duration{1'000});
    if (w.step(id).status != run::StepStatus::succeeded) w.answer_last(good());
    CHECK(w.step(id).status == run::StepStatus::succeeded);
  }
}
