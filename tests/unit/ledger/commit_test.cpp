// All or nothing, and durable.
#include <sys/wait.h>
#include <unistd.h>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/writer.h"
#include "support.h"

namespace holdfast::ledger {
namespace {

/// What is logged while it lives.
class LogLines {
 public:
  LogLines() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  ~LogLines() { spdlog::set_default_logger(before_); }
  [[nodiscard]] int with(const std::string& words) const {
    const std::string text = text_.str();
    int found = 0;
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
    return found;
  }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

using namespace test;

void submit(Opened& db, run::Run& run) {
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
}

}  // namespace

TEST_CASE("what is open is loaded oldest first, with what is in flight") {
  const Folder folder;
  std::vector<run::Run> runs;
  const std::vector<run::RunStatus> statuses{
      run::RunStatus::unknown, run::RunStatus::succeeded, run::RunStatus::queued, run::RunStatus::failed,
      run::RunStatus::running, run::RunStatus::cancelled, run::RunStatus::waiting};
  {
    Opened db = open_or_fail(folder.database());
    for (std::size_t i = 0; i < statuses.size(); ++i) runs.push_back(small_run(i + 1, 2));
    Batch batch;
    for (run::Run& run : runs) batch.new_runs.push_back(&run);
    for (run::Run& run : runs)
      batch.attempts.emplace_back(
          &run, run::Attempt{.step = 1, .n = 1, .started_at = Instant{42}, .delivery = Delivery::maybe_sent});
    for (run::Run& run : runs)
      batch.attempts.emplace_back(
          &run, run::Attempt{.step = 1, .n = 2, .kind = AttemptKind::check, .started_at = Instant{43}});
    commit_or_fail(*db.ledger, batch);
    batch.clear();
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      runs[i].status = statuses[i];
      batch.runs.push_back(&runs[i]);
    }
    commit_or_fail(*db.ledger, batch);
  }
  Opened db = open_or_fail(folder.database());
  const Ledger::Open open = value_of(db.ledger->load_open());
  REQUIRE(open.runs.size() == 4);
  REQUIRE(open.in_flight.size() == 4);
  const std::vector<std::int64_t> expected{1, 3, 5, 7};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const run::Run& run = open.runs[i];
    CHECK(run.seq == expected[i]);
    CHECK(open.in_flight[i].run_seq == run.seq);
    REQUIRE(run.steps.size() == 2);
    CHECK_FALSE(run.steps[0].in_flight);
    CHECK(run.steps[1].in_flight);
    CHECK(run.steps[1].in_flight_n == 2);
    CHECK(run.steps[1].in_flight_kind == AttemptKind::check);
    CHECK(run.steps[1].sent_at == Instant{43});
  }
  run::Run next = small_run(99);
  submit(db, next);
  CHECK(next.seq == 8);
}

TEST_CASE("a submit key finds its run, within its owner only") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  run.owner = "nightly";
  run.submit_key = "k1";
  run.submit_digest = "digest";
  submit(db, run);
  const auto found = value_of(db.ledger->find_submission("nightly", "k1"));
  REQUIRE(found);
  CHECK(found->run_id == run.id);
  CHECK(found->digest == "digest");
  CHECK_FALSE(value_of(db.ledger->find_submission("other", "k1")));
  CHECK_FALSE(value_of(db.ledger->find_submission("nightly", "k2")));
  CHECK_FALSE(value_of(db.ledger->find_submission("nightly", "")));
  CHECK_FALSE(value_of(db.ledger->load("run_none")));
}

TEST_CASE("runs without a key are never taken for one another, and a key owns one run") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run first = small_run(1), second = small_run(2), third = small_run(3), fourth = small_run(4);
  submit(db, first);
  submit(db, second);
  third.submit_key = fourth.submit_key = "k";
  submit(db, third);
  Batch batch;
  batch.new_runs = {&fourth};
  const auto twice = db.ledger->commit(batch);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().code == "storage_broken");
}

TEST_CASE("a batch that fails leaves nothing, and may be tried again") {
  const Folder folder;
  run::Run kept = small_run(1);
  run::Run large = small_run(2);
  large.steps[0].spec.args = "\"" + std::string(1 << 20, 'x') + "\"";
  run::Run small = small_run(3);
  Opened db = open_or_fail(folder.database(), {.max_pages = 120});
  submit(db, kept);
  Batch batch;
  batch.new_runs = {&small, &large};
  batch.runs = {&kept};
  kept.detail = "changed";
  batch.audit.push_back({.who = "ops"});
  for (int turn = 0; turn < 3; ++turn) {
    const auto failed = db.ledger->commit(batch);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == "storage_full");
    CHECK(failed.error().message.find(folder.database()) != std::string::npos);
    CHECK(small.seq == 0);
    CHECK(large.seq == 0);
    CHECK_FALSE(value_of(db.ledger->load(small.id)));
    CHECK(value_of(db.ledger->load(kept.id))->detail.empty());
    CHECK(value_of(db.reader->audit(0, 10)).empty());
  }
  batch.new_runs = {&small};
  commit_or_fail(*db.ledger, batch);
  CHECK(small.seq == 2);
  CHECK(value_of(db.ledger->load(kept.id))->detail == "changed");
}

TEST_CASE("a row that is not there is a disagreement, and nothing is written any more") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  run::Run run = small_run(1);
  submit(db, run);
  run::Run ghost = small_run(2);
  ghost.seq = 1'000;
  Batch batch;
  SECTION("a run") {
    batch.runs = {&ghost};
  }
  SECTION("a step") {
    batch.steps = {{&ghost, 0}};
  }
  SECTION("an event of it") {
    batch.events.emplace_back(&ghost, run::Event{.seq = 1, .type = "run.submitted"});
  }
  batch.audit.push_back({.who = "ops"});
  const auto failed = db.ledger->commit(batch);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == "storage_broken");
  CHECK(value_of(db.reader->audit(0, 10)).empty());
  run::Run later = small_run(3);
  Batch next;
  next.new_runs = {&later};
  const auto refused = db.ledger->commit(next);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "storage_broken");
}

TEST_CASE("the settings that make a commit survive a power cut hold") {
  const Folder folder;
  sqlite::Tuning tuning;
  { open_or_fail(folder.database()); }
  sqlite::Connection writer(folder.database(), sqlite::Role::writer, 256);
  CHECK(writer.number("PRAGMA synchronous") == 2);
  CHECK(writer.text("PRAGMA journal_mode") == "wal");
  sqlite::Connection reader(folder.database(), sqlite::Role::reader, 256);
  CHECK_THROWS_AS(reader.execute("DELETE FROM runs"), SQLite::Exception);
  CHECK_THROWS_AS(writer.text("SELECT \"no such column\""), SQLite::Exception);
  CHECK_THROWS_AS(writer.execute("ATTACH ':memory:' AS other"), SQLite::Exception);
}

TEST_CASE("defensive mode keeps the schema's own tables from being written") {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  sqlite::Connection writer(folder.database(), sqlite::Role::writer, 256);
  const std::int64_t before = writer.number("SELECT count(*) FROM sqlite_master");
  writer.execute("PRAGMA writable_schema = ON");  // answers well and does nothing
  CHECK_THROWS_AS(writer.execute("DELETE FROM sqlite_master"), SQLite::Exception);
  CHECK(writer.number("SELECT count(*) FROM sqlite_master") == before);
}

TEST_CASE("what was acknowledged is there after the process was killed") {
  const Folder folder;
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Result<Opened> db = open_sqlite({.path = folder.database()});
    for (std::uint64_t n = 1; db; ++n) {
      run::Run run = small_run(n);
      Batch batch;
      batch.new_runs = {&run};
      if (!db->ledger->commit(batch)) break;
      if (write(pipe_ends[1], &n, sizeof n) != sizeof n) break;
    }
    _exit(1);
  }
  std::uint64_t acknowledged = 0;
  while (acknowledged < 50)
    REQUIRE(read(pipe_ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(pipe_ends[1]);
  while (read(pipe_ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
  }
  close(pipe_ends[0]);
  Opened db = open_or_fail(folder.database());
  const std::size_t found = value_of(db.ledger->load_open()).runs.size();
  CHECK((found == acknowledged || found == acknowledged + 1));
}

TEST_CASE("the WAL stays bounded under writes, also with readers beside them") {
  const Folder folder;
  sqlite::Tuning tuning;
  tuning.checkpoint_frames = 32;
  tuning.restart_frames = 128;
  Opened db = open_or_fail(folder.database(), tuning);
  std::uint64_t most = 0;
  for (std::uint64_t n = 1; n <= 400; ++n) {
    run::Run run = small_run(n);
    submit(db, run);
    if (n % 7 == 0) REQUIRE(value_of(db.reader->runs({.limit = 3})).size() == 3);
    db.ledger->checkpoint_if_due();
    most = std::max(most, db.ledger->wal_bytes());
  }
  CHECK(most > 0);
  CHECK(most < 200u * 4'120u);
}

TEST_CASE("a reader that stays keeps the WAL, and it shrinks once the reader is gone") {
  const Folder folder;
  sqlite::Tuning tuning;
  tuning.checkpoint_frames = 32;
  tuning.restart_frames = 64;
  tuning.wal_alarm_bytes = 64 * 4'120;
  const LogLines log;
  Opened db = open_or_fail(folder.database(), tuning);
  std::uint64_t n = 0;
  const auto write_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      run::Run run = small_run(++n);
      submit(db, run);
      db.ledger->checkpoint_if_due();
    }
  };
  write_some(1);
  std::uint64_t grown = 0;
  {
    Outsider reader(folder.database());
    reader.execute("BEGIN; SELECT * FROM runs");
    write_some(60);
    grown = db.ledger->wal_bytes();
    CHECK(grown > 64u * 4'120u);
    CHECK(log.with("the WAL has grown to") == 1);  // once a minute, not once a commit
    CHECK(log.with("the WAL is small again") == 0);
  }
  write_some(60);
  CHECK(db.ledger->wal_bytes() < grown);
  CHECK(log.with("the WAL is small again") == 1);
}

}  // namespace holdfast::ledger
