// What a reader sees.
#include <atomic>
#include <set>
#include <thread>

#include "support.h"

namespace holdfast::ledger {
namespace {

using namespace test;

void submit(Opened& db, run::Run& run) {
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
}

std::vector<std::int64_t> seqs(const std::vector<run::Run>& runs) {
  std::vector<std::int64_t> out;
  for (const run::Run& run : runs) out.push_back(run.seq);
  return out;
}

}  // namespace

TEST_CASE("pages are newest first and hold each run once while new ones arrive") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  std::uint64_t n = 0;
  const auto submit_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      run::Run run = small_run(++n);
      submit(db, run);
    }
  };
  submit_some(25);
  std::vector<std::int64_t> seen;
  RunFilter filter{.limit = 4};
  for (;;) {
    const auto page = value_of(db.reader->runs(filter));
    if (page.empty()) break;
    for (const std::int64_t seq : seqs(page)) seen.push_back(seq);
    filter.before_seq = page.back().seq;
    submit_some(2);
  }
  std::vector<std::int64_t> expected;
  for (std::int64_t seq = 25; seq >= 1; --seq) expected.push_back(seq);
  CHECK(seen == expected);
}

TEST_CASE("filters pick by status, name, owner and labels") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  struct Row {
    run::RunStatus status;
    const char* name;
    const char* owner;
    const char* labels;
  };
  const std::vector<Row> rows{
      {run::RunStatus::queued, "a", "x", R"({"team":"ops","k":"v"})"},
      {run::RunStatus::succeeded, "b", "y", R"({"team":"ops"})"},
      {run::RunStatus::failed, "a", "x", R"({"te\u0061m":"\u006fps"})"},
      {run::RunStatus::unknown, "b", "y", "{}"},
      {run::RunStatus::cancelled, "a", "y", R"({"team":"dev"})"},
      {run::RunStatus::failed, "b", "x", "{}"},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    run::Run run = small_run(i + 1);
    run.name = rows[i].name;
    run.owner = rows[i].owner;
    run.labels = rows[i].labels;
    submit(db, run);
    run.status = rows[i].status;
    Batch batch;
    batch.runs = {&run};
    commit_or_fail(*db.ledger, batch);
  }
  struct Want {
    RunFilter filter;
    std::vector<std::int64_t> seqs;
  };
  const std::vector<Want> wants{
      {{}, {6, 5, 4, 3, 2, 1}},
      {{.status = run::RunStatus::queued}, {1}},
      {{.status = run::RunStatus::running}, {}},
      {{.status = run::RunStatus::succeeded}, {2}},
      {{.status = run::RunStatus::failed}, {6, 3}},
      {{.status = run::RunStatus::failed, .before_seq = 6}, {3}},
      {{.status = run::RunStatus::failed, .limit = 1}, {6}},
      {{.status = run::RunStatus::cancelled}, {5}},
      {{.status = run::RunStatus::unknown}, {4}},
      {{.name = "a"}, {5, 3, 1}},
      {{.owner = "y"}, {5, 4, 2}},
      {{.owner = "x", .status = run::RunStatus::failed, .name = "b"}, {6}},
      {{.labels = {{"team", "ops"}}}, {3, 2, 1}},
      {{.labels = {{"team", "ops"}}, .limit = 2}, {3, 2}},
      {{.labels = {{"team", "ops"}, {"k", "v"}}}, {1}},
      {{.labels = {{"team", "none"}}}, {}},
  };
  for (std::size_t i = 0; i < wants.size(); ++i) {
    INFO("filter " << i);
    CHECK(seqs(value_of(db.reader->runs(wants[i].filter))) == wants[i].seqs);
  }
}

TEST_CASE("a listing leaves the large texts alone") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  run.result = run.steps[0].result = "{\"big\":1}";
  run.steps[0].detail = "shown";
  run.steps[0].write = run::Write{.key = "k", .state = run::WriteState::landed, .request = {"h", "b"}};
  submit(db, run);
  const auto page = value_of(db.reader->runs({}));
  REQUIRE(page.size() == 1);
  REQUIRE(page[0].steps.size() == 1);
  const run::Step& step = page[0].steps[0];
  CHECK(page[0].result.empty());
  CHECK(step.result.empty());
  CHECK(step.spec.args.empty());
  CHECK(step.detail == "shown");
  REQUIRE(step.write);
  CHECK(step.write->key == "k");
  CHECK(step.write->state == run::WriteState::landed);
  CHECK(step.write->request.body.empty());
}

TEST_CASE("unknowns come oldest first, by cursor, filtered by server and tool") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  const std::vector<std::int64_t> since{30, 10, 20, 10, 40};
  for (std::size_t i = 0; i < since.size(); ++i) {
    run::Run run = small_run(i + 1, 2);
    run.status = run::RunStatus::unknown;
    run.owner = "o";
    run.steps[1].spec.tool = i == 0 ? "charge" : "post_note";
    run.steps[1].write =
        run::Write{.state = run::WriteState::unknown, .unknown_since = Instant{since[i]}, .open = true};
    run.steps[0].write = run::Write{.state = run::WriteState::landed};
    Batch batch;
    batch.new_runs = {&run};
    batch.attempts.emplace_back(&run, run::Attempt{.step = 0, .n = 1, .delivery = Delivery::answered});
    batch.attempts.emplace_back(&run, run::Attempt{.step = 1, .n = 1, .delivery = Delivery::maybe_sent});
    batch.attempts.emplace_back(
        &run, run::Attempt{.step = 1, .n = 2, .kind = AttemptKind::check, .started_at = Instant{77}});
    commit_or_fail(*db.ledger, batch);
    if (i == 4) {  // resolved since
      run.steps[1].write->open = false;
      run.steps[1].write->resolution = run::Resolution::landed;
      batch.clear();
      batch.steps = {{&run, 1}};
      commit_or_fail(*db.ledger, batch);
    }
  }
  const auto walk = [&](UnknownFilter filter) {
    std::vector<std::int64_t> out;
    for (;;) {
      const auto page = value_of(db.reader->unknowns(filter));
      for (const UnknownEntry& entry : page) out.push_back(entry.run_seq);
      if (page.size() < filter.limit) return out;
      filter.after_since_ms = page.back().state.write->unknown_since->ms;
      filter.after_run_seq = page.back().run_seq;
      filter.after_step = page.back().step;
    }
  };
  CHECK(walk({.limit = 1}) == std::vector<std::int64_t>{2, 4, 3, 1});
  CHECK(walk({.open_only = false, .limit = 2}) == std::vector<std::int64_t>{2, 4, 3, 1, 5});
  CHECK(walk({.tool = "charge"}) == std::vector<std::int64_t>{1});
  CHECK(walk({.server = "crm"}) == std::vector<std::int64_t>{2, 4, 3, 1});
  CHECK(walk({.server = "billing"}).empty());

  const auto one = value_of(db.reader->unknown(run_id(2), 1));
  REQUIRE(one);
  CHECK(std::tie(one->run_id, one->run_name, one->owner) == std::tuple(run_id(2), "nightly", "o"));
  REQUIRE(one->attempts.size() == 2);
  CHECK(one->attempts[1].kind == AttemptKind::check);
  CHECK(one->state.in_flight);
  CHECK(one->state.sent_at == Instant{77});
  CHECK(value_of(db.reader->unknown(run_id(5), 1)));
  CHECK_FALSE(value_of(db.reader->unknown(run_id(2), 0)));
  CHECK_FALSE(value_of(db.reader->unknown(run_id(2), 7)));
  CHECK_FALSE(value_of(db.reader->unknown(run_id(77), 1)));
}

TEST_CASE("every read sees one state while batches are committed beside it") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1, 3);
  submit(db, run);
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0, reads = 0, errors = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {  // more than there are connections
    threads.emplace_back([&] {
      while (!stop) {
        const auto seen = db.reader->run(run_id(1));
        if (!seen || !*seen) {
          ++errors;
          continue;
        }
        for (const run::Step& step : (*seen)->steps) torn += step.attempts != (*seen)->retry_spent;
        ++reads;
      }
    });
  }
  Batch batch;
  batch.runs = {&run};
  for (std::uint32_t i = 0; i < 3; ++i) batch.steps.push_back({&run, i});
  for (std::uint32_t value = 1; value <= 60 || reads < 300; ++value) {
    run.retry_spent = value;
    for (run::Step& step : run.steps) step.attempts = value;
    commit_or_fail(*db.ledger, batch);
    db.ledger->checkpoint_if_due();
  }
  stop = true;
  threads.clear();
  CHECK(torn == 0);
  CHECK(errors == 0);
}

}  // namespace holdfast::ledger
