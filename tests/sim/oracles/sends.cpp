// What may leave, when, and what it may do.
#include <functional>

#include "run/machine_detail.h"
#include "sim/oracles.h"
#include "sim/portrait.h"

namespace holdfast::sim {

namespace {

std::size_t hash_of(const tools::Call& call) {
  const std::hash<std::string> hash;
  return hash(call.request.head) * 31 + hash(call.request.body) * 7 + hash(call.key);
}

}  // namespace

std::string Oracles::Leaving::about() const {
  return op.name + " to " + call.server + "/" + call.tool + " (" + std::string(word(call.kind)) + ")\n" + portrait(run);
}

/// The newest row of this step, made for this very call.
const run::Attempt& Oracles::row_of(const tools::Call& call, const Op& op) const {
  const Stored* stored = op.run_id.empty() ? nullptr : find(op.run_id);
  const auto about = [&] {
    return op.name + " to " + call.server + "/" + call.tool + "\n" + (stored ? portrait(stored->run) : "not stored");
  };
  HOLDFAST_REQUIRE(stored != nullptr, "send_after_commit", about());
  auto row = stored->attempts.lower_bound({op.step + 1, 0});
  HOLDFAST_REQUIRE(row != stored->attempts.begin(), "send_after_commit", "no row\n" + about());
  --row;
  HOLDFAST_REQUIRE(row->first.first == op.step && row->second.delivery == Delivery::in_flight && row->second.kind == call.kind,
          "send_after_commit", "no row in flight\n" + about());
  return row->second;
}

void Oracles::starting(const tools::Call& call, Op& op, Instant engine_now) {
  const run::Attempt& attempt = row_of(call, op);
  const ToolPolicy* rules = town_.rules(call.server, call.tool);
  HOLDFAST_REQUIRE(rules != nullptr, "removed_tool_gets_nothing", op.name + " to " + call.server + "/" + call.tool);
  const Leaving leaving{call, op, find(op.run_id)->run, attempt, *rules, engine_now};
  HOLDFAST_REQUIRE(!draining_since_ || attempt.started_at <= *draining_since_, "draining_starts_nothing", leaving.about());
  const Duration longest = town_.longest(call.server, call.tool, [](const ToolPolicy& p) { return p.deadline; });
  HOLDFAST_REQUIRE(call.deadline <= attempt.started_at + longest, "call_deadline_holds", leaving.about());
  check_sized(leaving);
  check_gates(leaving);
  if (call.kind != AttemptKind::call) {
    ++op.asked[call.kind == AttemptKind::check ? 0 : 1];
    if (call.kind == AttemptKind::fallback)
      HOLDFAST_REQUIRE(call.deadline <= leaving.run.deadline, "run_deadline_holds", leaving.about());
    return;
  }
  check_limits(leaving);
  if (op.tool->is_write()) check_write(leaving);
}

/// A deadline that follows what was measured stays between its bounds, but for what the step and the run leave of it.
void Oracles::check_sized(const Leaving& leaving) const {
  const auto& [call, op, run, attempt, policy, now] = leaving;
  if (!policy.sized || !town_.before.empty()) return;
  if (call.deadline < attempt.started_at + policy.sized->ceiling) world_.tally.reached(Goal::sized_deadline);
  const run::StepSpec& spec = run.steps[op.step].spec;
  Instant least = attempt.started_at + policy.sized->floor;
  if (call.kind != AttemptKind::check || run.deadline > attempt.started_at) least = std::min(least, run.deadline);
  if (call.kind != AttemptKind::check && spec.deadline) least = std::min(least, attempt.started_at + *spec.deadline);
  HOLDFAST_REQUIRE(call.deadline >= least, "sized_deadline_keeps_its_bounds", leaving.about());
}

/// Times, order and counts of a step's call.
void Oracles::check_limits(const Leaving& leaving) {
  const auto& [call, op, run, attempt, policy, now] = leaving;
  HOLDFAST_REQUIRE(attempt.n > (op.sends.empty() ? 0 : op.sends.back().n), "hits_within_rows", leaving.about());
  HOLDFAST_REQUIRE(call.deadline <= run.deadline, "run_deadline_holds", leaving.about());
  const run::StepSpec& spec = run.steps[op.step].spec;
  HOLDFAST_REQUIRE(!spec.deadline || call.deadline <= attempt.started_at + *spec.deadline, "call_deadline_holds",
          leaving.about());
  for (const std::uint32_t before : spec.after)
    HOLDFAST_REQUIRE(run::terminal(run.steps[before].status), "step_waits_for_its_dependencies", leaving.about());
  HOLDFAST_REQUIRE(op.sends.size() + 1 <= policy.max_attempts + op.orders + op.repairs, "attempt_limit_holds",
          std::to_string(op.sends.size() + 1) + " sends\n" + leaving.about());
  std::size_t repeats = 0, allowed = run.retry_limit;
  for (const run::Step& step : run.steps) {
    const Op* other = op_of(step);
    const std::size_t sends = other->sends.size() + (other == &op ? 1 : 0);
    repeats += sends > 0 ? sends - 1 : 0;
    allowed += other->orders + other->repairs;
  }
  HOLDFAST_REQUIRE(repeats <= allowed, "budget_holds", std::to_string(repeats) + " repeats\n" + leaving.about());
  if (!op.sends.empty() && run.retry_spent > 0) spent_in_life_.try_emplace(run.id, life_);
  for (const Send& send : op.sends)
    if (send.not_before && send.recorded && !send.crashed && op.orders == 0 && op.cleared == 0)
      HOLDFAST_REQUIRE(now >= *send.not_before, "retry_after_is_waited", leaving.about());
}

/// A write leaves once, or again with a reason; and always the same.
void Oracles::check_write(const Leaving& leaving) {
  const auto& [call, op, run, attempt, policy, now] = leaving;
  const run::Step& step = run.steps[op.step];
  HOLDFAST_REQUIRE(!(step.write && step.write->open), "unknown_is_never_retried", leaving.about());
  const std::uint64_t request = hash_of(call);
  HOLDFAST_REQUIRE(op.request == 0 || (op.request == request && op.key == call.key), "request_is_frozen", leaving.about());
  op.request = request;
  op.key = call.key;
  if (op.tool->is_keyed()) {
    HOLDFAST_REQUIRE(!call.key.empty(), "key_is_sent", leaving.about());
    if (op.absent_seen) op.absent = op.sends.size();
    const Duration retention = town_.longest(call.server, call.tool, [](const ToolPolicy& p) { return p.key ? p.key->retention : Duration{0}; });
    for (std::size_t i = op.absent; i < op.sends.size() && op.orders == 0; ++i)
      HOLDFAST_REQUIRE(op.sends[i].harmless() || attempt.started_at - op.sends[i].begun <= retention,
              "expired_key_is_not_used", leaving.about());
  }
  bool harmless = true;
  for (std::size_t i = op.cleared; i < op.sends.size(); ++i) harmless &= op.sends[i].harmless();
  if (!harmless && !op.tool->is_keyed()) {
    const bool absent = op.tool->is_checkable() && op.absent_seen;
    HOLDFAST_REQUIRE(op.orders > 0 || absent, "write_repeated_without_proof", leaving.about());
    op.cleared = op.sends.size();
    if (absent) world_.tally.reached(Goal::check_absent);
  }
  op.absent_seen = false;
}

void Oracles::acted(Op& op) {
  HOLDFAST_REQUIRE(op.tool->trait == Trait::read || op.effects <= 1 + op.wrong_orders + op.forgotten, "one_effect",
          op.name + " on " + op.tool->server + "/" + op.tool->name + ": " + std::to_string(op.effects) +
              " effects\n" + (find(op.run_id) ? portrait(find(op.run_id)->run) : ""));
  HOLDFAST_REQUIRE(op.hits <= op.sends.size(), "hits_within_rows", op.name);
}

void Oracles::handed_over(Op& op, std::size_t send, Shown shown, std::optional<Instant> not_before) {
  Send& it = op.sends[send];
  it.given = shown;
  it.not_before = not_before;
  bool doubt_before = false;
  for (std::size_t i = op.cleared; i < send; ++i) doubt_before |= !op.sends[i].harmless();
  if (doubt_before && shown == Shown::refused) world_.tally.reached(Goal::doubt_then_refusal);
  if (doubt_before && shown == Shown::unsent) world_.tally.reached(Goal::doubt_then_unsent);
}

void Oracles::call_lost_with_process(Op& op, std::size_t send) {
  Send& it = op.sends[send];
  if (it.given == Shown::nothing) it.given = Shown::doubtful;
  if (it.acted) world_.tally.reached(Goal::crash_between_send_and_record);
}

/// The ledger has what this attempt came to.
void Oracles::record(Op& op, const run::Attempt& attempt) {
  if (attempt.kind != AttemptKind::call || attempt.delivery == Delivery::in_flight) return;
  for (Send& send : op.sends) {
    if (send.n != attempt.n || send.recorded) continue;
    send.recorded = true;
    send.crashed = attempt.klass == AttemptClass::crashed;
    if (!send.not_before || send.crashed || attempt.klass != AttemptClass::http_429) continue;
    Gate& gate = gates_[op.tool->server];
    gate = {std::max(gate.until, *send.not_before), turn_};
  }
}

}  // namespace holdfast::sim
