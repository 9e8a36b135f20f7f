// Slots of servers and of the process: bounded, in order, nobody starved.
#include "unit/engine/gates_support.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

/// Answers everything that is out, oldest first, a turn for each, until nothing is; returns the most that was
/// out at once.
std::size_t answer_all(World& w, std::size_t& answered) {
  std::size_t most = 0;
  while (answered < w.sent()) {
    most = std::max(most, w.sent() - answered);
    w.life->answer(w.life->transport.calls[answered++], good());
  }
  return most;
}

}  // namespace

TEST_CASE("runs that a restart finds waiting obey the slots, each server's and the process's") {
  World w;
  for (int i = 0; i < 6; ++i) {
    (void)w.submit({"calm/read"});
    (void)w.submit({"api/read"});
    (void)w.submit({"bare/read"});
  }
  CHECK(w.sent() == 4);
  w.begin();
  w.pass(Duration{20'000});  // the four that were out have their backoff behind them
  CHECK(w.sent() == 4);
  std::size_t answered = 0;
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    most = std::max(most, answer_all(w, answered));
    w.pass(Duration{11'000});
  }
  CHECK(most == 4);
  CHECK(w.sent() == 18);
  CHECK(w.life->metrics.open.waiting + w.life->metrics.open.running == 0);
}

TEST_CASE("a busy server's long chains don't keep the process's slots from who waits at another") {
  World w;
  const std::vector<std::string> chain(20, "calm/read");
  for (int i = 0; i < 4; ++i) (void)w.submit(chain);
  REQUIRE(w.sent() == 4);
  const std::string waits = w.submit({"bare/read"});
  CHECK(w.step(waits).wait.what == run::WaitFor::slot);
  w.life->answer(w.life->transport.calls[0], good());
  CHECK(w.step(waits).in_flight);
}

TEST_CASE("servers take turns at the process's slots") {
  World w;
  for (int i = 0; i < 12; ++i) (void)w.submit({"calm/read"});
  std::vector<std::string> few;
  for (const char* place : {"api/read", "bare/read", "crm/plain"}) few.push_back(w.submit({place}));
  std::size_t answered = 0;
  for (int i = 0; i < 4; ++i) w.life->answer(w.life->transport.calls[answered++], good());
  for (const auto& id : few) CHECK(w.step(id).in_flight);
}

TEST_CASE("a check stands in the queue like everybody else") {
  World w;
  const std::string doubtful = w.submit({"bare/checked"});
  const tools::Call first = w.last();
  const std::vector<std::string> chain(10, "bare/read");
  for (int i = 0; i < 3; ++i) (void)w.submit(chain);
  for (int i = 0; i < 2; ++i) (void)w.submit({"bare/read"});
  REQUIRE(w.sent() == 4);
  w.life->answer(first, World::timeout());  // its slot goes to the first in the queue; the check waits
  REQUIRE(w.sent() == 5);
  CHECK(w.last().kind == AttemptKind::call);
  w.life->answer(w.life->transport.calls[1], good());
  CHECK(w.last().kind == AttemptKind::call);
  w.life->answer(w.life->transport.calls[2], good());
  REQUIRE(w.sent() == 7);
  CHECK(w.last().kind == AttemptKind::check);
  CHECK(w.step(doubtful).in_flight);
  w.answer_last(good("{\"n\":1}"));
  CHECK(w.step(doubtful).status == run::StepStatus::succeeded);
}

TEST_CASE("a run that is cancelled leaves no one behind in a queue") {
  World w;
  for (int i = 0; i < 4; ++i) (void)w.submit({"calm/read"});
  std::vector<std::string> gone;
  for (int i = 0; i < 5; ++i) gone.push_back(w.submit({"api/read"}));
  const std::string stays = w.submit({"bare/read"});
  for (const auto& id : gone) w.life->engine->cancel(id, "", "ops", "no", [](auto) {});
  w.turn();
  w.life->answer(w.life->transport.calls[0], good());
  CHECK(w.step(stays).in_flight);
}

TEST_CASE("a run whose deadline passed while the process was down is not shown as waiting for a slot") {
  World w;
  for (int i = 0; i < 3; ++i) (void)w.submit({"calm/read"});
  std::string id;
  w.life->engine->submit(w.life->plan(R"({"deadline":"1m","steps":[{"id":"a","server":"bare","tool":"plain","after":[]},
                                          {"id":"b","server":"bare","tool":"read","after":[]}]})"),
                         [&](Result<engine::Submitted> r) { id = r->run_id; });
  w.turn();
  REQUIRE(w.step(id, 1).wait.what == run::WaitFor::slot);
  w.clock.at = w.clock.at + Duration{120'000};
  w.begin();
  CHECK(w.step(id, 0).status == run::StepStatus::unknown);
  CHECK(w.step(id, 1).status == run::StepStatus::pending);  // for the verdict, which may come with a new deadline
  CHECK(w.step(id, 1).wait.what == run::WaitFor::none);
}
