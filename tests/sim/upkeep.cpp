// What the keepers of a server do: graceful stops, reloads, clocks that are set, and copies that are put back.
#include "sim/life.h"
#include "sim/portrait.h"

namespace holdfast::sim {

void Simulation::keep() {
  if (healed_) return;
  if (keepers_.chance(swarm_.wall_running)) {
    const bool back = keepers_.chance(500);
    const Duration step = keepers_.span(1'000, keepers_.chance(500) ? 20'000 : 3'600'000);
    wall_offset_ = back ? wall_offset_ - step : wall_offset_ + step;
    vfs_.set_time((world_.now() + wall_offset_).ms);
    world_.tally.fault(FaultKind::wall_step);
    world_.tally.reached(Goal::wall_while_running);
  }
  if (keepers_.chance(swarm_.reload)) reload(other_rules(keepers_, town_, ++reloads_));
  if (swarm_.backup && backup_.empty() && keepers_.chance(400)) make_backup();
  world_.after(keepers_.span(swarm_.chaos.count() / 8 + 1, swarm_.chaos.count() / 3 + 2), [this] { keep(); });
}

/// The file is written now, and read between two decisions; a process that is down reads it when it starts.
void Simulation::reload(std::shared_ptr<const tools::Config> next) {
  next_config_ = std::move(next);
  world_.note(0x4e10, [] { return std::string("a new configuration"); });
  if (!life_ || !life_->engine) return;
  life_->engine->between_events([this] { exchange(); });
  posted();
}

void Simulation::exchange() {
  if (!next_config_) return;
  if (!catalog_.replace(*next_config_)) return;
  town_.exchange(std::move(next_config_));
  next_config_ = nullptr;
  world_.tally.reached(Goal::reloaded);
  if (!life_) return;
  for (const auto& [server, calls] : life_->transport.out())
    if (calls > 0) world_.tally.reached(Goal::reload_with_calls_out);
}

void Simulation::draw_drain() {
  if (healed_ || !keepers_.chance(swarm_.drain) || past_.size() >= 12) return;
  const Duration grace = keepers_.span(10, keepers_.chance(500) ? 300 : 5'000);
  world_.after(keepers_.span(0, swarm_.chaos.count() / 2), [this, grace, life = past_.size()] {
    if (!healed_ && past_.size() == life && life_ && life_->engine) stop_gracefully(grace);
  });
}

void Simulation::stop_gracefully(Duration grace) {
  world_.note(0xd4a1, [&] { return "stopping, grace " + format_duration(grace); });
  life_->engine->begin_drain();
  oracles_.draining(life_->clock.now());
  posted();
  world_.after(grace, [this, life = past_.size()] {
    if (past_.size() != life || !life_ || !life_->engine) return;
    world_.tally.reached(Goal::drain_cut_short);
    end_gracefully("the grace is over");
  });
}

/// The process closes its files and ends.
void Simulation::end_gracefully(std::string_view how) {
  world_.note(0xe4d0, [&] { return "end, " + std::string(how); });
  process_ends();
}

void Simulation::make_backup() {
  if (!life_ || !life_->engine || !disk_.running()) return;
  std::unique_ptr<Disk> copy = disk_.after_power_cut(keepers_.next(), {});
  Vfs vfs(*copy);
  if (auto whole = open_ledger(vfs); !whole) throw Violation{"ledger_can_be_opened", whole.error().message};
  sqlite3* db = nullptr;
  const bool marked = sqlite3_open_v2(kDatabase, &db, SQLITE_OPEN_READWRITE, vfs.name().c_str()) == SQLITE_OK &&
                      sqlite3_exec(db, "PRAGMA application_id = 0x486F6C62; PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr,
                                   nullptr) == SQLITE_OK;
  sqlite3_close(db);
  if (!marked) throw Violation{"ledger_can_be_opened", "a copy can't be marked"};
  backup_ = copy->content(kDatabase);
  world_.note(0xbac4, [&] { return "a backup of " + std::to_string(backup_.size()) + " bytes"; });
}

/// The server of a restored copy. Its calls go nowhere: what matters is which leave.
struct Simulation::Copy final : tools::Transport {
  explicit Copy(Tally& tally) : tally_(tally) {}
  void start(tools::Call call) override {
    ++tally_.calls;
    const bool harmless = call.kind != AttemptKind::call || call.repeat == Kind::read || !call.key.empty();
    HOLDFAST_REQUIRE(harmless, "restored_write_waits", call.server + "/" + call.tool + " is sent by a restored copy: " + call.request.body);
  }
  void cancel(tools::CallId) override {}
  void stop() override {}

 private:
  Tally& tally_;
};

void Simulation::start_from_backup() {
  Disk disk(seed_);
  disk.put(kDatabase, backup_);
  Vfs vfs(disk);
  vfs.seed_sqlite(seed_);
  auto opened = open_ledger(vfs);
  if (!opened) throw Violation{"ledger_can_be_opened", "a restored copy: " + opened.error().message};
  LifeClock clock(world_, world_.now(), 0);
  clock.not_before(opened->newest);
  Gauges metrics;
  NoObserver observer;
  Copy transport(world_.tally);
  engine::Engine engine(clock, *engine_random_, *opened->ledger, catalog_, transport, observer, metrics, {});
  if (const auto loaded = engine.load(); !loaded) throw Violation{"ledger_can_be_loaded", "a restored copy: " + loaded.error().message};
  constexpr int kTurns = 200;
  for (int i = 0; i < kTurns; ++i) {
    const auto next = engine.turn();
    if (!next) break;
    world_.advance(std::max(clock.true_time(*next), world_.now() + Duration{1}));
  }
  auto unknowns = opened->reader->unknowns({});
  if (!unknowns) throw Violation{"ledger_can_be_read", "a restored copy: " + unknowns.error().message};
  if (!unknowns->empty()) world_.tally.reached(Goal::backup_restored);
}

}  // namespace holdfast::sim
