// From a move to a call.
#include <algorithm>

#include "core/canary.h"
#include "engine/loop.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

namespace holdfast::engine {

namespace {

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

}  // namespace holdfast::engine
