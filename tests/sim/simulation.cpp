#include "sim/life.h"

#include <cstdio>

#include "sim/portrait.h"

namespace holdfast::sim {

namespace {

constexpr std::uint64_t kMostSteps = 3'000'000;  // events of one seed: more is a loop that never ends
constexpr std::uint64_t kRunsOfAProof = 8;       // read back from the disk that a power cut would leave
constexpr std::uint64_t kMostLives = 12;

ledger::sqlite::Tuning tuning(const Swarm& swarm) {
  ledger::sqlite::Tuning tuning;
  tuning.checkpoint_frames = swarm.checkpoint_frames;
  tuning.restart_frames = 4 * swarm.checkpoint_frames;
  tuning.journal_slots = swarm.journal_slots;
  tuning.fold_slots = swarm.fold_slots;
  return tuning;
}

}  // namespace

void World::print(const std::string& text) const {
  std::printf("%10.3f  %s\n", static_cast<double>(now_.ms - 1'900'000'000'000) / 1000.0, text.c_str());
}

namespace {

/// A database as the server makes one: under another name, whole and synced before it gets its own. So no journal of its
/// making is ever left beside it.
std::string make_database(std::uint64_t seed, Instant at) {
  Disk cradle(seed);
  cradle.put(kDatabase);
  Vfs vfs(cradle);
  vfs.seed_sqlite(seed);
  vfs.set_time(at.ms);
  if (auto opened = open_ledger(vfs); !opened) throw Violation{"ledger_can_be_opened", opened.error().message};
  return cradle.content(kDatabase);
}

/// Some histories begin with the migrations; the others with what these have made of an empty file, the same bytes
/// whichever seed of this process asks first.
std::string fresh_database(std::uint64_t seed, Instant at) {
  if (seed % 16 == 0) return make_database(seed, at);
  static const std::string kMade = make_database(0, at);
  return kMade;
}

}  // namespace

Simulation::Simulation(std::uint64_t seed, Tally& tally, bool tracing)
    : seed_(seed),
      world_(tally, tracing),
      fate_(seed, "fate"),
      swarm_(draw_swarm(seed)),
      keepers_(seed, "keeping"),
      town_(build_town(seed, swarm_)),
      catalog_(*town_.config),
      oracles_(world_, truth_, town_),
      disk_(Dice(seed, "disk").next()),
      vfs_(disk_),
      network_(seed, swarm_),
      people_(seed, world_, truth_, town_, swarm_, oracles_, desk_) {
  // Some power cuts lose everything that was pending, some nothing, most this and that.
  disk_.set_fates([this, mood = std::int64_t{0}](std::size_t index, std::size_t) mutable {
    if (index == 0) mood = fate_.between(0, 4);
    if (mood < 2) return mood == 0 ? Fate::applied : Fate::dropped;
    return static_cast<Fate>(fate_.between(0, 3));
  });
  disk_.put(kDatabase, fresh_database(seed, world_.now()));
  vfs_.seed_sqlite(Dice(seed, "sqlite").next());
  engine_random_ = seeded_random(Dice(seed, "engine").next());
  desk_.posted = [this] { posted(); };
}

Simulation::~Simulation() {
  desk_.engine = nullptr;
  life_.reset();
  past_.clear();
}

void Simulation::posted() {
  if (!life_ || !life_->engine) return;
  const Instant at = std::max(world_.now() + fate_.span(0, healed_ ? 1 : swarm_.batching_ms), committed_at_);
  if (!next_turn_ || at < *next_turn_) next_turn_ = at;
}

void Simulation::draw_doom() {
  doom_ = {};
  if (healed_ || !fate_.chance(swarm_.crash) || past_.size() >= kMostLives) return;
  doom_.kind = static_cast<Doom::Kind>(fate_.between(1, 6));
  doom_.countdown = static_cast<std::uint64_t>(fate_.between(1, fate_.chance(300) ? 3 : 60));
  const std::uint64_t operation = disk_.operations() + static_cast<std::uint64_t>(fate_.between(1, 600));
  // At any operation, or at the next sync after it, where a commit hangs in the balance.
  const bool at_sync = fate_.chance(400);
  Fault fault{Fault::Kind::power_cut, operation, at_sync ? kForever : 0, std::nullopt};
  if (at_sync) fault.only = Operation::sync;
  if (doom_.kind == Doom::Kind::kill_at_operation) fault.kind = Fault::Kind::kill;
  if (doom_.kind == Doom::Kind::power_cut_at_operation || doom_.kind == Doom::Kind::kill_at_operation)
    disk_.inject(fault);
  if (doom_.kind != Doom::Kind::between_turns) return;
  world_.after(fate_.span(0, swarm_.chaos.count() / 3), [this, life = past_.size()] {
    if (healed_ || past_.size() != life || !life_) return;
    crash("between turns");
  });
}

void Simulation::draw_storage_faults() {
  if (!healed_ && swarm_.sync_fault > 0 && past_.size() < kMostLives && fate_.chance(swarm_.sync_fault)) {
    const std::uint64_t at = disk_.operations() + static_cast<std::uint64_t>(fate_.between(1, 4'000));
    disk_.inject({Fault::Kind::io_error, at, kForever, Operation::sync});
  }
  if (healed_ || !fate_.chance(swarm_.storage_fault)) return;
  for (std::int64_t faults = fate_.between(1, 3); faults > 0; --faults) disk_.inject(draw_storage_fault());
}

Fault Simulation::draw_storage_fault() {
  const std::uint64_t at = disk_.operations() + static_cast<std::uint64_t>(fate_.between(1, 800));
  const std::uint64_t until = at + static_cast<std::uint64_t>(fate_.chance(600) ? 0 : fate_.between(1, 60));
  switch (fate_.between(0, 7)) {
    case 0:
      return {Fault::Kind::short_read, at, until};
    case 1:
      return {Fault::Kind::io_error, at, at + 100, Operation::sync};
    case 2:
    case 3:
      return {Fault::Kind::io_error, at, until};
    default:
      return {Fault::Kind::disk_full, at, until + 10};
  }
}

void Simulation::boot() {
  world_.after(fate_.span(0, 3'000), [this] { try_boot(); });
}

void Simulation::try_boot() {
  if (!disk_.running()) disk_.boot();
  ++world_.tally.lives;
  oracles_.new_life();
  draw_doom();
  draw_storage_faults();
  exchange();
  if (!past_.empty() && !healed_ && fate_.chance(swarm_.wall_step)) {
    const bool back = fate_.chance(500);
    const Duration step = fate_.span(1'000, fate_.chance(500) ? 20'000 : 3'600'000);
    wall_offset_ = back ? wall_offset_ - step : wall_offset_ + step;
    world_.tally.fault(FaultKind::wall_step);
    world_.tally.reached(back ? Goal::wall_back : Goal::wall_forward);
  }
  const Instant wall = world_.now() + wall_offset_;
  vfs_.set_time(wall.ms);
  for (const auto& [id, stored] : oracles_.stored())
    if (!stored.run.settled() && stored.run.deadline <= wall) {
      world_.tally.reached(Goal::deadline_while_down);
      break;
    }
  life_ = std::make_unique<Life>(*this, wall, static_cast<int>(fate_.between(-2'000, 2'000)));
  world_.note(0xb007, [&] { return "start, wall clock off by " + std::to_string(wall_offset_.count()) + " ms"; });
  auto opened = open_ledger(vfs_, tuning(swarm_));
  if (!opened) {
    world_.note(0xdead, [&] { return "cannot open: " + opened.error().code + " " + opened.error().message; });
    if (healed_) throw Violation{"ledger_can_be_opened", opened.error().code + ": " + opened.error().message};
    return crash("while opening");
  }
  Life& life = *life_;
  life.opened = std::move(*opened);
  life.clock.not_before(life.opened.newest);
  oracles_.turn_begins(life.clock.now());
  if (disk_.counts().torn + disk_.counts().garbled > 0) world_.tally.reached(Goal::torn_tail);
  try {
    // Faults of this life must not look like lost rows.
    std::vector<Fault> faults = disk_.take_faults();
    oracles_.recovered(*life.opened.reader);
    disk_.put_faults(std::move(faults));
    life.spy.emplace(*life.opened.ledger, disk_, world_, oracles_, doom_);
    life.engine.emplace(life.clock, *engine_random_, *life.spy, catalog_, life.transport, life.observer,
                        life.metrics, engine::Options{swarm_.inbox, Duration{1'000}});
    life.transport.set_sink(&*life.engine);
    const auto loaded = life.engine->load();
    if (!loaded) {
      if (healed_) throw Violation{"ledger_can_be_loaded", loaded.error().code + ": " + loaded.error().message};
      world_.tally.reached(Goal::crash_at_load);
      return crash("while loading");
    }
  } catch (const Crash&) {
    world_.tally.reached(Goal::crash_at_load);
    return crash("while loading");
  }
  desk_ = {&*life.engine, life.opened.reader.get(), &life.clock, &catalog_, &life.metrics.unknown_writes, past_.size() + 1, desk_.posted};
  next_turn_ = world_.now();
  people_.process_back();
  draw_drain();
}

void Simulation::crash(std::string_view how) {
  world_.note(0xc4a5, [&] { return "crash " + std::string(how) + (disk_.running() ? "" : ", disk stopped"); });
  if (oracles_.probe_out()) world_.tally.reached(Goal::probe_owner_killed);
  if (disk_.running()) {
    world_.tally.fault(FaultKind::crash_between_steps);
    if (fate_.chance(500))
      disk_.cut_power();
    else
      disk_.kill();
  }
  process_ends();
}

void Simulation::process_ends() {
  disk_.mend();
  desk_.engine = nullptr;
  desk_.reader = nullptr;
  next_turn_.reset();
  people_.process_gone();
  life_->transport.die();
  life_->engine.reset();
  life_->spy.reset();
  life_->opened = {};
  past_.push_back(std::move(life_));
  boot();
}

void Simulation::turn() {
  next_turn_.reset();
  oracles_.turn_begins(life_->clock.now());
  vfs_.set_time(life_->clock.now().ms);
  const std::size_t resting = life_->engine->resting();
  const std::optional<Instant> next = life_->engine->turn();
  if (life_->engine->resting() < resting) world_.tally.reached(Goal::rest_woken);
  committed_at_ = world_.now() + Duration{swarm_.commit_ms};
  if (life_->engine->storage_ok()) town_.before.clear();
  if (oracles_.is_draining() && life_->engine->drained()) {
    oracles_.drained();
    world_.tally.reached(Goal::drained);
    return end_gracefully("drained");
  }
  if (life_->engine->storage_ok() && !oracles_.is_draining() && world_.hash() % 8 == 0)
    oracles_.slots_are_taken(life_->transport.out());
  if (next) {
    const Instant at = std::max({life_->clock.true_time(*next), world_.now() + Duration{1}, committed_at_});
    if (!next_turn_ || at < *next_turn_) next_turn_ = at;
  }
  if (!healed_ && next_turn_ && fate_.chance(swarm_.freeze)) {
    world_.tally.fault(FaultKind::freeze);
    world_.tally.reached(Goal::frozen);
    next_turn_ = *next_turn_ + fate_.span(100, 10'000);
  }
}

/// Whatever their tools promised: what they only held in memory is gone.
void Simulation::restart_tools() {
  if (healed_) return;
  world_.tally.fault(FaultKind::tool_restart);
  for (const auto& tool : town_.tools)
    if (tool->trait == Trait::forgetful) tool->keys.clear();
  world_.after(fate_.span(500, 20'000), [this] { restart_tools(); });
}

void Simulation::heal() {
  world_.note(0x4ea1, [] { return std::string("everything heals"); });
  healed_ = true;
  network_.healed = true;
  doom_ = {};
  disk_.mend();
  if (reloads_ > 0) reload(town_.all.front());
  people_.heal();
  posted();
}

bool Simulation::at_rest() const {
  if (!life_ || !life_->engine || !people_.content()) return false;
  for (const auto& [id, stored] : oracles_.stored())
    if (!stored.run.settled() && stored.run.status != run::RunStatus::unknown) return false;
  return true;
}

void Simulation::history() {
  people_.begin();
  try_boot();
  keep();
  world_.after(swarm_.chaos, [this] { heal(); });
  if (fate_.chance(400)) world_.after(fate_.span(1'000, swarm_.chaos.count()), [this] { restart_tools(); });
  const Instant chaos_ends = world_.now() + swarm_.chaos;
  Instant look_again = chaos_ends + Duration{5'000};
  std::optional<Instant> closing;
  while (true) {
    if (++steps_ > kMostSteps) throw Violation{"every_run_comes_to_rest", "the events do not end"};
    const std::optional<Instant> event = world_.next();
    if (!event && !next_turn_) break;
    const bool turns = next_turn_ && (!event || *next_turn_ < *event);
    if (closing && world_.now() > *closing) {
      if (at_rest()) break;
      closing.reset();  // a check has set a run going again whose client had gone home: its deadline ends it
    }
    try {
      if (turns) {
        world_.advance(*next_turn_);
        turn();
      } else {
        world_.step();
      }
      if (life_ && !disk_.running()) crash("outside a commit");
    } catch (const Crash&) {
      crash("in a turn");
    }
    if (closing || !healed_ || world_.now() < look_again) continue;
    look_again = world_.now() + Duration{1'000};
    // Twice, so that the operator has been round and late requests have arrived.
    if (at_rest() && world_.now() > chaos_ends + Duration{20'000}) {
      closing = world_.now() + Duration{20'000};
      people_.go_home();
      continue;
    }
    const Duration slack{600'000};
    if (life_ && life_->engine && world_.now() > chaos_ends + slack &&
        life_->clock.now() > people_.latest_deadline() + slack) {
      std::string open;
      for (const auto& [id, stored] : oracles_.stored())
        if (!stored.run.settled() && stored.run.status != run::RunStatus::unknown)
          open += "\n" + portrait(stored.run);
      throw Violation{"every_run_comes_to_rest", "long after its deadline and after everything healed:" + open};
    }
  }
}

/// At the very moment of a send: is its row on a disk whose power is cut now? And is what else was acknowledged?
void Simulation::prove_durable(const tools::Call& call, const Op* op) {
  static const std::string kLog = std::string(kDatabase) + "-wal";
  if (!disk_.synced(kLog)) throw Violation{"send_after_sync", "the log is not synced at a send"};
  if (!op || fate_.between(0, 9'999) >= swarm_.proof) return;
  const std::unique_ptr<Disk> found = disk_.after_power_cut(fate_.next(), {});
  Vfs vfs(*found);
  auto opened = open_ledger(vfs);
  if (!opened) throw Violation{"ledger_can_be_opened", opened.error().message};
  auto run = opened->reader->run(op->run_id);
  if (!run || !*run) throw Violation{"send_after_sync", op->name + ": its run does not survive a power cut"};
  auto attempts = opened->reader->attempts((*run)->seq, 0, 10'000);
  if (!attempts) throw Violation{"ledger_can_be_read", attempts.error().message};
  const bool there = std::any_of(attempts->begin(), attempts->end(), [&](const run::Attempt& attempt) {
    return attempt.step == op->step && attempt.kind == call.kind && attempt.delivery == Delivery::in_flight;
  });
  if (!there) throw Violation{"send_after_sync", op->name + ": its row does not survive a power cut"};
  world_.tally.power_cut_proofs += oracles_.survive(*opened->reader, op->run_id, kRunsOfAProof);
  found->kill();  // a ledger closed in peace would tidy up its log
}

void Simulation::last_look() {
  oracles_.at_rest(people_.submissions(), *life_->opened.reader);
  if (!backup_.empty()) start_from_backup();
  for (const auto& [id, stored] : oracles_.stored())
    if (stored.run.status == run::RunStatus::unknown) {
      world_.tally.reached(Goal::unknown_at_end);
      break;
    }
  desk_.engine = nullptr;
  life_->engine.reset();
  life_->spy.reset();
  life_->opened = {};
  const std::string bytes = disk_.content(kDatabase) + disk_.content(std::string(kDatabase) + "-wal");
  if (bytes.find(kSecret) != std::string::npos) throw Violation{"no_secret_stored", "the ledger holds a header's secret"};
  sqlite3* db = nullptr;
  std::string verdict;
  if (sqlite3_open_v2(kDatabase, &db, SQLITE_OPEN_READWRITE, vfs_.name().c_str()) == SQLITE_OK)
    sqlite3_exec(db, "PRAGMA integrity_check; PRAGMA foreign_key_check",
                 [](void* to, int, char** values, char**) {
                   static_cast<std::string*>(to)->append(values[0] ? values[0] : "NULL");
                   return 0;
                 },
                 &verdict, nullptr);
  sqlite3_close(db);
  if (verdict != "ok") throw Violation{"database_is_sound", verdict};
}

Ending Simulation::run() {
  Ending ending;
  try {
    history();
    last_look();
  } catch (const Violation& violation) {
    ending.violation = violation;
    world_.note(0xbad, [&] { return "VIOLATION " + violation.oracle + ": " + violation.what; });
  }
  const Disk::Counts& counts = disk_.counts();
  Tally& tally = world_.tally;
  tally.fault(FaultKind::power_cut, counts.power_cuts);
  tally.fault(FaultKind::kill, counts.kills);
  tally.fault(FaultKind::io_error, counts.io_errors);
  tally.fault(FaultKind::sync_error, counts.sync_errors);
  tally.fault(FaultKind::short_read, counts.short_reads);
  tally.fault(FaultKind::disk_full, counts.full);
  tally.fault(FaultKind::write_applied, counts.applied);
  tally.fault(FaultKind::write_dropped, counts.dropped);
  tally.fault(FaultKind::write_torn, counts.torn);
  tally.fault(FaultKind::write_garbled, counts.garbled);
  ending.hash = world_.hash();
  ending.digest = disk_.digest();
  return ending;
}

}  // namespace holdfast::sim
