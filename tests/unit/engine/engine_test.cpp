#include <sys/wait.h>
#include <unistd.h>

#include "unit/engine/engine_support.h"

using namespace holdfast;
using namespace holdfast::testing;

TEST_CASE("an attempt's row can be read before its call leaves, and a run before its client is answered") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  int started = 0;
  life.transport.on_start = [&](const tools::Call&) {
    ++started;
    const auto runs = life.opened.reader->runs({});
    REQUIRE(runs);
    REQUIRE(runs->size() == 1);
    const auto rows = life.opened.reader->attempts(runs->front().seq, 0, 10);
    REQUIRE(rows);
    REQUIRE(static_cast<int>(rows->size()) == started);
    CHECK(rows->back().delivery == Delivery::in_flight);
  };
  bool answered = false;
  life.engine->submit(
      life.plan(
          R"({"steps":[{"id":"a","server":"api","tool":"plain"},{"id":"b","server":"api","tool":"keyed"}]})"),
      [&](Result<engine::Submitted> r) {
        REQUIRE(r);
        CHECK(life.stored(r->run_id).status == run::RunStatus::running);
        answered = true;
      });
  CHECK_FALSE(answered);
  (void)life.engine->turn();
  CHECK(answered);
  life.answer(life.transport.calls[0], good());
  CHECK(started == 2);
}

TEST_CASE("a run of N steps takes N+1 commits, and runs that gather share one") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const auto run = life.submit({"plain", "plain", "plain", "plain", "plain"});
  for (std::size_t i = 0; i < 5; ++i) life.answer(life.transport.calls.at(i), good());
  CHECK(life.metrics.commits == 6);
  CHECK(life.stored((*run)->run_id).status == run::RunStatus::succeeded);

  const int before = life.metrics.commits;
  for (int i = 0; i < 50; ++i)
    life.engine->submit(life.plan(R"({"steps":[{"id":"a","server":"api","tool":"plain"}]})"), [](auto) {});
  (void)life.engine->turn();
  CHECK(life.metrics.commits == before + 1);
}

TEST_CASE(
    "what was out when the process ended is a crash: plain is unknown, keyed goes again with the same "
    "bytes") {
  Folder folder;
  HandClock clock;
  std::string plain, keyed;
  tools::Call first;
  {
    Life life(folder.path, clock);
    plain = (*life.submit({"plain", "read"}))->run_id;
    keyed = (*life.submit({"keyed"}))->run_id;
    first = life.transport.calls.at(1);
    REQUIRE_FALSE(first.key.empty());
  }
  clock.at = clock.at + Duration{1'000};
  Life life(folder.path, clock);
  CHECK(life.stored(plain).status == run::RunStatus::unknown);
  CHECK(life.stored(plain).steps[0].reason == Reason::crashed);
  CHECK(life.metrics.unknown_writes == 1);
  clock.at = clock.at + Duration{1'000};
  (void)life.engine->turn();
  REQUIRE(life.transport.calls.size() == 1);
  const tools::Call& again = life.transport.calls[0];
  CHECK(again.key == first.key);
  CHECK(again.request.head == first.request.head);
  CHECK(again.request.body == first.request.body);
  CHECK(life.stored(keyed).steps[0].attempts == 2);
  CHECK(life.stored(keyed).retry_spent == 1);
}

TEST_CASE("a repeat is counted by how the call before it ended, also when that was in an earlier life") {
  Folder folder;
  HandClock clock;
  {
    Life life(folder.path, clock);
    REQUIRE(life.submit({"read"}).has_value());
    Evidence refused;
    refused.phase = Phase::tcp;
    refused.failure = Failure::connect;
    life.answer(life.transport.calls.at(0), refused);
    CHECK(life.metrics.retries.empty());
    clock.at = clock.at + Duration{1'000};
    (void)life.engine->turn();
    CHECK(life.metrics.retries == std::vector<std::string>{"connect"});
    life.answer(life.transport.calls.at(1), lost());
  }
  clock.at = clock.at + Duration{10'000};
  Life life(folder.path, clock);
  (void)life.engine->turn();
  CHECK(life.metrics.retries == std::vector<std::string>{"reset"});
}

TEST_CASE("a deadline does not start anew with the process") {
  Folder folder;
  HandClock clock;
  std::string id;
  Instant deadline;
  {
    Life life(folder.path, clock);
    id = (*life.submit({"read", "read"}))->run_id;
    deadline = life.stored(id).deadline;
  }
  clock.at = deadline + Duration{5'000};
  Life life(folder.path, clock);
  const run::Run run = life.stored(id);
  CHECK(run.deadline == deadline);
  CHECK(run.status == run::RunStatus::failed);
  CHECK(run.reason == Reason::deadline_exceeded);
  CHECK(life.transport.calls.empty());
}

TEST_CASE("a server's slots bound what is out; who waits leaves in order") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back((*life.submit({"read"}))->run_id);
  REQUIRE(life.transport.calls.size() == 2);
  CHECK(life.stored(ids[2]).wait.what == run::WaitFor::slot);
  CHECK(life.stored(ids[2]).steps[0].rows == 0);
  for (std::size_t i = 0; i < 5; ++i) {
    life.answer(life.transport.calls.at(i), good());
    CHECK(life.transport.calls.size() == std::min<std::size_t>(5, i + 3));
    CHECK(life.stored(ids[i]).status == run::RunStatus::succeeded);
  }
}

TEST_CASE("while the ledger can't be written nothing leaves, submits are refused, and answers are kept") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::string id = (*life.submit({"plain", "plain"}))->run_id;
  life.ledger->full = true;
  life.answer(life.transport.calls.at(0), good("{\"id\":7}"));
  CHECK(life.transport.calls.size() == 1);
  CHECK_FALSE(life.engine->ready());
  const auto refused = life.submit({"plain"});
  REQUIRE(refused.has_value());
  CHECK(refused->error().code == "storage_full");
  CHECK(life.stored(id).steps[0].status == run::StepStatus::running);
  life.ledger->full = false;
  clock.at = clock.at + Duration{5'000};
  (void)life.engine->turn();
  CHECK(life.engine->ready());
  CHECK(life.stored(id).steps[0].result == "{\"id\":7}");
  CHECK(life.transport.calls.size() == 2);
  const auto runs = life.opened.reader->runs({});
  CHECK(runs->size() == 1);
}

TEST_CASE("a submit that met a full disk leaves nothing behind") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  life.ledger->full = true;
  const auto refused = life.submit({"plain"}, "k");
  REQUIRE(refused.has_value());
  CHECK(refused->error().code == "storage_full");
  life.ledger->full = false;
  clock.at = clock.at + Duration{5'000};
  (void)life.engine->turn();
  CHECK(life.transport.calls.empty());
  const auto again = life.submit({"plain"}, "k");
  REQUIRE(again.has_value());
  CHECK_FALSE((*again)->replayed);
  CHECK(life.transport.calls.size() == 1);
}

TEST_CASE("one submit key makes one run, also within a turn") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  std::vector<Result<engine::Submitted>> answers;
  for (int i = 0; i < 3; ++i) {
    run::Run planned = life.plan(R"({"steps":[{"id":"a","server":"api","tool":"plain"}]})");
    planned.submit_key = "k";
    if (i == 2) planned.submit_digest = "another";
    life.engine->submit(std::move(planned),
                        [&](Result<engine::Submitted> r) { answers.push_back(std::move(r)); });
  }
  (void)life.engine->turn();
  REQUIRE(answers.size() == 3);
  int created = 0, replayed = 0, refused = 0;
  std::string owner;
  for (const auto& a : answers) {
    if (!a) {
      ++refused;
      CHECK(a.error().code == "key_reused");
      continue;
    }
    ++(a->replayed ? replayed : created);
    if (owner.empty()) owner = a->run_id;
    CHECK(a->run_id == owner);
  }
  CHECK(created == 1);
  CHECK(replayed == 1);
  CHECK(refused == 1);
  CHECK(life.transport.calls.size() == 1);
}

TEST_CASE("a full inbox refuses and says so") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 2);
  int overloaded = 0;
  for (int i = 0; i < 5; ++i)
    life.engine->submit(life.plan(R"({"steps":[{"id":"a","server":"api","tool":"plain"}]})"),
                        [&](Result<engine::Submitted> r) {
                          if (!r && r.error().code == "overloaded") ++overloaded;
                        });
  CHECK(overloaded == 3);
  (void)life.engine->turn();
  CHECK(life.transport.calls.size() == 2);
}

TEST_CASE("an answer that comes after we gave up settles the doubt and no other run") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::string one = (*life.submit({"plain"}))->run_id;
  const std::string two = (*life.submit({"plain"}))->run_id;
  Evidence timeout = lost();
  timeout.failure = Failure::timeout;
  life.answer(life.transport.calls.at(0), timeout);
  life.answer(life.transport.calls.at(1), timeout);
  CHECK(life.stored(one).status == run::RunStatus::unknown);
  life.engine->late(life.transport.calls[0].id, good());
  life.engine->late(life.transport.calls[0].id, good());
  (void)life.engine->turn();
  CHECK(life.metrics.late_answers == 1);
  CHECK(life.stored(one).status == run::RunStatus::succeeded);
  CHECK(life.stored(two).status == run::RunStatus::unknown);
  CHECK(life.metrics.unknown_writes == 1);
}

TEST_CASE("a verdict reaches a run that has left memory, and is remembered") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::string id = (*life.submit({"plain"}))->run_id;
  life.answer(life.transport.calls.at(0), lost());
  const auto resolve = [&](run::Resolution verdict) {
    std::string code = "none";
    life.engine->resolve(write_id(id, 0), {verdict, "", "seen", "ops", std::nullopt},
                         [&](Result<void> r) { code = r ? "" : r.error().code; });
    (void)life.engine->turn();
    return code;
  };
  CHECK(resolve(run::Resolution::landed) == "");
  CHECK(life.stored(id).status == run::RunStatus::succeeded);
  CHECK(resolve(run::Resolution::landed) == "");
  CHECK(resolve(run::Resolution::abandon) == "already_resolved");
  const auto audit = life.opened.reader->audit(0, 10);
  REQUIRE(audit);
  REQUIRE(audit->size() == 1);
  CHECK(audit->front().who == "ops");
  CHECK(audit->front().why == "seen");
}

TEST_CASE("a run that queues for a slot is served before the next step of another") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::vector<std::string> chain(10, "read");
  for (int i = 0; i < 2; ++i) REQUIRE(life.submit(chain).has_value());
  const std::string late = (*life.submit({"read"}))->run_id;
  REQUIRE(life.transport.calls.size() == 2);
  life.answer(life.transport.calls.at(0), good());
  CHECK(life.stored(late).status == run::RunStatus::running);
}

TEST_CASE("a step that fails without a call stops the run before its neighbours leave") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  std::string id;
  life.engine->submit(life.plan(R"({"steps":[{"id":"a","server":"api","tool":"read"},
                                             {"id":"b","server":"api","tool":"plain","args":{"x":"${a/nope}"}},
                                             {"id":"c","server":"api","tool":"plain","after":["a"]}]})"),
                      [&](Result<engine::Submitted> r) { id = r->run_id; });
  (void)life.engine->turn();
  life.answer(life.transport.calls.at(0), good());
  CHECK(life.transport.calls.size() == 1);
  const run::Run run = life.stored(id);
  CHECK(run.steps[1].reason == Reason::bad_reference);
  CHECK(run.steps[2].status == run::StepStatus::skipped);
}

TEST_CASE("an answer and its lateness in one turn leave one finished row") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::string id = (*life.submit({"plain"}))->run_id;
  Evidence timeout = lost();
  timeout.failure = Failure::timeout;
  life.engine->finished(life.transport.calls.at(0).id, timeout);
  life.engine->late(life.transport.calls.at(0).id, good());
  (void)life.engine->turn();
  const auto rows = life.opened.reader->attempts(life.stored(id).seq, 0, 10);
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().delivery == Delivery::maybe_sent);
  CHECK(rows->front().late);
  CHECK(life.stored(id).status == run::RunStatus::succeeded);
}

TEST_CASE("what comes after the body's time was up is on record, and moves no settled run") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::string id = (*life.submit({"plain"}))->run_id;
  Evidence slow = lost();
  slow.failure = Failure::timeout;
  slow.phase = Phase::rx_part_body;
  slow.http_status = 200;
  life.answer(life.transport.calls.at(0), slow);
  CHECK(life.stored(id).reason == Reason::result_lost);
  life.engine->late(life.transport.calls.at(0).id, good());
  (void)life.engine->turn();
  const auto rows = life.opened.reader->attempts(life.stored(id).seq, 0, 10);
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().late);
  CHECK(life.metrics.late_answers == 1);
  CHECK(life.stored(id).status == run::RunStatus::failed);
}

TEST_CASE("what a key has accepted is told again when its body can't be planned any more") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const auto first = life.submit({"plain"}, "k");
  const std::string digest = life.stored((*first)->run_id).submit_digest;
  std::optional<Result<std::optional<engine::Submitted>>> answer;
  const auto ask = [&](std::string key, std::string body) {
    life.engine->replay("", std::move(key), std::move(body), [&](auto r) { answer = std::move(r); });
    (void)life.engine->turn();
  };
  ask("k", digest);
  REQUIRE(answer->has_value());
  CHECK((**answer)->run_id == (*first)->run_id);
  ask("k", "another");
  CHECK(answer->error().code == "key_reused");
  ask("unheard of", digest);
  CHECK_FALSE(answer->value().has_value());
}

namespace {

/// What a process ends with that does `what` with an engine of its own.
int exit_code_of(void (*what)(Life&)) {
  Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    HandClock clock;
    Life life(folder.path, clock);
    what(life);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a ledger that broke under a reader ends the process, although nothing is to be committed") {
  const int code = exit_code_of([](Life& life) {
    if (life.ledger->broken) life.ledger->broken(Error{"storage_broken", "the sync failed", ""});
    (void)life.engine->turn();
  });
  CHECK(code == 70);
}

TEST_CASE("a page that a read finds broken ends the process, so that it does not refuse submissions for ever") {
  const int code = exit_code_of([](Life& life) {
    life.ledger->corrupt = true;
    (void)life.submit({"plain"}, "key");
  });
  CHECK(code == 70);
}
