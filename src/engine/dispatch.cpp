// From a move to a call, and from evidence back to the run.
#include <algorithm>

#include "core/canary.h"
#include "core/crash_point.h"
#include "engine/loop.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

namespace holdfast::engine {

namespace {

constexpr std::size_t kMostLingering = 10'000;
constexpr Duration kCheckDelay{500};
constexpr Duration kCheckPause{30'000};  // at most, between two looks at a gate; a slot's queue calls sooner

}  // namespace

const ToolPolicy& Engine::Impl::policy_of(const run::Step& step) const {
  static const ToolPolicy
      kGone;  // a tool that the configuration has lost since: a plain write, decided by what is recorded
  const tools::ToolConfig* config = catalog.find(step.spec.server, step.spec.tool);
  return config != nullptr ? config->policy : kGone;
}

Result<void> Engine::Impl::freeze(Live& live, std::uint32_t index, const ToolPolicy& policy) {
  run::Step& step = live.run.steps[index];
  const bool is_write = step.effect == Effect::write;
  const bool anew = canary(Canary::body_rendered_again);
  if (is_write && step.write && !step.write->request.head.empty() && !anew) return {};
  if (!is_write && index < live.requests.size() && !live.requests[index].head.empty()) return {};
  auto args = resolved_args(live.run, step);
  if (!args) return std::unexpected(args.error());
  if (anew) args->insert(args->size() - 1, ",\"attempt\":" + std::to_string(step.rows));
  if (step.target.empty()) {
    auto target = catalog.target(step.spec.server, step.spec.tool, step.spec.target, *args);
    if (!target) return std::unexpected(target.error());
    step.target = std::move(*target);
  }
  std::string key;
  if (is_write) {
    const run::Write& write = run::ensure_write(live.run, index);
    if (policy.key) key = write.key;
  }
  auto request = catalog.freeze(step.spec.server, step.spec.tool, *args, key);
  if (!request) return std::unexpected(request.error());
  live.changes.touch(index);
  if (is_write) {
    step.write->request = std::move(*request);
    step.write->keyed = policy.key.has_value();
  } else {
    if (live.requests.size() < live.run.steps.size()) live.requests.resize(live.run.steps.size());
    live.requests[index] = std::move(*request);
  }
  return {};
}

/// Why the step is sent again: how its last call ended. From the ledger where that was in an earlier life.
AttemptClass Engine::Impl::last_class(const Live& live, std::uint32_t index) {
  if (index < live.last_class.size() && live.last_class[index] != AttemptClass::none)
    return live.last_class[index];
  for (std::uint32_t n = live.run.steps[index].rows; n > 0; --n) {
    const auto stored = ledger.find_attempt(live.run.seq, index, n);
    if (!stored || !*stored) break;
    if ((*stored)->kind == AttemptKind::call) return (*stored)->klass;
  }
  return AttemptClass::none;
}

void Engine::Impl::start_step(Live& live, std::uint32_t index, bool from_queue) {
  run::Step& step = live.run.steps[index];
  run::Turn turn{live.run, live.changes, now, random};
  const bool taken_for_gone = canary(Canary::tool_taken_for_gone) && step.attempts > 0;
  if (taken_for_gone || catalog.find(step.spec.server, step.spec.tool) == nullptr)
    return run::fail(turn, index, Reason::tool_not_found,
                     "the configuration has no tool " + step.spec.server + "/" + step.spec.tool);
  const ToolPolicy& policy = policy_of(step);
  const auto unfit = [&](const Error& error) {
    const bool reference = error.code == "bad_reference";
    run::fail(turn, index, reference ? Reason::bad_reference : Reason::bad_arguments, error.message);
  };
  // A write that a restored backup left in doubt may have nothing recorded: its check and the operator need its key.
  if (step.doubt != Reason::none)
    if (auto frozen = freeze(live, index, policy); !frozen) return unfit(frozen.error());
  const run::Readiness readiness = run::ready(live.run, step, policy, now, latencies.deadline(policy, now));
  switch (readiness.what) {
    case run::Readiness::What::fail:
      return run::give_up(turn, index, policy, readiness.reason, readiness.detail);
    case run::Readiness::What::doubt:
      return run::doubt(turn, index, readiness.reason, readiness.detail);
    case run::Readiness::What::check:
      step.checks = 0;
      step.next_check = now;
      return start_check(live, index);
    case run::Readiness::What::send:
      break;
  }
  if (auto frozen = freeze(live, index, policy); !frozen) return unfit(frozen.error());
  if (!gates.slot_free(step.spec.server) || (!from_queue && gates.others_wait(step.spec.server))) {
    live.queued = true;
    if (step.wait.what != run::WaitFor::slot) gates.queue_for_slot(step.spec.server, {live.run.id, index});
    return run::hold(turn, index, {run::WaitFor::slot, std::nullopt});
  }
  if (live.queued) gates.leave_circuit(step.spec.server, {live.run.id, index});
  const CallDeadline deadline =
      nest_deadline(latencies.deadline(policy, now), step.spec.deadline, live.run.deadline, now);
  Verge verge = gates.ask(policy, readiness.kind, now, deadline.at);
  if (verge.pass == Verge::Pass::closed)
    return closed_circuit(live, index, policy, readiness.kind, std::move(verge));
  if (verge.pass == Verge::Pass::wait) {
    if (verge.earliest >= live.run.deadline)
      return run::give_up(turn, index, policy, Reason::rate_limited,
                          "the server asked everybody to wait until " + format_rfc3339(verge.earliest) +
                              ", past the run's deadline",
                          verge.earliest);
    if (*verge.wait.until >= live.run.deadline) verge.wait.until = verge.earliest;
    return run::hold(turn, index, verge.wait);
  }
  if (step.attempts > 0 && !step.ordered) metrics.retried(Reason::none, word(last_class(live, index)));
  const bool is_write = step.effect == Effect::write;
  run::FrozenRequest request = is_write ? step.write->request : live.requests[index];
  launch(live, index, AttemptKind::call, policy, readiness.kind, std::move(request), deadline,
         std::move(verge.permit));
}

void Engine::Impl::closed_circuit(Live& live, std::uint32_t index, const ToolPolicy& policy, Kind kind,
                                  Verge verge) {
  if (verge.stand_in) send_probe(std::move(*verge.stand_in));
  run::Step& step = live.run.steps[index];
  run::Turn turn{live.run, live.changes, now, random};
  const std::string until =
      verge.wait.until && !verge.probing ? format_rfc3339(*verge.wait.until) : std::string{};
  const std::string detail = "the circuit of " + policy.server + "/" + policy.tool +
                             (verge.probing ? " is half open and a probe decides" : " is open") +
                             (until.empty() ? "" : " until " + until) +
                             (verge.cause.empty() ? "" : " (" + verge.cause + ")");
  const bool too_late = !verge.probing && verge.wait.until && *verge.wait.until >= live.run.deadline;
  const bool has_fallback = step.effect == Effect::read && policy.fallback.has_value();
  if (has_fallback)
    return run::give_up(turn, index, policy, Reason::circuit_open, detail, verge.wait.until);
  if (step.spec.on_circuit_open == run::OnCircuitOpen::fail || too_late)
    return run::fail(turn, index, Reason::circuit_open, detail, verge.wait.until);
  live.queued = true;
  gates.wait_for_circuit(policy, {live.run.id, index}, kind, verge.by_server);
  run::hold(turn, index, verge.wait);
}

void Engine::Impl::start_check(Live& live, std::uint32_t index, bool from_queue) {
  run::Step& step = live.run.steps[index];
  const ToolPolicy& policy = policy_of(step);
  run::Turn turn{live.run, live.changes, now, random};
  const auto later = [&](Duration wait) {
    step.next_check = now + wait;
    if (step.status != run::StepStatus::unknown)
      run::hold(turn, index, {run::WaitFor::backoff, step.next_check});
    live.changes.touch(index);
  };
  if (!policy.check) {
    step.next_check.reset();
    return run::doubt(turn, index, step.doubt, step.doubt_detail);
  }
  const CheckRule& rule = *policy.check;
  if (live.queued) gates.leave_circuit(rule.server, {live.run.id, index, true});
  const tools::ToolConfig* config = catalog.find(rule.server, rule.tool);
  const auto args = resolved_args(live.run, step);
  if (config == nullptr || !args) {
    step.next_check.reset();
    return run::doubt(turn, index, step.doubt, step.doubt_detail);
  }
  const auto args_document = json::parse(*args);
  const std::string key = json::quote(run::ensure_write(live.run, index).key);
  const auto filled = run::resolve(
      rule.args, [&](std::string_view name, std::string_view pointer) -> std::optional<std::string> {
        if (name == "key" && pointer.empty()) return key;
        if (name != "args" || !args_document) return std::nullopt;
        const json::Value* value = json::at(*args_document, pointer);
        return value == nullptr ? std::nullopt : std::optional<std::string>(std::string(value->raw));
      });
  auto request = filled ? catalog.freeze(rule.server, rule.tool, *filled, "")
                        : Result<run::FrozenRequest>(std::unexpected(filled.error()));
  if (!request) {
    step.next_check.reset();
    return run::doubt(turn, index, step.doubt, "the tool's check can't be asked: " + request.error().message);
  }
  if (!gates.slot_free(rule.server) || (!from_queue && gates.others_wait(rule.server))) {
    live.queued = true;
    gates.queue_for_slot(rule.server, {live.run.id, index, true});
    return later(kCheckPause);
  }
  const Instant limit = now < live.run.deadline ? live.run.deadline : kEndOfTime;
  const CallDeadline deadline =
      nest_deadline(latencies.deadline(config->policy, now), std::nullopt, limit, now);
  Verge verge = gates.ask(config->policy, Kind::read, now, deadline.at);
  if (verge.pass == Verge::Pass::closed) {  // it is told when the circuit changes, by an operator's word too
    live.queued = true;
    gates.wait_for_circuit(config->policy, {live.run.id, index, true}, Kind::read, verge.by_server);
  }
  if (verge.pass != Verge::Pass::go)
    return later(verge.wait.until ? std::clamp(*verge.wait.until - now, kCheckDelay, kCheckPause)
                                  : kCheckPause);
  launch(live, index, AttemptKind::check, config->policy, Kind::read, std::move(*request), deadline,
         std::move(verge.permit));
}

void Engine::Impl::launch(Live& live, std::uint32_t index, AttemptKind kind, const ToolPolicy& called,
                          Kind repeat, run::FrozenRequest request, const CallDeadline& deadline,
                          Permit permit) {
  run::Turn turn{live.run, live.changes, now, random};
  gates.take_slot(called.server);
  Flight flight;
  flight.live = &live;
  flight.step = index;
  flight.attempt = run::begin(turn, index, kind, deadline);
  flight.called = &called;
  flight.kind = repeat;
  flight.permit = std::move(permit);
  flight.held_slot = true;
  flight.age = sent_at.insert(now.ms);
  if (!canary(Canary::no_attempt_row)) live.attempts.push_back(flight.attempt);
  ++live.flights;

  tools::Call call;
  call.id = next_call++;
  call.server = called.server;
  call.tool = called.tool;
  call.kind = kind;
  call.repeat = repeat;
  call.request = std::move(request);
  if (kind == AttemptKind::call && called.key && live.run.steps[index].write) {
    call.key = live.run.steps[index].write->key;
    if (canary(Canary::new_key_per_attempt)) call.key += std::to_string(live.run.steps[index].rows);
    if (canary(Canary::key_not_sent)) call.key.clear();
    call.key_rule = called.key;
  }
  call.deadline = deadline.at;
  if (canary(Canary::call_outlives_its_deadline)) call.deadline = call.deadline + Duration{1'000};
  call.linger = called.linger;
  flights.emplace(call.id, std::move(flight));
  outgoing.emplace_back(std::move(call), live.run.id);
}

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
