// The output gate: everything decided becomes durable as one batch, and only then do effects leave.
#include <spdlog/spdlog.h>

#include "core/canary.h"
#include "core/crash_point.h"
#include "engine/loop.h"

namespace holdfast::engine {

namespace {
constexpr Duration kLongestStoragePause{2'000};

/// What only a canary has: the word for a commit that has not happened.
struct NoProof : ledger::Ledger {
  using Ledger::committed;
};

}  // namespace

void Engine::Impl::build_batch() {
  batch.clear();
  for (Live* live : dirty) {
    if (live->is_new) {
      batch.new_runs.push_back(&live->run);
    } else {
      if (live->changes.run) batch.runs.push_back(&live->run);
      for (const std::uint32_t step : live->new_steps) batch.new_steps.push_back({&live->run, step});
      for (const std::uint32_t step : live->changes.steps) batch.steps.push_back({&live->run, step});
    }
    for (const run::Attempt& attempt : live->attempts) batch.attempts.emplace_back(&live->run, attempt);
    for (const run::Event& event : live->changes.events) batch.events.emplace_back(&live->run, event);
  }
  batch.audit = audit;
  batch.answers = kept;
  batch.prune = prune_seqs;
  batch.probe = !storage_ok;
  batch.adopt = adopt;
}

/// However a write came into doubt: its tool's check is asked.
void Engine::Impl::ask_checks(Live& live) {
  for (std::uint32_t i = 0; i < live.run.steps.size(); ++i) {
    run::Step& step = live.run.steps[i];
    if (step.status != run::StepStatus::unknown || step.in_flight || step.next_check || step.checks != 0)
      continue;
    if (!step.write || !step.write->open || !policy_of(step).check) continue;
    step.next_check = now;
    live.changes.touch(i);
  }
}

/// A check that nobody needs any more stands in no circuit's way: while a read waits there, no plain write may probe.
void Engine::Impl::leave_with_doubt(Live& live) {
  if (!live.queued) return;
  for (std::uint32_t i = 0; i < live.run.steps.size(); ++i) {
    const run::Step& step = live.run.steps[i];
    if (step.next_check) continue;
    if (const ToolPolicy& policy = policy_of(step); policy.check)
      gates.leave_circuit(policy.check->server, {live.run.id, i, true});
  }
}

void Engine::Impl::flush() {
  for (Live* live : dirty) {
    ask_checks(*live);
    leave_with_doubt(*live);
    run::Turn turn{live->run, live->changes, now, random};
    run::refresh(turn);
    schedule(*live);
    for (const std::uint32_t step : live->changes.cancel_calls)
      for (const auto& [id, flight] : flights)
        if (flight.live == live && flight.step == step) cancels.push_back(id);
    live->changes.cancel_calls.clear();
  }
  build_batch();
  gates.collect(batch.breakers, batch.gates);
  last_flush = draining && (flights.empty() || canary(Canary::drained_too_early));
  if (last_flush || !batch.empty()) latencies.collect(batch.latencies, now, last_flush);
  if (batch.empty())
    return release_effects();  // nothing to store: whoever waits is told what is stored already
  crash_point(CrashPoint::before_commit);
  if (canary(Canary::send_before_commit)) send(NoProof::committed());
  if (canary(Canary::acknowledge_before_commit)) answer_submitters();
  const std::size_t size = batch.runs.size() + batch.new_runs.size();
  const auto started = std::chrono::steady_clock::now();
  auto committed = ledger.commit(batch);
  if (!committed) return storage_failed(committed.error());
  metrics.committed(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(), size);
  if (!storage_ok) {
    spdlog::info("the ledger can be written again");
    storage_ok = true;
    storage_retry.reset();
    storage_pause = Duration{250};
  }
  after_commit(*committed);
}

/// Before anybody is answered: who was told of something finds it counted.
void Engine::Impl::count_turn() {
  for (Live* live : dirty) {
    count(*live);
    for (std::uint32_t i = 0; i < live->changes.over_budget; ++i) metrics.retry_budget_exhausted();
    for (const std::uint32_t step : live->changes.degraded)
      metrics.fallback(live->run.steps[step].spec.server, live->run.steps[step].spec.tool);
  }
  for (const Gates::Change& change : gates.take_changes())
    metrics.circuit(change.server, change.tool, change.state, change.opened);
  report();
}

void Engine::Impl::answer_submitters() {
  for (auto& [run_id, answer] : submit_answers) answer(nullptr);
  submit_answers.clear();
}

void Engine::Impl::send(const ledger::Committed& proof) {
  for (Outgoing& out : outgoing) {
    tools::Call call = std::move(out).release(proof);
    if (canary(Canary::call_sent_twice)) transport.start(call);
    transport.start(std::move(call));
  }
  outgoing.clear();
}

void Engine::Impl::after_commit(const ledger::Committed& proof) {
  crash_point(CrashPoint::committed);
  if (!submit_answers.empty()) crash_point(CrashPoint::submit_committed);
  count_turn();
  answer_submitters();
  if (!outgoing.empty()) crash_point(CrashPoint::answered);
  send(proof);
  keys.clear();
  audit.clear();
  kept.clear();
  pruned();
  adopt = false;
  release_effects();
  ledger.checkpoint_if_due();
}

/// The lists keep their room for the next turn while the run moves, and give it up when it waits: many may wait for long.
void Engine::Impl::forget_turn(Live& live) {
  live.changes.clear();
  live.attempts.clear();
  live.new_steps.clear();
  if (live.flights > 0) return;
  live.changes = {};
  live.attempts.shrink_to_fit();
  live.new_steps.shrink_to_fit();
}

void Engine::Impl::release_effects() {
  for (const tools::CallId id : cancels) transport.cancel(id);
  cancels.clear();
  if (!answers.empty()) crash_point(CrashPoint::command_committed);
  for (auto& answer : answers) answer(nullptr);
  answers.clear();
  for (Live* live : dirty) {
    if (live->run.settled()) crash_point(CrashPoint::settled);
    const bool changed = live->is_new || !live->changes.empty() || !live->attempts.empty();
    const std::string id = live->run.id;
    const bool rests = live->run.settled() || live->run.status == run::RunStatus::unknown;
    live->is_new = false;
    live->dirty = false;
    forget_turn(*live);
    if (live->run.settled() && live->flights == 0)
      let_go(*live);
    else if (may_rest(*live, now))
      rest(*live);
    if (changed) observer.run_changed(id, rests);
  }
  dirty.clear();
  if (last_flush) {
    const std::lock_guard lock(drained_mutex);
    drained = true;
    drained_wake.notify_all();
  }
}

void Engine::Impl::stop_if_broken(const Error& error) {
  if (error.code != "storage_broken") return;
  spdlog::critical("{}: stopping, so that the next start goes by what is on disk", error.message);
  spdlog::shutdown();
  std::_Exit(70);
}

/// What is decided stays decided, in memory, and is tried again; what nobody has been promised yet is
/// refused.
void Engine::Impl::storage_failed(const Error& error) {
  stop_if_broken(error);
  if (storage_ok)
    spdlog::error("the ledger can't be written: {}; nothing leaves until it can", error.message);
  storage_ok = false;
  storage_error = error;
  storage_retry = now + storage_pause;
  storage_pause = std::min(storage_pause * 2, kLongestStoragePause);
  // Rows that gates gave for this batch must be given again.
  for (const Breaker& breaker : batch.breakers) gates.store_again(breaker);
  for (const RateGate& gate : batch.gates) gates.store_again(gate);
  for (const ledger::LatencyRow& row : batch.latencies) latencies.store_again(row);
  for (auto& [run_id, answer] : submit_answers) {
    answer(&storage_error);
    const auto it = runs.find(run_id);
    if (it == runs.end() || !it->second->is_new) continue;
    if (canary(Canary::refused_run_stored) && !it->second->run.submit_key.empty()) continue;
    Live* live = it->second.get();
    std::erase_if(flights, [&](auto& entry) {
      if (entry.second.live != live) return false;
      gates.release_slot(entry.second.called->server);
      gates.give_back(entry.second.permit, *entry.second.called, now);
      if (entry.second.age) sent_at.erase(*entry.second.age);
      return true;
    });
    std::erase_if(outgoing, [&](const Outgoing& out) { return out.run_id() == run_id; });
    std::erase(dirty, live);
    if (live->wake) timers.erase({live->wake->ms, run_id});
    runs.erase(it);
  }
  submit_answers.clear();
  keys.clear();
  walk.deleted -= prune_seqs.size();  // the walk goes over them again
  prune_seqs.clear();
  walk.ids.clear();
  walk.after = 0;
}

std::vector<std::int64_t> open_unknowns(const run::Run& run) {
  std::vector<std::int64_t> since;
  for (const run::Step& step : run.steps)
    if (step.write && step.write->open && step.write->unknown_since) since.push_back(step.write->unknown_since->ms);
  return since;
}

void Engine::Impl::count(Live& live) {
  const auto slot = [&](run::RunStatus status) -> std::uint64_t* {
    switch (status) {
      case run::RunStatus::queued:
        return &open.queued;
      case run::RunStatus::running:
        return &open.running;
      case run::RunStatus::waiting:
        return &open.waiting;
      case run::RunStatus::unknown:
        return &open.unknown;
      default:
        return nullptr;
    }
  };
  if (!live.is_counted || live.counted != live.run.status) {
    if (live.is_counted)
      if (std::uint64_t* old = slot(live.counted)) --*old;
    const bool was_settled = live.is_counted && slot(live.counted) == nullptr;
    if (std::uint64_t* fresh = slot(live.run.status))
      ++*fresh;
    else if (!was_settled)
      metrics.run_settled(live.run.status);
    live.counted = live.run.status;
    live.is_counted = true;
  }
  for (const std::int64_t since : live.unknown_since) unknown_since.erase(unknown_since.find(since));
  live.unknown_since = open_unknowns(live.run);
  unknown_since.insert(live.unknown_since.begin(), live.unknown_since.end());
}

void Engine::Impl::report() {
  const auto first = [](const std::multiset<std::int64_t>& set) {
    return set.empty() ? std::nullopt : std::optional<Instant>(Instant{*set.begin()});
  };
  metrics.gauges(open, unknown_since.size(), first(unknown_since), first(sent_at), last_progress,
                 ledger.wal_bytes());
}

}  // namespace holdfast::engine
