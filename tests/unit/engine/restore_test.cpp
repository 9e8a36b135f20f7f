// A ledger that was put back from a backup does not know what was sent since.
#include "unit/engine/engine_support.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

/// A backup of `life`, in a folder of its own as the database.
void back_up(Life& life, const Folder& to) {
  REQUIRE(life.opened.ledger->backup((to.path / "holdfast.db").string()));
}

}  // namespace

TEST_CASE("a restored plan sends no plain write by itself, neither the one that was next nor those behind it", "[restore]") {
  Folder folder, backup;
  HandClock clock;
  std::string id;
  {
    Life life(folder.path, clock);
    id = (*life.submit({"read", "plain", "plain"}))->run_id;
    back_up(life, backup);
    for (std::size_t i = 0; i < 3; ++i) life.answer(life.transport.calls.at(i), good());
    REQUIRE(life.stored(id).status == run::RunStatus::succeeded);
  }
  clock.at = clock.at + Duration{60'000};
  Life life(backup.path, clock);
  clock.at = clock.at + Duration{1'000};
  (void)life.engine->turn();
  REQUIRE(life.transport.calls.size() == 1);  // the read
  life.answer(life.transport.calls[0], good());
  run::Run run = life.stored(id);
  CHECK(run.status == run::RunStatus::unknown);
  CHECK(run.steps[1].status == run::StepStatus::unknown);
  CHECK(run.steps[1].reason == Reason::crashed);
  CHECK(run.steps[1].detail.find("restored from a backup") != std::string::npos);
  CHECK(run.steps[1].write->open);

  std::optional<Result<void>> answer;
  life.engine->resolve(write_id(id, 1), {run::Resolution::landed, "1", "seen there", "ops", std::nullopt},
                       [&](Result<void> r) { answer = std::move(r); });
  (void)life.engine->turn();
  REQUIRE(*answer);
  run = life.stored(id);
  CHECK(run.steps[1].status == run::StepStatus::succeeded);
  CHECK(run.steps[2].status == run::StepStatus::unknown);
  CHECK(life.transport.calls.size() == 1);
}

TEST_CASE("a restored keyed write is sent again while its key may be known, counted from the run's beginning", "[restore]") {
  Folder folder, backup;
  HandClock clock;
  std::string id;
  tools::Call first;
  {
    Life life(folder.path, clock);
    id = (*life.submit({"read", "keyed"}))->run_id;
    back_up(life, backup);
    life.answer(life.transport.calls.at(0), good());
    first = life.transport.calls.at(1);
  }
  const Instant created = clock.at;
  clock.at = clock.at + Duration{60'000};
  Life life(backup.path, clock);
  clock.at = clock.at + Duration{1'000};
  (void)life.engine->turn();
  life.answer(life.transport.calls.at(0), good());
  REQUIRE(life.transport.calls.size() == 2);
  CHECK(life.transport.calls[1].key == first.key);
  CHECK(life.transport.calls[1].request.body == first.request.body);
  CHECK(life.stored(id).steps[1].write->first_sent_at == created);
}

TEST_CASE("a restored keyed write whose key may be too old is unknown", "[restore]") {
  Folder folder, backup;
  HandClock clock;
  std::string id;
  {
    Life life(folder.path, clock);
    run::Run planned = life.plan(R"({"deadline":"7d","steps":[{"id":"a","server":"api","tool":"read"},{"id":"k","server":"api","tool":"keyed"}]})");
    life.engine->submit(std::move(planned), [&](Result<engine::Submitted> r) { id = r->run_id; });
    (void)life.engine->turn();
    back_up(life, backup);
  }
  clock.at = clock.at + Duration{25 * 3'600'000};
  Life life(backup.path, clock);
  clock.at = clock.at + Duration{1'000};
  (void)life.engine->turn();
  life.answer(life.transport.calls.at(0), good());
  CHECK(life.transport.calls.size() == 1);
  CHECK(life.stored(id).steps[1].status == run::StepStatus::unknown);
  CHECK(life.stored(id).steps[1].reason == Reason::key_expired);
}

TEST_CASE("a backup is distrusted once: the next start takes the ledger for its own", "[restore]") {
  Folder folder, backup;
  HandClock clock;
  {
    Life life(folder.path, clock);
    (void)life.submit({"read"});
    back_up(life, backup);
  }
  {
    Life life(backup.path, clock);
    const auto audit = life.opened.reader->audit(0, 10);
    REQUIRE(audit);
    REQUIRE(audit->size() == 1);
    CHECK(audit->front().action == "restore");
    (void)life.submit({"plain"});
  }
  Life life(backup.path, clock);
  CHECK(life.opened.reader->audit(0, 10)->size() == 1);
  const auto runs = life.opened.reader->runs({});
  REQUIRE(runs->size() == 2);
  CHECK(runs->front().status == run::RunStatus::unknown);  // a crash, as ever
  CHECK(life.stored(runs->front().id).steps[0].detail.find("backup") == std::string::npos);
}

TEST_CASE("a cancelled or expired restored run says unknown of what may have been sent, not cancelled or failed", "[restore]") {
  Folder folder, backup;
  HandClock clock;
  std::string late, cancelled;
  {
    Life life(folder.path, clock);
    late = (*life.submit({"read", "plain"}))->run_id;
    cancelled = (*life.submit({"read", "plain"}))->run_id;
    back_up(life, backup);
  }
  const bool expired = GENERATE(false, true);
  if (expired) clock.at = clock.at + Duration{3'600'000};
  Life life(backup.path, clock);
  life.engine->cancel(cancelled, "", "ops", "wrong list", [](auto) {});
  (void)life.engine->turn();
  CHECK(life.stored(cancelled).steps[1].status == run::StepStatus::unknown);
  if (expired) CHECK(life.stored(late).steps[1].status == run::StepStatus::unknown);
  for (const tools::Call& call : life.transport.calls) CHECK(call.tool == "read");
}
