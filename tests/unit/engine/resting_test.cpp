// A run that waits for long is bytes until somebody or something comes to it; nobody can tell.
#include "unit/engine/gates_support.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("a run behind an open circuit rests, after a start too, and leaves when the circuit is closed") {
  World w;
  w.life->engine->force_breaker("api", "", true, "ops", "maintenance", std::nullopt, [](auto) {});
  const std::string id = w.submit({"api/read", "api/plain"});
  CHECK(w.life->engine->resting() == 1);
  CHECK(w.life->metrics.open.waiting == 1);
  w.begin();
  CHECK(w.life->engine->resting() == 1);
  CHECK(w.life->metrics.open.waiting == 1);
  w.life->engine->force_breaker("api", "", false, "ops", "done", std::nullopt, [](auto) {});
  w.pass(Duration{100});
  REQUIRE(w.sent() == 1);
  w.answer_last(good());
  REQUIRE(w.sent() == 2);
  w.answer_last(good());
  CHECK(w.life->stored(id).status == run::RunStatus::succeeded);
  CHECK(w.life->engine->resting() == 0);
  CHECK(w.life->metrics.open.waiting == 0);
}

TEST_CASE("a read that rested in a long backoff leaves as it was frozen, and its retry is counted with the cause") {
  World w;
  (void)w.submit({"calm/read"});
  const tools::Call first = w.last();
  CHECK(w.life->engine->resting() == 0);  // its call is out
  w.answer_last(World::status(503, "20"));
  CHECK(w.life->engine->resting() == 1);
  std::string moved = kGates;
  moved.replace(moved.rfind("/read}"), 5, "/else");
  REQUIRE(w.life->catalog->replace(w.life->config_of(moved)));
  w.pass(Duration{60'000});
  REQUIRE(w.sent() == 2);
  CHECK(first.request.head == "POST /read");
  CHECK(w.last().request.head == first.request.head);
  CHECK(w.last().request.body == first.request.body);
  CHECK(w.life->metrics.retries == std::vector<std::string>{"http_5xx"});
}

TEST_CASE("who waits for less than a second does not rest") {
  World w;
  (void)w.submit({"calm/read"});
  w.answer_last(World::status(503));
  CHECK(w.life->metrics.open.waiting == 1);
  CHECK(w.life->engine->resting() == 0);
}

TEST_CASE("a run at rest is cancelled like any other") {
  World w;
  const std::string id = w.submit({"calm/read"});
  w.answer_last(World::status(429, "600"));
  REQUIRE(w.life->engine->resting() == 1);
  w.life->engine->cancel(id, "", "ops", "not needed", [](auto) {});
  w.turn();
  CHECK(w.life->stored(id).status == run::RunStatus::cancelled);
  CHECK(w.life->engine->resting() == 0);
  CHECK(w.life->observer.left.size() == 1);
  CHECK_FALSE(w.life->engine->turn());  // its timer is gone too
}

TEST_CASE("a run at rest ends at its deadline") {
  World w;
  w.life->engine->force_breaker("calm", "", true, "ops", "maintenance", std::nullopt, [](auto) {});
  const std::string id = w.submit({"calm/read"}, R"(,"deadline":"30s")");
  REQUIRE(w.life->engine->resting() == 1);
  w.pass(Duration{30'000});
  CHECK(w.step(id).reason == Reason::deadline_exceeded);
  CHECK(w.life->engine->resting() == 0);
}

TEST_CASE("a rate gate opened by hand wakes those who wait for it; the others go on resting") {
  World w;
  (void)w.submit({"calm/read"});
  w.answer_last(World::status(429, "600"));
  (void)w.submit({"calm/read"});
  w.life->engine->force_breaker("api", "", true, "ops", "maintenance", std::nullopt, [](auto) {});
  (void)w.submit({"api/read"});
  REQUIRE(w.life->engine->resting() == 3);
  const std::size_t told = w.life->observer.changed.size();
  w.life->engine->force_breaker("calm", "", false, "ops", "well again", std::nullopt, [](auto) {});
  w.turn();
  CHECK(w.life->engine->resting() == 2);  // the first has a wait of its own
  CHECK(w.life->observer.changed.size() == told + 1);
}

TEST_CASE("an unknown write rests, is counted all the while, and an operator's word ends it") {
  World w;
  const std::string id = w.submit({"calm/read", "bare/plain"});
  w.answer_last(good());
  w.answer_last(lost());
  REQUIRE(w.step(id, 1).status == run::StepStatus::unknown);
  CHECK(w.life->engine->resting() == 1);
  CHECK(w.life->metrics.unknown_writes == 1);
  w.life->engine->resolve(write_id(id, 1), {run::Resolution::landed, "{}", "seen", "ops", std::nullopt}, [](auto) {});
  w.turn();
  CHECK(w.life->stored(id).status == run::RunStatus::succeeded);
  CHECK(w.life->metrics.unknown_writes == 0);
  CHECK(w.life->metrics.open.unknown == 0);
}

TEST_CASE("a refused command leaves a run at rest where it was") {
  World w;
  const std::string id = w.submit({"calm/read"});
  w.answer_last(World::status(429, "600"));
  std::string code;
  w.life->engine->resolve(write_id(id, 0), {run::Resolution::landed, "", "", "ops", std::nullopt}, [&](const auto& r) { code = r.error().code; });
  w.turn();
  CHECK(code == "write_not_found");
  CHECK(w.life->engine->resting() == 1);
}
