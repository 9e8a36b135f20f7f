// A commit is one record in the journal, and nobody can tell it from rows.
#include <future>
#include <latch>

#include "any.h"
#include "ledger/sqlite/packed.h"
#include "ledger/sqlite/record.h"
#include "ledger/sqlite/writer.h"

namespace holdfast::ledger {
namespace {

using namespace test;

sqlite::Tuning small_journal() {
  sqlite::Tuning tuning;
  tuning.journal_slots = 32;
  tuning.fold_slots = 4;
  return tuning;
}

/// A run as it was committed.
struct Known {
  run::Run run;
  std::vector<run::Attempt> attempts;
  std::vector<run::Event> events;
};

run::Event next_event(run::Run& run) {
  run.last_event += 1;
  return {.seq = run.last_event, .at = any_instant(), .type = "step.waiting", .step = any_text(), .data = any_text()};
}

void commit_new(Opened& db, std::vector<std::unique_ptr<Known>>& known, int n) {
  Known& fresh = *known.emplace_back(std::make_unique<Known>());
  fresh.run = any_run(static_cast<std::uint64_t>(n));
  fresh.run.last_event = 0;
  fresh.events.push_back(next_event(fresh.run));
  Batch batch;
  batch.new_runs = {&fresh.run};
  batch.events.emplace_back(&fresh.run, fresh.events.back());
  commit_or_fail(*db.ledger, batch);
}

void commit_change(Opened& db, Known& of) {
  Batch batch;
  const std::int64_t last = of.run.last_event;
  fill_state(of.run);
  of.run.last_event = last;
  of.events.push_back(next_event(of.run));
  batch.runs = {&of.run};
  batch.events.emplace_back(&of.run, of.events.back());
  for (std::uint32_t i = 0; i < of.run.steps.size(); ++i) {
    if (any_bool()) continue;
    run::Step& step = of.run.steps[i];
    const Effect effect = step.effect;  // as the tool's: it never changes
    fill_state(step);
    step.effect = effect;
    step.write = effect == Effect::write ? std::optional(any_write()) : std::nullopt;
    batch.steps.push_back({&of.run, i});
    const auto n = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
    run::Attempt attempt = any_attempt(i, n);
    batch.attempts.emplace_back(&of.run, attempt);
    attempt.run_seq = of.run.seq;
    const auto row = std::ranges::find_if(of.attempts, [&](const run::Attempt& a) { return a.step == i && a.n == n; });
    if (row == of.attempts.end())
      of.attempts.push_back(attempt);
    else
      *row = attempt;
  }
  commit_or_fail(*db.ledger, batch);
}

void compare(Opened& db, const Known& of) {
  same(of.run, *value_of(db.reader->run(of.run.id)));
  same(of.run, *value_of(db.ledger->load(of.run.id)));
  const std::vector<run::Event> events = value_of(db.reader->events(of.run.seq, 0, 1'000));
  REQUIRE(events.size() == of.events.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    CHECK(std::tie(events[i].seq, events[i].at, events[i].type, events[i].step, events[i].data) ==
          std::tie(of.events[i].seq, of.events[i].at, of.events[i].type, of.events[i].step, of.events[i].data));
  REQUIRE(value_of(db.reader->attempts(of.run.seq, 0, 1'000)).size() == of.attempts.size());
  for (const run::Attempt& row : of.attempts) same(row, *value_of(db.ledger->find_attempt(of.run.seq, row.step, row.n)));
}

void commit_run(Opened& db, run::Run& run) {
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
}

run::Run settled_run(std::uint64_t n) {
  run::Run run = small_run(n);
  run.status = run::RunStatus::succeeded;
  run.finished_at = Instant{99};
  run.steps[0].status = run::StepStatus::succeeded;
  run.steps[0].write = run::Write{.key = "k", .state = run::WriteState::landed, .keyed = true, .first_sent_at = Instant{77}};
  return run;
}

}  // namespace

TEST_CASE("a run reads the same in the journal, folded, packed, laid out and after another start") {
  REQUIRE(rc::check([] {
    const Folder folder;
    std::optional<Opened> db = open_or_fail(folder.database(), small_journal());
    std::vector<std::unique_ptr<Known>> known;
    for (int turn = 1; turn <= 25; ++turn) {
      switch (*rc::gen::inRange(0, 7)) {
        case 0:
        case 1:
          commit_new(*db, known, turn);
          break;
        case 2:
        case 3:
        case 4:
          if (!known.empty()) commit_change(*db, *known[*rc::gen::inRange<std::size_t>(0, known.size())]);
          break;
        case 5:
          db->ledger->checkpoint_if_due();
          break;
        default:
          if (any_bool())
            CHECK(value_of(db->reader->runs({.limit = 100})).size() == known.size());
          else
            db.reset(), db = open_or_fail(folder.database(), small_journal());
      }
      if (!known.empty()) compare(*db, *known[*rc::gen::inRange<std::size_t>(0, known.size())]);
    }
    for (const auto& of : known) compare(*db, *of);
  }));
}

TEST_CASE("a commit writes one page of the journal and no table, until it is folded") {
  const Folder folder;
  Opened db = open_or_fail(folder.database(), small_journal());
  Outsider look(folder.database());
  run::Run run = small_run(1);
  commit_run(db, run);
  CHECK(look.text("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM journal), (SELECT record FROM journal_folded)") == "0|1|0\n");
  CHECK(value_of(db.reader->runs({})).size() == 1);
  CHECK(look.text("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM journal), (SELECT record FROM journal_folded)") == "1|1|1\n");
}

TEST_CASE("what is in the journal is in the tables after another start, and only once") {
  const Folder folder;
  run::Run run = small_run(1);
  {
    Opened db = open_or_fail(folder.database());
    commit_run(db, run);
  }
  for (int start = 0; start < 2; ++start) {
    Opened db = open_or_fail(folder.database());
    CHECK(Outsider(folder.database()).text("SELECT count(*) FROM runs") == "1\n");
    REQUIRE(value_of(db.ledger->load_open()).runs.size() == 1);
    same(run, value_of(db.ledger->load_open()).runs[0]);
  }
}

TEST_CASE("a run that ended while it was in the journal is one packed row, and rows again when it changes") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = settled_run(1);
  commit_run(db, run);
  REQUIRE(value_of(db.reader->runs({})).size() == 1);
  Outsider look(folder.database());
  CHECK(look.text("SELECT (SELECT count(*) FROM packed_runs), (SELECT count(*) FROM steps), (SELECT count(*) FROM writes)") == "1|0|0\n");
  same(run, *value_of(db.reader->run(run.id)));

  run.steps[0].detail = "late";
  Batch batch;
  batch.steps = {{&run, 0}};
  commit_or_fail(*db.ledger, batch);
  same(run, *value_of(db.reader->run(run.id)));
  CHECK(look.text("SELECT (SELECT count(*) FROM packed_runs), (SELECT count(*) FROM steps), (SELECT count(*) FROM writes)") == "0|1|1\n");
}

TEST_CASE("a run with a write that was unknown is never packed: listings of unknowns look at rows") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = settled_run(1);
  run.steps[0].write->unknown_since = Instant{80};
  run.steps[0].write->resolution = run::Resolution::landed;
  commit_run(db, run);
  CHECK(value_of(db.reader->unknowns({.open_only = false})).size() == 1);
}

TEST_CASE("a packed run is pruned by the same rules") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run old = settled_run(1), newest = settled_run(2);
  old.steps[0].write->last_sent_at = Instant{78};
  commit_run(db, old);
  commit_run(db, newest);
  std::vector<Instant> sent;
  const auto slice = value_of(db.ledger->prunable(old.created_at + Duration{1}, 0, 10, [&](const Ledger::Prunable& run) {
    for (const auto& key : run.keys) sent.push_back(key.last_sent_at);
    return true;
  }));
  CHECK(slice.runs.size() == 1);
  CHECK(sent == std::vector{Instant{78}});
  Batch batch;
  batch.prune = {old.seq};
  commit_or_fail(*db.ledger, batch);
  CHECK_FALSE(value_of(db.reader->run(old.id)));
  CHECK(Outsider(folder.database()).text("SELECT count(*) FROM packed_runs") == "1\n");
}

TEST_CASE("listings that wait for the writer leave a connection to who does not have to wait") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run old = settled_run(1), newest = settled_run(2);
  commit_run(db, old);
  commit_run(db, newest);
  REQUIRE(value_of(db.reader->runs({})).size() == 2);
  std::promise<void> held, release;
  const auto writer = std::async(std::launch::async, [&] {
    return db.ledger->prunable(old.created_at + Duration{1}, 0, 10, [&](const Ledger::Prunable&) {
      held.set_value();
      release.get_future().wait();
      return false;
    });
  });
  held.get_future().wait();
  constexpr int kListings = 8;  // more than there are connections
  std::latch started(kListings);
  std::vector<std::future<std::size_t>> listings;
  for (int i = 0; i < kListings; ++i)
    listings.push_back(std::async(std::launch::async, [&] {
      started.count_down();
      return value_of(db.reader->runs({})).size();
    }));
  started.wait();
  const auto reads = std::async(std::launch::async, [&] {
    for (int i = 0; i < 1'000; ++i) (void)value_of(db.reader->run(old.id));
  });
  CHECK(reads.wait_for(std::chrono::seconds{10}) == std::future_status::ready);
  release.set_value();
  for (auto& listing : listings) CHECK(listing.get() == 2);
}

TEST_CASE("runs that stay don't count against the bytes of a slice") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run runs[] = {settled_run(1), settled_run(2), settled_run(3), settled_run(4)};
  for (run::Run& run : runs) {
    run.result = '"' + std::string(5'000'000, 'x') + '"';
    commit_run(db, run);
  }
  const auto slice = value_of(db.ledger->prunable(runs[3].created_at + Duration{1}, 0, 10, [&](const Ledger::Prunable& run) { return run.id == runs[2].id; }));
  REQUIRE(slice.runs.size() == 1);
  CHECK(slice.runs[0].id == runs[2].id);
  CHECK(slice.at_end);
}

TEST_CASE("ids and submit keys are taken from their commit on") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run first = small_run(1);
  first.submit_key = "k";
  commit_run(db, first);
  const bool folded = GENERATE(false, true);
  if (folded) REQUIRE(value_of(db.reader->runs({})).size() == 1);
  CHECK(value_of(db.ledger->find_submission("", "k"))->run_id == first.id);
  run::Run second = small_run(GENERATE(1u, 2u));
  second.submit_key = second.id == first.id ? "" : "k";
  Batch batch;
  batch.new_runs = {&second};
  const auto refused = db.ledger->commit(batch);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "storage_broken");
}

TEST_CASE("a batch that the journal has no room for goes into the tables, with all before it") {
  const Folder folder;
  Opened db = open_or_fail(folder.database(), small_journal());
  run::Run small = small_run(1), large = small_run(2);
  large.result = std::string(100'000, 'x');
  commit_run(db, small);
  commit_run(db, large);
  CHECK(Outsider(folder.database()).text("SELECT count(*) FROM runs") == "2\n");
  run::Run many = small_run(3);
  commit_run(db, many);
  for (int i = 0; i < 200; ++i) {
    many.detail = std::to_string(i);
    Batch batch;
    batch.runs = {&many};
    commit_or_fail(*db.ledger, batch);
  }
  CHECK(Outsider(folder.database()).text("SELECT max(slot) < 32 FROM journal") == "1\n");
  same(many, *value_of(db.reader->run(many.id)));
}

TEST_CASE("a journal that can't be folded loses nothing, is read all the same, and refuses commits only when it is full") {
  const Folder folder;
  { open_or_fail(folder.database()); }
  sqlite::Tuning tuning = small_journal();
  tuning.max_pages = 70;  // room for the journal, and not for what is in it
  Opened db = open_or_fail(folder.database(), tuning);
  std::vector<run::Run> runs;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    run::Run run = small_run(n);
    run.name = std::string(3'000, static_cast<char>('a' + n % 26));
    Batch batch;
    batch.new_runs = {&run};
    const auto done = db.ledger->commit(batch);
    if (!done) {
      CHECK(done.error().code == "storage_full");
      break;
    }
    runs.push_back(run);
    db.ledger->checkpoint_if_due();
  }
  REQUIRE(runs.size() > 20);
  REQUIRE(runs.size() < 100);
  for (const run::Run& run : runs) same(run, *value_of(db.reader->run(run.id)));
  Outsider(folder.database()).execute("PRAGMA user_version");
  db = {};
  Opened again = open_or_fail(folder.database());
  CHECK(value_of(again.ledger->load_open()).runs.size() == runs.size());
}

TEST_CASE("a backup holds what is in the journal") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  commit_run(db, run);
  REQUIRE(db.ledger->backup(folder / "copy.db"));
  Opened copy = open_or_fail(folder / "copy.db");
  same(run, *value_of(copy.reader->run(run.id)));
}

TEST_CASE("a record of format 1 is read for ever") {
  sqlite::Pending written, read;
  run::Run run = settled_run(1);
  run.seq = 7;
  run.submit_digest = "d";
  run.steps[0].wait = {run::WaitFor::backoff, Instant{5}};
  Batch batch;
  batch.new_runs = {&run};
  batch.attempts.emplace_back(&run, run::Attempt{.step = 0, .n = 1, .finished_at = Instant{3}, .delivery = Delivery::answered, .rpc_code = -32'000});
  batch.events.emplace_back(&run, run::Event{.seq = 1, .at = Instant{2}, .type = "run.settled", .data = "{\"status\":\"succeeded\"}"});
  const std::string record = written.encode(batch);
  std::string hex;
  for (const char c : record) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  CHECK(hex ==
        "01010ed903001e72756e5f303030303030303030303030303030303030303030303030303100016400076e696768746c7982a0abfef9622802c1050a01bb9eabfe"
        "f962fc8c99fff962030300001700027330000363726d0009706f73745f6e6f746500187b2274657874223a2268656c6c6f2c206c6564676572227d8f0c23000d63"
        "726d2f706f73745f6e6f7465060a1401b78e99fff962013300016b11020190010500000100e28001020193012701fff30306000201340100167b22737461747573"
        "223a22737563636565646564227d");
  read.absorb(record);
  REQUIRE(read.whole(7));
  same(run, read.whole(7)->run);
}

TEST_CASE("bytes that are no record are refused") {
  run::Run run = settled_run(1);
  run.seq = 1;
  Batch batch;
  batch.new_runs = {&run};
  const std::string record = sqlite::Pending().encode(batch);
  for (std::size_t size = 0; size < record.size(); ++size) {
    sqlite::Pending pending;
    try {
      pending.absorb(record.substr(0, size));
      CHECK((size == 1 || !pending.empty()));  // it ended between two entries
    } catch (const SQLite::Exception& failure) {
      CHECK(failure.getErrorCode() == SQLITE_CORRUPT);
    }
  }
  sqlite::Pending pending;
  CHECK_THROWS_AS(pending.absorb("\x02" + record.substr(1)), SQLite::Exception);
}

}  // namespace holdfast::ledger
