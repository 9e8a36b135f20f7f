#include "engine/loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/canary.h"
#include "core/crash_point.h"

namespace holdfast::engine {

namespace {
// A run whose moves never end would be a mistake of ours: bounded, logged, and left as it is.
constexpr int kMostMoves = 100'000;
constexpr Duration kShortestSleep{1};
constexpr Duration kLongestSleep{3'600'000};
}  // namespace

Engine::Impl::Impl(Engine& owner_, const Clock& clock_, Random& random_, ledger::Ledger& ledger_,
                   const tools::Catalog& catalog_, tools::Transport& transport_, Observer& observer_,
                   Metrics& metrics_, Options options_)
    : owner(owner_),
      clock(clock_),
      random(random_),
      ledger(ledger_),
      catalog(catalog_),
      transport(transport_),
      observer(observer_),
      metrics(metrics_),
      options(options_),
      inbox(options_.inbox),
      ids(random_),
      gates(catalog_, random_) {}

Live* Engine::Impl::find(std::string_view run_id) {
  if (const auto it = runs.find(std::string(run_id)); it != runs.end()) return it->second.get();
  const std::optional<std::string> bytes = resting.take(run_id);
  if (!bytes) return nullptr;
  auto woken = std::make_unique<Live>();
  unpack(*bytes, *woken);
  woken->run.id = run_id;
  Live* live = woken.get();
  runs.emplace(live->run.id, std::move(woken));
  mark(*live);  // so that it may rest again at the end of the turn
  return live;
}

void Engine::Impl::rest(Live& live) {
  const std::string id = std::exchange(live.run.id, {});  // which the bytes need not hold once more
  resting.put(id, pack(live));
  runs.erase(id);
}

Result<Live*> Engine::Impl::find_any(std::string_view run_id) {
  if (Live* live = find(run_id)) return live;
  auto loaded = heed(ledger.load(run_id));
  if (!loaded) return std::unexpected(loaded.error());
  if (!*loaded || canary(Canary::settled_run_not_found)) return nullptr;
  auto live = std::make_unique<Live>();
  live->run = std::move(**loaded);
  live->counted = live->run.status;
  live->is_counted = true;
  Live* raw = live.get();
  runs.emplace(raw->run.id, std::move(live));
  mark(*raw);  // so that it is let go at the end of the turn
  return raw;
}

void Engine::Impl::mark(Live& live) {
  if (live.dirty) return;
  live.dirty = true;
  dirty.push_back(&live);
}

void Engine::Impl::schedule(Live& live) {
  const std::optional<Instant> wake = run::wake_at(live.run);
  if (wake == live.wake) return;
  if (live.wake) timers.erase({live.wake->ms, live.run.id});
  live.wake = wake;
  if (wake) timers.insert({wake->ms, live.run.id});
}

void Engine::Impl::let_go(Live& live) {
  if (live.wake) timers.erase({live.wake->ms, live.run.id});
  if (live.queued) gates.forget(live.run.id);
  const auto node = runs.extract(live.run.id);
  observer.run_left(std::move(live.run));
}

void Engine::Impl::advance(Live& live) {
  run::Turn turn{live.run, live.changes, now, random};
  for (int i = 0; i < kMostMoves; ++i) {
    const std::vector<run::Move> moves = run::next(live.run, now);
    bool moved = false;
    for (const run::Move& move : moves) {
      switch (move.kind) {
        case run::MoveKind::start:
          if (draining && !canary(Canary::drain_dispatches)) continue;
          // A step before it in the list may have stopped the run just now.
          if (run::stopping(live.run)) break;
          start_step(live, move.step);
          break;
        case run::MoveKind::check:
          if (draining) continue;
          start_check(live, move.step);
          break;
        case run::MoveKind::fallback:
          if (draining) continue;
          start_fallback(live, move.step);
          break;
        default:
          run::apply(turn, move);
      }
      moved = true;
    }
    if (!moved) return;
  }
  spdlog::error("run {} does not come to rest", live.run.id);
}

Result<void> Engine::Impl::load() {
  now = clock.now();
  loaded_at = now;
  last_progress = now;
  auto opened = ledger.load_open();
  if (!opened) return std::unexpected(opened.error());
  gates.load(std::move(opened->breakers), std::move(opened->gates));
  latencies.load(opened->latencies, now);
  std::unordered_map<std::int64_t, Live*> by_seq;
  std::vector<Live*> loaded;
  for (run::Run& stored : opened->runs) {
    if (canary(Canary::unsettled_run_lost_on_load) && stored.status == run::RunStatus::waiting) continue;
    auto live = std::make_unique<Live>();
    live->run = std::move(stored);
    if (canary(Canary::deadline_restarted_on_recovery))
      live->changes.run = true, live->run.deadline = now + (live->run.deadline - live->run.created_at);
    if (canary(Canary::cancel_forgotten_on_restart) && live->run.cancel_requested)
      live->changes.run = true, live->run.cancel_requested = false;
    if (canary(Canary::added_step_lost_on_restart) && live->run.mode == run::Mode::open && !live->run.steps.empty())
      live->changes.run = true, live->run.steps.pop_back();
    for (std::uint32_t i = 0; i < live->run.steps.size(); ++i) {
      run::Step& step = live->run.steps[i];
      if (canary(Canary::unknown_abandoned_on_restart) && step.status == run::StepStatus::unknown) {
        run::Turn turn{live->run, live->changes, now, random};
        (void)run::resolve(turn, i, {run::Resolution::abandon, "", "nobody asked", "holdfast", std::nullopt});
      }
      if (canary(Canary::attempts_reset_on_restart)) step.attempts = 0;
      if (canary(Canary::retry_unknown) && step.status == run::StepStatus::unknown)
        step.status = run::StepStatus::pending, step.doubt = Reason::none;
      // Gates and slots are asked again; what waited for them has spent nothing.
      const bool at_a_gate = step.wait.what == run::WaitFor::slot ||
                             step.wait.what == run::WaitFor::storage ||
                             step.wait.what == run::WaitFor::circuit;
      if (step.status != run::StepStatus::waiting || !at_a_gate) continue;
      if (!run::given_up(step)) step.status = run::StepStatus::pending;
      step.wait = {};
      live->changes.touch(i);  // stored too: past its deadline a run asks nobody, and would be shown as waiting
    }
    Live* raw = live.get();
    by_seq.emplace(raw->run.seq, raw);
    loaded.push_back(raw);
    runs.emplace(raw->run.id, std::move(live));
    mark(*raw);
  }
  for (const run::Attempt& attempt : opened->in_flight) {
    const auto it = by_seq.find(attempt.run_seq);
    if (canary(Canary::crash_not_absorbed) && it != by_seq.end()) {
      run::Step& step = it->second->run.steps[attempt.step];
      step.in_flight = false, step.status = run::StepStatus::pending;
      continue;
    }
    if (it != by_seq.end() && attempt.step < it->second->run.steps.size()) absorb_crash(*it->second, attempt);
  }
  if (opened->restored && !canary(Canary::backup_trusted)) distrust_restored(*opened->restored);
  for (Live* live : loaded) {
    advance(*live);
    count(*live);
  }
  serve_waiters();
  crash_point(CrashPoint::loaded);
  flush();
  if (!storage_ok) return std::unexpected(storage_error);
  count_turn();
  return {};
}

/// Nothing of it leaves by itself any more, but for reads and for keyed writes whose key the tool still knows.
void Engine::Impl::distrust_restored(Instant newest_known) {
  for (const auto& [id, live] : runs) {
    run::Turn turn{live->run, live->changes, now, random};
    run::distrust(turn, newest_known);
  }
  adopt = true;
  ledger::AuditEntry entry;
  entry.at = now;
  entry.who = "holdfast";
  entry.action = "restore";
  entry.subject = "ledger";
  entry.why = "started from a backup whose newest event is of " + format_rfc3339(newest_known) + ": the open writes of " +
              std::to_string(runs.size()) + " runs may have been sent since";
  spdlog::warn("{}; see GET /v1/unknowns", entry.why);
  audit.push_back(std::move(entry));
}

std::optional<Instant> Engine::Impl::turn() {
  now = clock.now();
  inbox.take(items);
  bool idle = items.empty();
  for (Inbox::Item& item : items) item();
  items.clear();
  if (storage_retry && *storage_retry > now) return storage_retry;
  if (storage_ok && !draining)
    while (!timers.empty() && timers.begin()->first <= now.ms) {
      Live* live = find(timers.begin()->second);
      timers.erase(timers.begin());
      if (live == nullptr) continue;
      live->wake.reset();
      advance(*live);
      mark(*live);
      idle = false;
    }
  const auto forced_end = gates.end_forced(now);
  serve_waiters();
  if (storage_ok && !draining) prune(idle);
  flush();
  if (storage_retry) return storage_retry;
  if (draining) return std::nullopt;
  std::optional<Instant> next;
  if (!timers.empty()) next = Instant{timers.begin()->first};
  if (forced_end && (!next || *forced_end < *next)) next = forced_end;
  if (catalog.config().retention && (!next || walk.next < *next)) next = walk.next;
  return next;
}

void Engine::Impl::run_thread() {
  while (!stop) {
    const std::optional<Instant> next = turn();
    if (stop) break;
    std::optional<Duration> sleep;
    if (next) sleep = std::clamp(*next - clock.now(), kShortestSleep, kLongestSleep);
    inbox.wait(sleep);
  }
}

void Engine::Impl::begin_drain() {
  draining = true;
  crash_point(CrashPoint::draining);
  // Reads and checks are given up at once; they start again in the next life.
  inbox.post_evidence([this] {
    for (const auto& [id, flight] : flights)
      if (flight.kind == Kind::read) cancels.push_back(id);
  });
}

void Engine::Impl::drain() {
  if (!thread.joinable()) return;
  const Instant end = clock.now() + options.shutdown_grace;
  begin_drain();
  {
    std::unique_lock lock(drained_mutex);
    (void)drained_wake.wait_for(lock, end - clock.now(), [this] { return drained; });
  }
  stop = true;
  inbox.nudge();
  thread.join();
  crash_point(CrashPoint::drained);
}

}  // namespace holdfast::engine
