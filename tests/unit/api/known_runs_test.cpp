#include "api/known_runs.h"

#include <catch2/catch.hpp>

namespace holdfast::api {
namespace {

run::Run settled_run(std::string id, std::size_t result_bytes = 10) {
  run::Run run;
  run.id = std::move(id);
  run.status = run::RunStatus::succeeded;
  run.result = std::string(result_bytes, 'x');
  return run;
}

}  // namespace

TEST_CASE("a run is moving from its first change until it rests") {
  KnownRuns known;
  CHECK_FALSE(known.moving("run_a"));
  known.changed("run_a", false);
  known.changed("run_a", false);
  CHECK(known.moving("run_a"));
  CHECK_FALSE(known.moving("run_b"));
  known.changed("run_a", true);
  CHECK_FALSE(known.moving("run_a"));
}

TEST_CASE("a settled run is kept as it was last seen") {
  KnownRuns known;
  CHECK(known.settled("run_a") == nullptr);
  known.settled(settled_run("run_a"));
  const RunPtr first = known.settled("run_a");
  REQUIRE(first);
  CHECK(first->result.size() == 10);
  run::Run changed = settled_run("run_a");
  changed.last_event = 7;
  known.settled(std::move(changed));
  CHECK(known.settled("run_a")->last_event == 7);
  CHECK(first->last_event == 0);  // who holds the older one may go on reading it
}

TEST_CASE("settled runs are bounded by number and by bytes, the oldest are let go first") {
  KnownRuns known;
  for (int i = 0; i < 5'000; ++i) known.settled(settled_run("run_" + std::to_string(i)));
  int kept = 0;
  for (int i = 0; i < 5'000; ++i) kept += known.settled("run_" + std::to_string(i)) != nullptr;
  CHECK(kept <= 512);
  CHECK(kept >= 400);
  CHECK(known.settled("run_0") == nullptr);
  CHECK(known.settled("run_4999") != nullptr);

  known.settled(settled_run("run_large", 1'000'000));
  CHECK(known.settled("run_large") == nullptr);
  KnownRuns heavy;
  for (int i = 0; i < 100; ++i) heavy.settled(settled_run("run_" + std::to_string(i), 200'000));
  kept = 0;
  for (int i = 0; i < 100; ++i) kept += heavy.settled("run_" + std::to_string(i)) != nullptr;
  CHECK(kept <= 16);
  CHECK(kept > 0);
}

TEST_CASE("a settled run that has grown too large since is not shown as it was") {
  KnownRuns known;
  known.settled(settled_run("run_a"));
  known.settled(settled_run("run_a", 1'000'000));
  CHECK(known.settled("run_a") == nullptr);
}

}  // namespace holdfast::api
