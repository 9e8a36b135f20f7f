// Whatever is in a value comes back, member by member.
#include "any.h"

namespace holdfast::ledger {
namespace {

using namespace test;

}  // namespace

TEST_CASE("a run comes back as it was inserted and as it was changed") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  std::uint64_t n = 0;
  REQUIRE(rc::check([&] {
    run::Run stored = any_run(++n);
    if (stored.settled()) stored.status = run::RunStatus::running;  // a settled run never changes again
    Batch batch;
    batch.new_runs = {&stored};
    commit_or_fail(*db.ledger, batch);
    REQUIRE(stored.seq == static_cast<std::int64_t>(n));
    same(stored, *value_of(db.ledger->load(stored.id)));

    fill_state(stored);
    for (run::Step& step : stored.steps) fill_state(step);
    for (run::Step& step : stored.steps) {
      if (step.effect == Effect::write && !step.write) step.write = any_write();
      if (step.effect == Effect::read) step.effect = Effect::write;  // a write's row is never taken back
      if (!step.write) step.write = any_write();
    }
    batch.clear();
    batch.runs = {&stored};
    for (std::uint32_t i = 0; i < stored.steps.size(); ++i) batch.steps.push_back({&stored, i});
    commit_or_fail(*db.ledger, batch);
    same(stored, *value_of(db.ledger->load(stored.id)));
    same(stored, *value_of(db.reader->run(stored.id)));
  }));
}

TEST_CASE("a step added to an open run comes back") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1, 0);
  run.mode = run::Mode::open;
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
  run.steps.push_back(small_run(1).steps[0]);
  run.steps[0].write = run::Write{.key = "k"};
  batch.clear();
  batch.new_steps = {{&run, 0}};
  batch.steps = {{&run, 0}};
  commit_or_fail(*db.ledger, batch);
  same(run, *value_of(db.ledger->load(run.id)));
}

TEST_CASE("an attempt comes back, and is replaced when it is written again") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
  std::uint32_t n = 0;
  REQUIRE(rc::check([&] {
    ++n;
    run.last_event = n;
    for (int turn = 0; turn < 2; ++turn) {
      run::Attempt attempt = any_attempt(0, n);
      batch.clear();
      batch.attempts.emplace_back(&run, attempt);
      commit_or_fail(*db.ledger, batch);
      attempt.run_seq = run.seq;
      same(attempt, *value_of(db.ledger->find_attempt(run.seq, 0, n)));
      same(attempt, value_of(db.reader->attempts(run.seq, n - 1, 10)).at(0));
    }
  }));
  CHECK(value_of(db.reader->attempts(run.seq, 0, 1'000)).size() == n);
  CHECK_FALSE(value_of(db.ledger->find_attempt(run.seq, 0, n + 1)));
}

TEST_CASE("attempts come in the order in which they were begun, whatever the clock said") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1, 2);
  Batch batch;
  batch.new_runs = {&run};
  struct Begun {
    std::uint32_t step, n;
    std::int64_t started_ms;
  };
  const std::vector<Begun> begun{
      {1, 1, 5'000}, {0, 1, 4'000}, {1, 2, 3'000}};  // the wall clock went back twice
  for (const Begun& b : begun) {
    run.last_event += 1;
    batch.attempts.emplace_back(&run,
                                run::Attempt{.step = b.step, .n = b.n, .started_at = Instant{b.started_ms}});
    commit_or_fail(*db.ledger, batch);
    batch.clear();
  }
  const auto rows = value_of(db.reader->attempts(run.seq, 0, 10));
  REQUIRE(rows.size() == begun.size());
  for (std::size_t i = 0; i < begun.size(); ++i)
    CHECK(std::pair(rows[i].step, rows[i].n) == std::pair(begun[i].step, begun[i].n));
}

TEST_CASE("events come back in order, each with a type that outlives them") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  const std::vector<std::string_view> types{"run.submitted",        "run.waiting",        "run.unknown",
                                            "run.cancel_requested", "run.settled",        "step.dispatched",
                                            "step.waiting",         "step.settled",       "write.unknown",
                                            "write.settled",        "attempt.late_answer"};
  Batch batch;
  batch.new_runs = {&run};
  for (const std::string_view type : types) {
    run.last_event += 1;
    const std::string nul("{\"x\":\"\0\"}", 9);
    batch.events.emplace_back(&run, run::Event{.seq = run.last_event,
                                               .at = Instant{run.last_event * 7},
                                               .type = type,
                                               .step = "s0",
                                               .data = nul});
  }
  commit_or_fail(*db.ledger, batch);
  std::vector<run::Event> read = value_of(db.reader->events(run.seq, 0, 100));
  REQUIRE(read.size() == types.size());
  std::vector<run::Event> moved = std::move(read);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const run::Event& written = batch.events[i].second;
    CHECK(std::tie(moved[i].seq, moved[i].at, moved[i].type, moved[i].step, moved[i].data) ==
          std::tie(written.seq, written.at, written.type, written.step, written.data));
    CHECK(moved[i].run_seq == run.seq);
  }
  CHECK(value_of(db.reader->events(run.seq, 9, 100)).size() == 2);
  CHECK(value_of(db.reader->events(run.seq, 2, 3)).front().seq == 3);
  CHECK(value_of(db.reader->events(run.seq, 2, 3)).size() == 3);
}

TEST_CASE("an open run goes on counting its events where their rows end, whenever its own row was written") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
  batch.clear();
  for (int i = 0; i < 3; ++i)
    batch.events.emplace_back(&run, run::Event{.seq = ++run.last_event, .type = "step.waiting"});
  commit_or_fail(*db.ledger, batch);
  CHECK(value_of(db.ledger->load(run.id))->last_event == run.last_event);
  const Ledger::Open open = value_of(db.ledger->load_open());
  REQUIRE(open.runs.size() == 1);
  CHECK(open.runs[0].last_event == run.last_event);
}

TEST_CASE("breakers and gates come back and are replaced") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  REQUIRE(rc::check([&] {
    Breaker b{.server = "crm", .tool = any_bool() ? "" : "search"};
    b.state = any_of(BreakerState::half_open);
    b.forced_open = any_bool();
    for (std::string* text : {&b.by, &b.why, &b.last_cause}) *text = any_text();
    b.generation = any_number<std::uint64_t>() >> 1;
    b.since = any_instant();
    b.until = maybe_instant();
    b.probe_until = maybe_instant();
    for (std::uint32_t* count : {&b.consecutive, &b.window_calls, &b.window_failures}) *count = any_count();
    b.window_start = any_instant();
    b.cooldown = any_duration();
    const RateGate g{"crm", maybe_instant(), any_count()};
    Batch batch;
    batch.breakers = {b};
    batch.gates = {g};
    commit_or_fail(*db.ledger, batch);
    const auto open = value_of(db.ledger->load_open());
    for (const auto& all : {open.breakers, value_of(db.reader->breakers())}) {
      const auto at =
          std::find_if(all.begin(), all.end(), [&](const Breaker& x) { return x.tool == b.tool; });
      REQUIRE(at != all.end());
      CHECK(std::tie(at->server, at->state, at->forced_open, at->by, at->why, at->last_cause, at->generation,
                     at->since, at->until, at->probe_until, at->consecutive, at->window_calls,
                     at->window_failures, at->window_start, at->cooldown) ==
            std::tie(b.server, b.state, b.forced_open, b.by, b.why, b.last_cause, b.generation, b.since,
                     b.until, b.probe_until, b.consecutive, b.window_calls, b.window_failures, b.window_start,
                     b.cooldown));
    }
    REQUIRE(open.gates.size() == 1);
    CHECK(std::tie(open.gates[0].server, open.gates[0].until, open.gates[0].hits) ==
          std::tie(g.server, g.until, g.hits));
  }));
}

TEST_CASE("slices of service times come back, and a new day takes the place of the one eight days older") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  const auto put = [&](LatencyRow row) {
    Batch batch;
    batch.latencies = {std::move(row)};
    CHECK_FALSE(batch.empty());
    commit_or_fail(*db.ledger, batch);
  };
  const SizedDeadline sized{Duration{1'500}, Instant{77}};
  put({"crm", "search", {.slot = 3, .start = Instant{300}, .samples = "5:1"}, std::nullopt});
  put({"crm", "search", {.slot = 3, .start = Instant{1'100}, .samples = "7:2 90:0:1"}, sized});
  put({"crm", "search", {.slot = 2, .start = Instant{1'000}, .samples = ""}, std::nullopt});
  put({"crm", "note", {.slot = 3, .start = Instant{1'100}, .samples = "1:1"}, std::nullopt});
  db = {};
  db = open_or_fail(folder.database());
  const auto rows = value_of(db.ledger->load_open()).latencies;
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].tool == "note");
  CHECK(rows[1].slice.start == Instant{1'000});
  CHECK(rows[1].slice.samples.empty());
  CHECK_FALSE(rows[1].sized);
  CHECK(std::tie(rows[2].server, rows[2].tool, rows[2].slice.slot, rows[2].slice.samples) ==
        std::tuple("crm", "search", 3u, "7:2 90:0:1"));
  CHECK(rows[2].slice.start == Instant{1'100});
  CHECK(rows[2].sized == sized);
  // Eight days later nothing of these is in any window.
  put({"crm", "new", {.slot = 0, .start = Instant{1'050} + LatencyWindow::kSlices * LatencyWindow::kSlice}, {}});
  const auto left = value_of(db.ledger->load_open()).latencies;
  CHECK(left.size() == 3);
  CHECK(left[1].slice.start == Instant{1'100});
  CHECK(left[2].slice.start == Instant{1'100});
}

TEST_CASE("audit entries come back, newest first, page by page") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  Batch batch;
  for (int i = 0; i < 5; ++i)
    batch.audit.push_back({.at = Instant{i},
                           .who = "ops",
                           .action = "resolve",
                           .subject = "wr_" + std::to_string(i),
                           .why = "saw it",
                           .data = "{\"i\":1}"});
  commit_or_fail(*db.ledger, batch);
  const auto first = value_of(db.reader->audit(0, 2));
  REQUIRE(first.size() == 2);
  CHECK(first[0].subject == "wr_4");
  CHECK(std::tie(first[0].at, first[0].who, first[0].action, first[0].why, first[0].data) ==
        std::tuple(Instant{4}, "ops", "resolve", "saw it", "{\"i\":1}"));
  const auto rest = value_of(db.reader->audit(first[1].seq, 10));
  REQUIRE(rest.size() == 3);
  CHECK(rest[0].subject == "wr_2");
}

}  // namespace holdfast::ledger
