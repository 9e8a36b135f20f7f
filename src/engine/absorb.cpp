// From the evidence of a call back to its run.
#include <algorithm>

#include "core/canary.h"
#include "core/crash_point.h"
#include "engine/loop.h"

namespace holdfast::engine {

namespace {

constexpr std::size_t kMostLingering = 10'000;

}  // namespace

void Engine::Impl::end_flight(Live& live, std::uint32_t index, const Evidence& evidence, Flight& flight) {
  run::Turn turn{live.run, live.changes, now, random};
  const run::Step& step = live.run.steps[index];
  const Judgement judgement = classify(evidence, *flight.called, flight.kind, flight.attempt.clipped);
  const bool neutral = evidence.failure == Failure::cancelled || evidence.failure == Failure::crashed;
  const bool leaks = canary(Canary::probe_leaked_on_cancel) && evidence.failure == Failure::cancelled;
  if (neutral && !leaks)
    gates.give_back(flight.permit, *flight.called, now);
  else if (!neutral)
    gates.settle(flight.permit, *flight.called, judgement,
                 retry_after_wait(evidence.retry_after, evidence.date, now), now);
  const Sample sample = sample_of(flight.attempt.kind, flight.attempt.clipped, evidence, judgement);
  latencies.add(*flight.called, sample,
                sample == Sample::gave_up ? flight.attempt.deadline : now - flight.attempt.started_at, now);
  const ToolPolicy& policy = policy_of(step);
  const bool interrupted = draining && evidence.failure == Failure::cancelled && flight.kind == Kind::read &&
                           !live.run.cancel_requested;
  if (interrupted)
    run::interrupt(turn, index, flight.attempt, evidence, judgement);
  else
    switch (flight.attempt.kind) {
      case AttemptKind::check:
        run::absorb_check(turn, index, flight.attempt, evidence, judgement, policy, loaded_at);
        break;
      case AttemptKind::fallback:
        run::absorb_fallback(turn, index, flight.attempt, evidence, judgement);
        break;
      default:
        run::absorb_call(turn, index, flight.attempt, evidence, judgement, policy);
    }
  keep_answer(flight, evidence, judgement);
  if (flight.attempt.kind == AttemptKind::call) {
    live.last_class.resize(std::max(live.last_class.size(), live.run.steps.size()));
    live.last_class[index] = flight.attempt.klass;
  }
  live.attempts.push_back(flight.attempt);
}

void Engine::Impl::call_finished(tools::CallId id, Evidence evidence) {
  const auto it = flights.find(id);
  if (it == flights.end()) return probe_finished(id, evidence);
  crash_point(CrashPoint::before_absorb);
  Flight flight = std::move(it->second);
  flights.erase(it);
  Live& live = *flight.live;
  --live.flights;
  const bool leaks = canary(Canary::slot_leaked_on_cancel) && evidence.failure == Failure::cancelled;
  if (flight.held_slot && !leaks) gates.release_slot(flight.called->server);
  if (flight.age) sent_at.erase(*flight.age);
  last_progress = now;
  end_flight(live, flight.step, evidence, flight);
  const double seconds = static_cast<double>((now - flight.attempt.started_at).count()) / 1000.0;
  metrics.attempt_finished(flight.called->server, flight.called->tool, flight.attempt.klass, seconds,
                           evidence.failure == Failure::timeout);
  const bool may_come_late = evidence.failure != Failure::none && flight.attempt.delivery != Delivery::not_sent;
  if (may_come_late && flight.attempt.kind == AttemptKind::call) {
    lingering.emplace(id, Lingering{live.run.id, flight.step, flight.attempt.n});
    lingering_order.push_back(id);
    if (lingering_order.size() > kMostLingering) {
      lingering.erase(lingering_order.front());
      lingering_order.pop_front();
    }
  }
  mark(live);
  advance(live);
}

void Engine::Impl::call_late(tools::CallId id, Evidence evidence) {
  const auto it = canary(Canary::late_answer_to_another_call) ? lingering.begin() : lingering.find(id);
  if (it == lingering.end()) return;
  const Lingering which = std::move(it->second);
  lingering.erase(it);
  auto found = find_any(which.run_id);
  if (!found || *found == nullptr || which.step >= (*found)->run.steps.size()) return;
  Live& live = **found;
  // The row of this turn is newer than the ledger's.
  const auto mine = std::find_if(live.attempts.begin(), live.attempts.end(), [&](const run::Attempt& a) {
    return a.step == which.step && a.n == which.n;
  });
  run::Attempt attempt;
  if (mine != live.attempts.end()) {
    attempt = std::move(*mine);
    live.attempts.erase(mine);
  } else {
    auto stored = heed(ledger.find_attempt(live.run.seq, which.step, which.n));
    if (!stored || !*stored) return;
    attempt = std::move(**stored);
  }
  run::Turn turn{live.run, live.changes, now, random};
  const ToolPolicy& policy = policy_of(live.run.steps[which.step]);
  const Judgement judgement =
      classify(evidence, policy, run::kind_of(live.run.steps[which.step], policy), false);
  (void)run::absorb_late(turn, which.step, attempt, evidence, judgement);
  live.attempts.push_back(std::move(attempt));
  metrics.late_answer();
  mark(live);
  advance(live);
}

void Engine::Impl::absorb_crash(Live& live, const run::Attempt& attempt) {
  const run::Step& step = live.run.steps[attempt.step];
  const ToolPolicy& policy = policy_of(step);
  Evidence evidence;
  evidence.failure = Failure::crashed;
  evidence.phase = Phase::tx_all;
  evidence.detail = "the process ended while the call was out";
  Flight flight;
  flight.live = &live;
  flight.step = attempt.step;
  flight.attempt = attempt;
  flight.called = &policy;
  flight.kind = attempt.kind == AttemptKind::call ? run::kind_of(step, policy) : Kind::read;
  flight.permit.server = policy.server;
  flight.permit.tool = policy.tool;
  end_flight(live, attempt.step, evidence, flight);
  mark(live);
}

}  // namespace holdfast::engine
