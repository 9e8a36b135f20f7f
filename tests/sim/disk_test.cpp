// The simulated disk and the real ledger on it.
#include <catch2/catch.hpp>

#include "ledger/sqlite/connection.h"
#include "support/sim_vfs.h"

namespace holdfast::sim {
namespace {

run::Run small_run(int n) {
  const std::string digits = std::to_string(n);
  run::Run run;
  run.id = "run_" + std::string(26 - digits.size(), '0') + digits;
  run.submit_digest = std::string(64, 'a');
  run.created_at = Instant{1'800'000'000'000};
  run.deadline = run.created_at + Duration{60'000};
  run::Step& step = run.steps.emplace_back();
  step.spec.id = "s";
  step.spec.server = "api";
  step.spec.tool = "tool";
  step.target = "api/tool";
  return run;
}

Result<ledger::Committed> put_run(ledger::Ledger& ledger, int n) {
  run::Run run = small_run(n);
  ledger::Batch batch;
  batch.new_runs.push_back(&run);
  return ledger.commit(batch);
}

bool has_run(ledger::Opened& opened, int n) {
  auto found = opened.reader->run(small_run(n).id);
  if (!found) FAIL(found.error().message);
  return found->has_value();
}

ledger::Opened open_or_fail(Vfs& vfs) {
  auto opened = open_ledger(vfs);
  if (!opened) FAIL(opened.error().code << ": " << opened.error().message);
  return std::move(*opened);
}

struct Machine {
  explicit Machine(std::uint64_t seed) : disk(seed), vfs(disk) { vfs.seed_sqlite(seed); }
  Disk disk;
  Vfs vfs;
};

}  // namespace

TEST_CASE("what is not synced is at the mercy of a power cut, what is synced is not") {
  Disk disk(1);
  disk.put("a", "0000");
  auto file = disk.find("a");
  disk.write(*file, "11", 0);
  CHECK_FALSE(disk.synced("a"));
  disk.sync(*file);
  CHECK(disk.synced("a"));
  disk.write(*file, "22", 2);
  CHECK(disk.content("a") == "1122");
  CHECK(disk.after_power_cut(1, every(Fate::dropped))->content("a") == "1100");
  CHECK(disk.after_power_cut(1, every(Fate::applied))->content("a") == "1122");
  disk.set_fates(every(Fate::dropped));
  disk.cut_power();
  CHECK(disk.begin(Operation::read) == Disk::Go::dead);
  disk.boot();
  CHECK(disk.content("a") == "1100");
}

TEST_CASE("a torn write leaves whole sectors, a garbled one bytes that nobody wrote") {
  bool torn = false, garbled = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Disk disk(seed);
    disk.put("a", std::string(2048, 'o'));
    disk.write(*disk.find("a"), std::string(2048, 'n'), 0);
    const std::string half = disk.after_power_cut(seed, every(Fate::torn))->content("a");
    for (std::size_t i = 0; i < half.size(); i += Disk::kSector)
      REQUIRE(half.substr(i, Disk::kSector) == std::string(Disk::kSector, half[i]));
    torn |= half.find('o') != std::string::npos && half.find('n') != std::string::npos;
    const std::string noise = disk.after_power_cut(seed, every(Fate::garbled))->content("a");
    garbled |= noise.find_first_not_of("on") != std::string::npos;
  }
  CHECK(torn);
  CHECK(garbled);
}

TEST_CASE("whatever is written, cut off and synced, a power cut finds what was synced, and what was pending when all of it is applied") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::unique_ptr<Random> random = seeded_random(seed);
    Disk disk(seed);
    disk.put("a", "as it was");
    auto file = disk.find("a");
    std::string durable = "as it was", live = durable;
    for (int i = 0; i < 40; ++i) {
      const auto at = static_cast<std::uint64_t>(random->up_to(30));
      switch (random->up_to(5)) {
        case 0:
          disk.sync(*file);
          durable = live;
          break;
        case 1:
          disk.truncate(*file, at);
          live.resize(at, '\0');
          break;
        default: {
          const std::string bytes(static_cast<std::size_t>(random->up_to(12)), static_cast<char>('a' + random->up_to(25)));
          disk.write(*file, bytes, at);
          if (bytes.empty()) break;
          if (live.size() < at + bytes.size()) live.resize(at + bytes.size(), '\0');
          live.replace(at, bytes.size(), bytes);
        }
      }
      REQUIRE(disk.content("a") == live);
      REQUIRE(disk.after_power_cut(seed, every(Fate::dropped))->content("a") == durable);
      REQUIRE(disk.after_power_cut(seed, every(Fate::applied))->content("a") == live);
    }
  }
}

TEST_CASE("a disk and the one that a power cut would leave of it do not see each other's writes") {
  Disk disk(1);
  disk.put("a", "0000");
  const auto other = disk.after_power_cut(1, every(Fate::applied));
  other->write(*other->find("a"), "11", 0);
  CHECK(disk.content("a") == "0000");
  disk.write(*disk.find("a"), "22", 2);
  CHECK(other->content("a") == "1100");
  CHECK(disk.content("a") == "0022");
}

TEST_CASE("a failed sync may lose what it was to save, for good") {
  bool lost = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Disk disk(seed);
    disk.put("a", "old");
    auto file = disk.find("a");
    disk.write(*file, "new", 0);
    disk.lose_pending(*file);
    disk.sync(*file);
    CHECK(disk.content("a") == "new");
    const bool gone = disk.after_power_cut(seed, every(Fate::applied))->content("a") == "old";
    lost |= gone;
    disk.kill();
    disk.boot();
    CHECK(disk.content("a") == "new");  // the next process sees the page cache
    disk.sync(*disk.find("a"));
    CHECK(disk.after_power_cut(seed, every(Fate::applied))->content("a") == (gone ? "old" : "new"));
    disk.write(*disk.find("a"), "new", 0);  // written again, it can be synced
    disk.sync(*disk.find("a"));
    CHECK(disk.after_power_cut(seed, every(Fate::dropped))->content("a") == "new");
  }
  CHECK(lost);
}

TEST_CASE("the ledger on the simulated disk keeps what it acknowledged, whatever happens to the rest") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Machine machine(seed);
    std::unique_ptr<Random> random = seeded_random(seed);
    int acknowledged = 0, tried = 0;
    for (int life = 0; life < 3; ++life) {
      if (life > 0)
        machine.disk.inject({Fault::Kind::power_cut,
                             machine.disk.operations() + 1 + static_cast<std::uint64_t>(random->up_to(60))});
      auto opened = open_ledger(machine.vfs);
      if (opened) {
        for (int n = 1; n <= tried; ++n) {
          auto found = opened->reader->run(small_run(n).id);
          if (found && n <= acknowledged) REQUIRE(found->has_value());
        }
        auto there = opened->ledger->load_open();
        if (there) acknowledged = tried = static_cast<int>(there->runs.size());
        for (int i = 0; there && i < 8; ++i) {
          if (!put_run(*opened->ledger, ++tried)) break;
          acknowledged = tried;
        }
      }
      opened = std::unexpected(Error{});
      machine.disk.cut_power();
      machine.disk.boot();
    }
    auto last = open_or_fail(machine.vfs);
    for (int n = 1; n <= acknowledged; ++n) REQUIRE(has_run(last, n));
  }
}

TEST_CASE("without the sync an acknowledged run would be lost: the disk can fail the ledger") {
  Machine machine(4);
  {
    auto opened = open_or_fail(machine.vfs);
    REQUIRE(put_run(*opened.ledger, 1));
    machine.disk.keep_log();
    REQUIRE(put_run(*opened.ledger, 2));
    const std::vector<Operation> log = machine.disk.log();
    REQUIRE(log.back() == Operation::sync);
    REQUIRE(machine.disk.synced(std::string(kDatabase) + "-wal"));
    // The next commit, cut at its sync.
    machine.disk.set_fates(every(Fate::dropped));
    machine.disk.inject({Fault::Kind::power_cut, machine.disk.operations(), kForever, Operation::sync});
    CHECK_FALSE(put_run(*opened.ledger, 3));
  }
  machine.disk.boot();
  auto opened = open_or_fail(machine.vfs);
  CHECK(has_run(opened, 2));
  CHECK_FALSE(has_run(opened, 3));
}

TEST_CASE("a killed process leaves what it wrote, and its locks are gone") {
  Machine machine(5);
  {
    auto opened = open_or_fail(machine.vfs);
    REQUIRE(put_run(*opened.ledger, 1));
    machine.disk.kill();
  }
  machine.disk.boot();
  auto opened = open_or_fail(machine.vfs);
  CHECK(has_run(opened, 1));
  CHECK(put_run(*opened.ledger, 2));
}

TEST_CASE("a full disk is told as such, and the ledger goes on when there is room") {
  Machine machine(6);
  auto opened = open_or_fail(machine.vfs);
  machine.disk.inject({Fault::Kind::disk_full, machine.disk.operations() + 1, kForever});
  const auto full = put_run(*opened.ledger, 1);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == "storage_full");
  machine.disk.mend();
  CHECK(put_run(*opened.ledger, 1));
}

TEST_CASE("on a full disk, where the journal can't be folded, a late answer finds its attempt all the same, and everybody can read") {
  Machine machine(8);
  auto opened = open_or_fail(machine.vfs);
  run::Run run = small_run(1);
  run::Attempt attempt;
  attempt.n = 1;
  ledger::Batch begun, ended;
  begun.new_runs.push_back(&run);
  begun.attempts.emplace_back(&run, attempt);
  REQUIRE(opened.ledger->commit(begun));
  REQUIRE(opened.reader->runs({}));  // brings it into the tables
  attempt.delivery = Delivery::maybe_sent;
  ended.attempts.emplace_back(&run, attempt);
  REQUIRE(opened.ledger->commit(ended));
  machine.disk.inject({Fault::Kind::disk_full, machine.disk.operations() + 1, kForever});
  const auto found = opened.ledger->find_attempt(run.seq, 0, 1);
  REQUIRE(found);
  CHECK(found->value().delivery == Delivery::maybe_sent);
  CHECK(machine.disk.counts().full > 0);  // a fold was tried
  REQUIRE(opened.ledger->load(run.id));
  const auto read = opened.reader->attempts(run.seq, 0, 10);
  REQUIRE(read);
  CHECK(read->at(0).delivery == Delivery::maybe_sent);
  CHECK_FALSE(put_run(*opened.ledger, 2));
  machine.disk.mend();
  CHECK(put_run(*opened.ledger, 2));
  CHECK(has_run(opened, 2));
}

TEST_CASE("a failed write can be tried again, a failed sync ends this life") {
  Machine machine(7);
  auto opened = open_or_fail(machine.vfs);
  REQUIRE(put_run(*opened.ledger, 1));
  machine.disk.inject({Fault::Kind::io_error, machine.disk.operations(), kForever, Operation::write});
  const auto written = put_run(*opened.ledger, 3);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == "storage_error");
  machine.disk.mend();
  REQUIRE(put_run(*opened.ledger, 3));
  machine.disk.inject({Fault::Kind::io_error, machine.disk.operations(), kForever, Operation::sync});
  const auto synced = put_run(*opened.ledger, 4);
  REQUIRE_FALSE(synced);
  CHECK(synced.error().code == "storage_broken");
}

TEST_CASE("a failed sync that a reader meets is told at once, and that nothing can be committed any more") {
  Machine machine(9);
  auto opened = open_or_fail(machine.vfs);
  std::string told;
  opened.ledger->when_broken([&](const Error& error) { told += error.code; });
  REQUIRE(put_run(*opened.ledger, 1));
  machine.disk.inject({Fault::Kind::io_error, machine.disk.operations(), kForever, Operation::sync});
  CHECK_FALSE(opened.reader->runs({}));
  CHECK(told == "storage_broken");
  CHECK_FALSE(put_run(*opened.ledger, 2));
  CHECK(told == "storage_broken");
}

TEST_CASE("what a failed sync has lost is not built upon: the next life's commits survive a power cut") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Machine machine(seed);
    {
      auto opened = open_or_fail(machine.vfs);
      REQUIRE(put_run(*opened.ledger, 1));
      machine.disk.inject({Fault::Kind::io_error, machine.disk.operations(), kForever, Operation::sync});
      REQUIRE_FALSE(put_run(*opened.ledger, 2));
      machine.disk.kill();
    }
    machine.disk.boot();
    {
      auto opened = open_or_fail(machine.vfs);
      REQUIRE(has_run(opened, 2));  // as the page cache shows it
      REQUIRE(put_run(*opened.ledger, 3));
      machine.disk.cut_power();
    }
    machine.disk.boot();
    auto opened = open_or_fail(machine.vfs);
    REQUIRE(has_run(opened, 1));
    REQUIRE(has_run(opened, 2));
    REQUIRE(has_run(opened, 3));
  }
}

TEST_CASE("a power cut while a start makes durable what it sees loses nothing that was acknowledged") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Machine machine(seed);
    {
      auto opened = open_or_fail(machine.vfs);
      for (int n = 1; n <= 60; ++n) REQUIRE(put_run(*opened.ledger, n));
      machine.disk.inject({Fault::Kind::io_error, machine.disk.operations(), kForever, Operation::sync});
      (void)opened.reader->runs({});  // brings them into the tables, but for the sync
      machine.disk.kill();
    }
    machine.disk.boot();
    machine.disk.inject({Fault::Kind::power_cut, machine.disk.operations() + 1 + 2 * seed});
    (void)open_ledger(machine.vfs);
    machine.disk.cut_power();
    machine.disk.boot();
    auto opened = open_or_fail(machine.vfs);
    for (int n = 1; n <= 60; ++n) REQUIRE(has_run(opened, n));
  }
}

/// Another program has the file open, so that the log's index in shared memory outlives our process, and with it what a checkpoint
/// says that it has moved.
TEST_CASE("pages that an unfinished checkpoint wrote and a failed sync lost are written again, whatever the log's index says") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Machine machine(seed);
    int last = 0;
    ledger::sqlite::Tuning tuning;
    tuning.checkpoint_frames = 1;
    {
      auto opened = open_ledger(machine.vfs, tuning);
      REQUIRE(opened);
      ledger::sqlite::Connection other(kDatabase, ledger::sqlite::Role::reader, 64, machine.vfs.name());
      const auto put_some = [&](int count) {
        for (int n = 0; n < count; ++n) REQUIRE(put_run(*opened->ledger, ++last));
        REQUIRE(opened->reader->runs({}));  // brings them into the tables
      };
      put_some(100);
      {
        const ledger::sqlite::Snapshot old(other);
        (void)other.number("SELECT count(*) FROM runs");
        put_some(5);
        opened->ledger->checkpoint_if_due();  // moves what the snapshot does not hold, and can't sync it yet
      }
      REQUIRE(put_run(*opened->ledger, ++last));
      machine.disk.inject({Fault::Kind::io_error, machine.disk.operations() + 2, kForever, Operation::sync});
      opened->ledger->checkpoint_if_due();
      REQUIRE(machine.disk.counts().sync_errors == 1);
      opened = std::unexpected(Error{});
      machine.disk.mend();
      opened = open_ledger(machine.vfs, tuning);
      REQUIRE(opened);
      put_some(5);
      opened->ledger->checkpoint_if_due();
      put_some(5);
      machine.disk.cut_power();
    }
    machine.disk.boot();
    auto opened = open_or_fail(machine.vfs);
    for (int n = 1; n <= last; ++n) REQUIRE(has_run(opened, n));
    REQUIRE(opened.ledger->load_open()->runs.size() == static_cast<std::size_t>(last));
  }
}

TEST_CASE("the same seed gives the same bytes") {
  const auto digest = [](std::uint64_t seed) {
    Machine machine(seed);
    auto opened = open_or_fail(machine.vfs);
    for (int n = 1; n <= 20; ++n) REQUIRE(put_run(*opened.ledger, n));
    return machine.disk.digest();
  };
  CHECK(digest(1) == digest(1));
  CHECK(digest(1) != digest(2));
}

}  // namespace holdfast::sim
