// Each scripted scenario, with a fault at each of its I/O operations in turn: exhaustive, not sampled. HOLDFAST_SWEEP="FAULT@N" repeats one case.
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <iostream>

#include "ledger/sqlite/connection.h"
#include "power_cut/allocations.h"
#include "power_cut/oracles.h"
#include "power_cut/scripts.h"

namespace holdfast::sweep {
namespace {

using Kind = sim::Fault::Kind;

struct Trouble {
  const char* name;
  Kind kind;
  std::optional<sim::Fate> fate;  // of a power cut; none: drawn
  bool lasts = false;
};
constexpr Trouble kTroubles[] = {
    {"cut/applied", Kind::power_cut, sim::Fate::applied},
    {"cut/dropped", Kind::power_cut, sim::Fate::dropped},
    {"cut/torn", Kind::power_cut, sim::Fate::torn},
    {"cut/garbled", Kind::power_cut, sim::Fate::garbled},
    {"cut/drawn", Kind::power_cut, std::nullopt},
    {"error", Kind::io_error, std::nullopt},
    {"errors", Kind::io_error, std::nullopt, true},
    {"full", Kind::disk_full, std::nullopt, true},
    {"short", Kind::short_read, std::nullopt},
};

/// As the version before the journal left it.
std::string without_journal(std::string image) {
  sim::Disk disk(1);
  disk.put(sim::kDatabase, std::move(image));
  sim::Vfs vfs(disk);
  as_rows(vfs, {});
  {
    ledger::sqlite::Connection connection(sim::kDatabase, ledger::sqlite::Role::writer, 1024, vfs.name());
    for (const char* table : {"journal", "journal_folded", "packed_runs"}) connection.execute(std::string("DROP TABLE ") + table);
    connection.execute("PRAGMA user_version = 3");
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  return disk.content(sim::kDatabase);
}

/// The database that a script begins with: empty, or with a run whose writes are not done, as `backup` would have copied it or an older version left it.
std::string image_for(const Script& script) {
  if (script.from_nothing) return {};
  World world({}, {});
  world.start();
  if (script.from_backup) {
    world.carry_out([](World& w) {
      w.submit("a", R"({"name":"a","deadline":"15m","steps":[{"id":"s0","server":"api","tool":"read","args":{"m":"a/s0"}},)"
                    R"({"id":"s1","server":"api","tool":"plain","args":{"m":"a/s1"}}]})");
    });
  }
  world.shut();
  std::string image = world.disk.content(sim::kDatabase);
  if (script.from_version_3) return without_journal(std::move(image));
  if (script.from_backup) image.replace(68, 4, "Holb");
  return image;
}

ledger::sqlite::Tuning tuning_for(const Script& script) {
  ledger::sqlite::Tuning tuning;
  tuning.checkpoint_frames = script.checkpoint_frames;
  tuning.restart_frames = script.restart_frames;
  tuning.journal_slots = 16;
  tuning.fold_slots = 3;
  return tuning;
}

void play(World& world, const Script& script) {
  for (const auto& action : script.actions) {
    const int lives = world.lives;
    world.carry_out(action);
    if (world.lives == lives) continue;
    world.disk.mend();
    check(world);
  }
  world.heal();
  check(world);
}

bool fits(const Trouble& trouble, sim::Operation operation) {
  if (trouble.kind == Kind::disk_full) return operation == sim::Operation::write;
  if (trouble.kind == Kind::short_read) return operation == sim::Operation::read;
  return true;
}

void with_fault(const Script& script, const std::string& image, const Trouble& trouble, std::uint64_t at) {
  INFO(script.name << ": HOLDFAST_SWEEP=" << trouble.name << "@" << at);
  World world(image, tuning_for(script));
  if (trouble.fate) world.disk.set_fates(sim::every(*trouble.fate));
  world.disk.inject({trouble.kind, world.disk.operations() + at, trouble.lasts ? sim::kForever : 0});
  play(world, script);
}

/// An allocation of SQLite's that gets nothing. `at` counts from the start of the world.
void with_no_memory(const Script& script, const std::string& image, std::uint64_t at) {
  INFO(script.name << ": HOLDFAST_SWEEP=memory@" << at);
  World world(image, tuning_for(script));
  Allocations::fail(at);
  play(world, script);
  Allocations::fail(0);
}

/// Every allocation in a long run; here every seventh, for these cost the most time and prove the least.
std::uint64_t allocation_stride() {
  return std::getenv("HOLDFAST_SWEEP_ALL") ? 1 : 7;
}

void sweep(const Script& script) {
  spdlog::set_level(spdlog::level::off);  // it has much to say of so many faults
  const std::string image = image_for(script);
  const std::uint64_t allocated_before = Allocations::made();
  World calm(image, tuning_for(script));
  calm.disk.keep_log();
  calm.at_send = [&calm](const std::string& marker) { check_send(calm, marker); };
  play(calm, script);
  const std::vector<sim::Operation> operations = calm.disk.log();
  const std::uint64_t allocations = Allocations::made() - allocated_before;
  const char* only = std::getenv("HOLDFAST_SWEEP");
  std::size_t cases = 0, memory_cases = 0;
  for (std::uint64_t at = 1; at <= operations.size(); ++at)
    for (const Trouble& trouble : kTroubles) {
      if (!fits(trouble, operations[at - 1])) continue;
      if (only && std::string(trouble.name) + "@" + std::to_string(at) != only) continue;
      with_fault(script, image, trouble, at);
      ++cases;
    }
  for (std::uint64_t at = 1; at <= allocations; at += allocation_stride()) {
    if (only && "memory@" + std::to_string(at) != only) continue;
    with_no_memory(script, image, at);
    ++memory_cases;
  }
  std::cout << "sweep: " << script.name << ": " << operations.size() << " operations, " << cases << " faults; " << allocations << " allocations, "
            << memory_cases << " refused\n";
  SUCCEED();
}

}  // namespace

#define HOLDFAST_SWEEP_CASE(number, title) \
  TEST_CASE("sweep: " title) {             \
    REQUIRE(std::string(scripts()[number].name) == title); \
    sweep(scripts()[number]);              \
  }
HOLDFAST_SWEEP_CASE(0, "a database is made and migrated")
HOLDFAST_SWEEP_CASE(1, "a plan from submission to its end")
HOLDFAST_SWEEP_CASE(2, "unknown writes and all three verdicts")
HOLDFAST_SWEEP_CASE(3, "cancels, with a write on the wire and before it")
HOLDFAST_SWEEP_CASE(4, "an open run")
HOLDFAST_SWEEP_CASE(5, "breakers and rate gates")
HOLDFAST_SWEEP_CASE(6, "a check, a late answer, and a process that dies")
HOLDFAST_SWEEP_CASE(7, "checkpoints")
HOLDFAST_SWEEP_CASE(8, "runs that fold, pack and change again")
HOLDFAST_SWEEP_CASE(9, "a database without a journal is migrated")
HOLDFAST_SWEEP_CASE(10, "a restored backup is adopted")

TEST_CASE("every script is swept") {
  CHECK(scripts().size() == 11);
}

}  // namespace holdfast::sweep
