// Each scripted scenario, with a fault at each of its I/O operations in turn: exhaustive, not sampled. HOLDFAST_SWEEP="FAULT@N" repeats one case.
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <iostream>

#include "ledger/sqlite/migrate.h"
#include "power_cut/allocations.h"
#include "power_cut/older.h"
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
  bool again = false;  // and the power is cut once more while the next process starts or works
};
constexpr Trouble kTroubles[] = {
    {"cut/applied", Kind::power_cut, sim::Fate::applied},
    {"cut/dropped", Kind::power_cut, sim::Fate::dropped},
    {"cut/torn", Kind::power_cut, sim::Fate::torn},
    {"cut/garbled", Kind::power_cut, sim::Fate::garbled},
    {"cut/drawn", Kind::power_cut, std::nullopt},
    {"cut/again", Kind::power_cut, std::nullopt, false, true},
    {"error", Kind::io_error, std::nullopt},
    {"errors", Kind::io_error, std::nullopt, true},
    {"full", Kind::disk_full, std::nullopt, true},
    {"short", Kind::short_read, std::nullopt},
};

/// What a script begins with: no database, an empty ledger, or one with a run whose write is not done, as a process has left it, `backup` has
/// copied it, or an older program has written it.
Beginning beginning_of(const Script& script) {
  if (script.from_nothing) return {};
  World world({}, {});
  world.start();
  if (script.from_backup || script.from_version > 0) {
    world.carry_out([](World& w) {
      w.submit("a", R"({"name":"a","deadline":"15m","steps":[{"id":"s0","server":"api","tool":"read","args":{"m":"a/s0"}},)"
                    R"({"id":"s1","server":"api","tool":"plain","args":{"m":"a/s1"}}]})");
    });
  }
  world.shut();
  Beginning beginning{world.disk.content(sim::kDatabase), world.runs};
  if (script.from_backup) beginning.image.replace(68, 4, "Holb");
  if (script.from_version > 0) beginning.image = older_image(beginning.image, script.from_version);
  return beginning;
}

ledger::sqlite::Tuning tuning_for(const Script& script) {
  ledger::sqlite::Tuning tuning;
  tuning.checkpoint_frames = script.checkpoint_frames;
  tuning.restart_frames = script.restart_frames;
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

void with_fault(const Script& script, const Beginning& beginning, const Trouble& trouble, std::uint64_t at) {
  INFO(script.name << ": HOLDFAST_SWEEP=" << trouble.name << "@" << at);
  World world(beginning, tuning_for(script), script.retention);
  if (trouble.fate) world.disk.set_fates(sim::every(*trouble.fate));
  if (trouble.again) world.cut_again = 1 + at * 7 % 40;
  world.disk.inject({trouble.kind, world.disk.operations() + at, trouble.lasts ? sim::kForever : 0});
  play(world, script);
}

/// An allocation of SQLite's that gets nothing. `at` counts from the start of the world.
void with_no_memory(const Script& script, const Beginning& beginning, std::uint64_t at) {
  INFO(script.name << ": HOLDFAST_SWEEP=memory@" << at);
  World world(beginning, tuning_for(script), script.retention);
  Allocations::fail(at);
  play(world, script);
  Allocations::fail(0);
}

/// Every operation; under a sanitizer, which makes each many times slower, every so manieth.
std::uint64_t stride() {
  const char* every = std::getenv("HOLDFAST_SWEEP_EVERY");
  return every ? std::max(1ull, std::strtoull(every, nullptr, 10)) : 1;
}

/// Every allocation in a long run; here every seventh, for these cost the most time and prove the least.
std::uint64_t allocation_stride() {
  return (std::getenv("HOLDFAST_SWEEP_ALL") ? 1 : 7) * stride();
}

/// The script without a fault, each send looked at as a power cut would leave it.
void play_calmly(World& world, const Script& script) {
  world.at_send = [&world](const std::string& marker) { check_send(world, marker); };
  play(world, script);
}

void sweep(const Script& script) {
  spdlog::set_level(spdlog::level::off);  // it has much to say of so many faults
  const Beginning beginning = beginning_of(script);
  const std::uint64_t allocated_before = Allocations::made();
  World calm(beginning, tuning_for(script), script.retention);
  calm.disk.keep_log();
  play_calmly(calm, script);
  const std::vector<sim::Operation> operations = calm.disk.log();
  const std::uint64_t allocations = Allocations::made() - allocated_before;
  const char* only = std::getenv("HOLDFAST_SWEEP");
  std::size_t cases = 0, memory_cases = 0;
  for (std::uint64_t at = 1; at <= operations.size(); at += stride())
    for (const Trouble& trouble : kTroubles) {
      if (!fits(trouble, operations[at - 1])) continue;
      if (only && std::string(trouble.name) + "@" + std::to_string(at) != only) continue;
      with_fault(script, beginning, trouble, at);
      ++cases;
    }
  for (std::uint64_t at = 1; at <= allocations; at += allocation_stride()) {
    if (only && "memory@" + std::to_string(at) != only) continue;
    with_no_memory(script, beginning, at);
    ++memory_cases;
  }
  std::cout << "sweep: " << script.name << ": " << operations.size() << " operations, " << cases << " faults; " << allocations << " allocations, "
            << memory_cases << " refused\n";
  SUCCEED();
}

}  // namespace

#define HOLDFAST_SWEEP_CASE(number, title) \
  TEST_CASE("sweep: " title) {             \
    REQUIRE(scripts()[number].name == title); \
    sweep(scripts()[number]);              \
  }
HOLDFAST_SWEEP_CASE(0, "a database is made and migrated")
HOLDFAST_SWEEP_CASE(1, "a plan from submission to its end")
HOLDFAST_SWEEP_CASE(2, "unknown writes and all three verdicts")
HOLDFAST_SWEEP_CASE(3, "cancels, with a write on the wire and before it")
HOLDFAST_SWEEP_CASE(4, "an open run")
HOLDFAST_SWEEP_CASE(5, "breakers and rate gates")
HOLDFAST_SWEEP_CASE(6, "a check, a late answer, and a process that dies")
HOLDFAST_SWEEP_CASE(7, "answers that are kept, a fallback that uses one, and service times")
HOLDFAST_SWEEP_CASE(8, "old runs are deleted")
HOLDFAST_SWEEP_CASE(9, "checkpoints")
HOLDFAST_SWEEP_CASE(10, "a restored backup is adopted")

TEST_CASE("sweep: every older schema is brought up to date") {
  for (const Script& script : migrations()) sweep(script);
}

TEST_CASE("every script is swept") {
  CHECK(scripts().size() == 11);
  CHECK(migrations().size() == ledger::sqlite::newest_version() - 1);
}

TEST_CASE("the scripts commit everything that a transaction can hold") {
  std::set<std::string> kinds;
  for (const Script& script : scripts()) {
    INFO(script.name);
    World world(beginning_of(script), tuning_for(script), script.retention);
    play_calmly(world, script);
    kinds.merge(world.kinds);
  }
  // A probe is made while the storage refuses: by the sweep's `full` and `errors`.
  CHECK(kinds == std::set<std::string>{"new_runs", "new_steps", "runs", "steps", "attempts", "events", "breakers", "gates", "answers", "audit",
                                       "latencies", "prune", "adopt"});
}

}  // namespace holdfast::sweep
