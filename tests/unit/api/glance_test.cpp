// What is answered on the listener's own thread: nothing that reads the ledger, and nothing large.
#include <catch2/catch.hpp>

#include "world.h"

using namespace holdfast;

namespace {

/// A ledger that must not be asked.
void close_ledger(World& world) { world.reader.closed = true; }

std::optional<http::Outcome> glance(World& world, const std::string& method, const std::string& pattern, http::Request& request) {
  const http::Glance& glance = world.server.glances.at({method, pattern});
  REQUIRE(glance);
  return glance(request);
}

int status_of(const std::optional<http::Outcome>& outcome) {
  REQUIRE(outcome.has_value());
  REQUIRE(std::holds_alternative<http::Response>(*outcome));
  return std::get<http::Response>(*outcome).status;
}

}  // namespace

TEST_CASE("only these are answered at a glance") {
  World world;
  std::vector<std::string> quick;
  for (const auto& [route, glance] : world.server.glances)
    if (glance) quick.push_back(route.first + " " + route.second);
  CHECK(quick == std::vector<std::string>{"GET /errors/{code}", "GET /healthz", "GET /readyz", "GET /v1/runs/{id}", "POST /v1/runs"});
}

TEST_CASE("a submission is posted, parked and answered without a look at the ledger") {
  World world;
  close_ledger(world);
  world.commands.is_slow = true;
  auto request = world.request({}, kSubmission);
  request.identity = {"nightly", false};
  const auto first = glance(world, "POST", "/v1/runs", request);
  REQUIRE(first.has_value());
  CHECK(std::holds_alternative<http::Park>(*first));
  CHECK(world.commands.planned.owner == "nightly");
  auto run = std::make_shared<run::Run>();
  run->id = kRun;
  world.commands.later(engine::Submitted{kRun, false, run});
  request.resumed = true;
  CHECK(status_of(glance(world, "POST", "/v1/runs", request)) == 201);
  CHECK(world.commands.calls == 1);
}

TEST_CASE("a submission that was made before is looked up by its handler, and posted once") {
  World world;
  world.commands.submitted = engine::Submitted{kRun, true};
  auto request = world.request({}, kSubmission);
  request.headers.emplace("idempotency-key", "k1");
  CHECK_FALSE(glance(world, "POST", "/v1/runs", request).has_value());
  const auto response = std::get<http::Response>(world.call("POST", "/v1/runs", request));
  CHECK(response.status == 200);
  CHECK(says(response, kRun));
  CHECK(world.commands.calls == 1);
}

TEST_CASE("a submission that can't be planned may be one that was made before: its handler asks the engine") {
  World world;
  auto request = world.request({}, R"({"name":"n","steps":[{"id":"s","server":"gone","tool":"w","args":{}}]})");
  request.headers.emplace("idempotency-key", "known");
  world.reader.stored["run_00000000000000000000000000"] = world.run();
  CHECK_FALSE(glance(world, "POST", "/v1/runs", request).has_value());
  CHECK(std::get<http::Response>(world.call("POST", "/v1/runs", request)).status == 200);
}

TEST_CASE("a submission that the engine refuses is answered at a glance") {
  World world;
  close_ledger(world);
  world.commands.submitted = std::unexpected(Error{"overloaded", "because", ""});
  auto request = world.request({}, kSubmission);
  CHECK(status_of(glance(world, "POST", "/v1/runs", request)) == 503);
}

TEST_CASE("who waits for a moving run is parked, and told of its end, without a look at the ledger") {
  World world;
  close_ledger(world);
  world.known.changed(kRun, false);
  auto request = world.request();
  request.query.emplace("wait", "30s");
  const auto first = glance(world, "GET", "/v1/runs/{id}", request);
  REQUIRE(first.has_value());
  CHECK(std::holds_alternative<http::Park>(*first));
  CHECK(world.watched == std::vector{api::rest_topic(kRun)});
  run::Run settled = world.run();
  settled.status = run::RunStatus::succeeded;
  world.known.settled(settled);
  world.known.changed(kRun, true);
  request.resumed = true;
  CHECK(status_of(glance(world, "GET", "/v1/runs/{id}", request)) == 200);
}

TEST_CASE("what only the ledger knows, and what is large, is left to the handler") {
  World world;
  close_ledger(world);
  auto request = world.request();
  CHECK_FALSE(glance(world, "GET", "/v1/runs/{id}", request).has_value());
  CHECK(world.watched.empty());  // nobody waits
  run::Run settled = world.run();
  settled.status = run::RunStatus::succeeded;
  settled.result = '"' + std::string(20'000, 'x') + '"';
  world.known.settled(settled);
  CHECK_FALSE(glance(world, "GET", "/v1/runs/{id}", request).has_value());
  CHECK(world.answer("GET", "/v1/runs/{id}", request).status == 200);
}

TEST_CASE("a request that is wrong is told so at a glance") {
  World world;
  close_ledger(world);
  for (const auto& [name, value] : {std::pair{"wait", "soon"}, {"weight", "1s"}}) {
    auto request = world.request();
    request.query.emplace(name, value);
    CHECK(status_of(glance(world, "GET", "/v1/runs/{id}", request)) == 400);
  }
}
