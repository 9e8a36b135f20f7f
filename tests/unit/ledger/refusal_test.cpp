// What the tables would refuse is refused before it is durable, and who reads waits for what he must, and for nothing else.
#include <future>

#include "ledger/sqlite/writer.h"
#include "support.h"

namespace holdfast::ledger {
namespace {

using namespace test;

run::Run put_run(Ledger& ledger, std::uint64_t n, bool settled = false) {
  run::Run run = small_run(n);
  if (settled) run.status = run::RunStatus::succeeded, run.finished_at = Instant{1};
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(ledger, batch);
  return run;
}

run::Event event(std::int64_t seq) {
  return {.seq = seq, .at = Instant{2}, .type = "step.waiting", .step = "s0"};
}

/// `refused` breaks the ledger, and the next start finds what was there before it.
void check_refused(const std::function<void(Opened&, Batch&)>& fill) {
  const Folder folder;
  std::size_t before = 0;
  {
    Opened db = open_or_fail(folder.database());
    run::Run kept = put_run(*db.ledger, 900);
    Batch refused;
    fill(db, refused);
    before = value_of(db.reader->runs({})).size();
    const Result<Committed> done = db.ledger->commit(refused);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == "storage_broken");
  }
  Opened again = open_or_fail(folder.database());
  CHECK(value_of(again.reader->runs({})).size() == before);
}

}  // namespace

TEST_CASE("a change of a run that is not there is not durable") {
  run::Run run = small_run(1);
  check_refused([&](Opened& db, Batch& batch) {
    run = put_run(*db.ledger, 1, true);
    (void)put_run(*db.ledger, 2);
    Batch prune;
    prune.prune = {run.seq};
    commit_or_fail(*db.ledger, prune);
    batch.runs = {&run};
  });
}

TEST_CASE("a change of a run under the id of another is not durable") {
  run::Run run = small_run(1);
  check_refused([&](Opened& db, Batch& batch) {
    run = put_run(*db.ledger, 1);
    (void)value_of(db.reader->runs({}));
    run.id = run_id(77);
    batch.runs = {&run};
  });
}

TEST_CASE("an event under a number that is taken is not durable, in the tables, in the journal and in the same batch") {
  const auto where = GENERATE(0, 1, 2);
  run::Run run = small_run(1);
  check_refused([&](Opened& db, Batch& batch) {
    run = put_run(*db.ledger, 1);
    Batch first;
    if (where == 2)
      batch.events.emplace_back(&run, event(1));
    else
      first.events.emplace_back(&run, event(1)), commit_or_fail(*db.ledger, first);
    if (where == 0) (void)value_of(db.reader->runs({}));
    batch.events.emplace_back(&run, event(1));
  });
}

TEST_CASE("a step under a number that is taken, or beyond the next, is not durable") {
  const bool folded = GENERATE(true, false);
  const std::uint32_t step = GENERATE(0, 2);
  run::Run run = small_run(1);
  check_refused([&](Opened& db, Batch& batch) {
    run = put_run(*db.ledger, 1);
    if (folded) (void)value_of(db.reader->runs({}));
    run.steps.push_back(run.steps[0]);
    run.steps.push_back(run.steps[0]);
    batch.new_steps = {{&run, step}};
  });
}

TEST_CASE("an attempt or a change of a step that was never stored is not durable") {
  const bool folded = GENERATE(true, false);
  const bool attempt = GENERATE(true, false);
  run::Run run = small_run(1);
  check_refused([&](Opened& db, Batch& batch) {
    run = put_run(*db.ledger, 1);
    if (folded) (void)value_of(db.reader->runs({}));
    run.steps.push_back(run.steps[0]);
    if (attempt)
      batch.attempts.emplace_back(&run, run::Attempt{.step = 1, .n = 1});
    else
      batch.steps = {{&run, 1}};
  });
}

TEST_CASE("an attempt that is twice in one batch is stored as it was last") {
  const bool known = GENERATE(true, false);
  const Folder folder;
  std::optional<Opened> db = open_or_fail(folder.database());
  run::Run run = put_run(*db->ledger, 1);
  run::Attempt attempt{.step = 0, .n = 1, .started_at = Instant{5}, .detail = "begun"};
  Batch before, twice;
  before.attempts.emplace_back(&run, attempt);
  if (known) commit_or_fail(*db->ledger, before);
  twice.attempts.emplace_back(&run, attempt);
  twice.attempts.back().second.detail = "changed";
  twice.attempts.back().second.http_status = 200;
  twice.attempts.emplace_back(&run, attempt);
  twice.attempts.back().second.detail = known ? "begun" : "";
  commit_or_fail(*db->ledger, twice);
  for (int start = 0; start < 2; ++start) {
    const run::Attempt found = *value_of(db->ledger->find_attempt(run.seq, 0, 1));
    CHECK(found.detail == (known ? "begun" : ""));
    CHECK(found.http_status == attempt.http_status);
    db.reset(), db = open_or_fail(folder.database());
  }
}

TEST_CASE("a stored number that a member has no room for is told, not cut") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  const run::Run run = put_run(*db.ledger, 1);
  REQUIRE(db.reader->runs({}));
  Outsider(folder.database()).execute("UPDATE runs SET retry_limit = 4294967297");
  const auto found = db.reader->run(run.id);
  REQUIRE_FALSE(found);
  CHECK(found.error().code == "storage_broken");
}

/// Else an older run could be carried over a fold that brings a newer one into the tables, and a listing would show a gap.
TEST_CASE("between what is shown and the snapshot that looks at it nothing is committed") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  auto* ledger = dynamic_cast<sqlite::SqliteLedger*>(db.ledger.get());
  REQUIRE(ledger);
  (void)put_run(*db.ledger, 1);
  std::future<run::Run> committing;
  bool committed = false;
  REQUIRE(ledger->show_all([&] {
    committing = std::async(std::launch::async, [&] { return put_run(*db.ledger, 2); });
    committed = committing.wait_for(std::chrono::milliseconds(200)) == std::future_status::ready;
  }));
  CHECK_FALSE(committed);
  CHECK(committing.get().seq == 2);
}

TEST_CASE("who reads a run that is in memory does not wait for whoever writes") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  auto* ledger = dynamic_cast<sqlite::SqliteLedger*>(db.ledger.get());
  REQUIRE(ledger);
  const run::Run run = put_run(*db.ledger, 1);
  bool read = false;
  std::future<Result<std::optional<run::Run>>> reading;
  REQUIRE(ledger->look([&](sqlite::Connection&) {  // as a commit, it holds what writers hold
    reading = std::async(std::launch::async, [&] { return db.reader->run(run.id); });
    read = reading.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }));
  CHECK(read);
  CHECK(value_of(reading.get())->id == run.id);
}

}  // namespace holdfast::ledger
