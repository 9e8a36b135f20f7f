// Circuits with their probes, rate gates and slots.
#include "sim/oracles.h"
#include "sim/portrait.h"

namespace holdfast::sim {

void Oracles::note_circuits(const ledger::Batch& batch) {
  for (const Breaker& row : batch.breakers) {
    Circuit& circuit = circuits_[{row.server, row.tool}];
    if (circuit.row.generation != row.generation) circuit.starts = 0;
    if (row.state == BreakerState::open && row.forced_open) world_.tally.reached(Goal::forced_circuit);
    if (row.state == BreakerState::open && circuit.row.state != BreakerState::open)
      world_.tally.reached(Goal::circuit_opens);
    if (row.state == BreakerState::closed && circuit.row.state == BreakerState::half_open)
      world_.tally.reached(Goal::probe_closes);
    circuit.row = row;
    circuit.since_turn = turn_;
  }
  check_probes(batch);
  if (!batch.gates.empty()) world_.tally.reached(Goal::gate_closes);
}

void Oracles::circuits_are(ledger::Reader& reader) {
  auto rows = reader.breakers();
  if (!rows) return;
  for (Breaker& row : *rows) {
    Circuit& circuit = circuits_[{row.server, row.tool}];
    if (circuit.row.generation != row.generation) circuit.starts = 0;
    circuit.row = std::move(row);
  }
}

/// A probe that has ended, however it has ended, leaves its circuit's place.
void Oracles::check_probes(const ledger::Batch& batch) const {
  for (const auto& [key, circuit] : circuits_) {
    if (circuit.prober.empty()) continue;
    const bool taken = circuit.row.state == BreakerState::half_open && circuit.starts > 0 && circuit.row.probe_until;
    for (const auto& [run, attempt] : batch.attempts) {
      if (attempt.delivery == Delivery::in_flight || attempt.n != circuit.n || attempt.step != circuit.step ||
          run->id != circuit.prober)
        continue;
      HOLDFAST_REQUIRE(!taken, "ended_probe_leaves_its_place",
              key.first + "/" + key.second + "\n" + portrait(attempt));
      if (attempt.klass == AttemptClass::cancelled) world_.tally.reached(Goal::probe_cancelled);
    }
  }
}

void Oracles::slots_are_taken(const std::map<std::string, std::uint32_t>& out) const {
  std::uint32_t all = 0;
  for (const auto& [server, calls] : out) all += calls;
  if (all >= town_.config->limits.concurrent_calls) return;
  for (const auto& [id, stored] : stored_)
    for (const run::Step& step : stored.run.steps) {
      if (stored.run.settled()) break;
      if (step.status != run::StepStatus::waiting || step.wait.what != run::WaitFor::slot) continue;
      const std::uint32_t most = town_.slots(step.spec.server);
      const auto at = out.find(step.spec.server);
      HOLDFAST_REQUIRE(most > 0 && at != out.end() && at->second >= most, "awaited_slot_is_taken", portrait(stored.run));
    }
}

void Oracles::check_gates(const Leaving& leaving) {
  for (const auto& key : {std::pair{leaving.call.server, std::string{}}, std::pair{leaving.call.server, leaving.call.tool}}) {
    const auto at = circuits_.find(key);
    if (at == circuits_.end()) continue;
    const Breaker& circuit = at->second.row;
    if (at->second.since_turn < turn_ && circuit.state == BreakerState::open)
      HOLDFAST_REQUIRE(circuit.until && *circuit.until <= leaving.attempt.started_at, "open_circuit_sends_nothing",
              key.first + "/" + key.second + "\n" + leaving.about());
    if (circuit.state != BreakerState::half_open) continue;
    HOLDFAST_REQUIRE(++at->second.starts <= 1, "one_probe_at_a_time", key.first + "/" + key.second + "\n" + leaving.about());
    at->second.prober = leaving.run.id;
    at->second.step = leaving.op.step;
    at->second.n = leaving.attempt.n;
    on_probe(std::atoi(leaving.run.name.c_str()));
  }
  const auto gate = gates_.find(leaving.call.server);
  if (gate != gates_.end() && gate->second.since_turn < turn_)
    HOLDFAST_REQUIRE(leaving.now >= gate->second.until, "rate_gate_holds",
            "until " + std::to_string(gate->second.until.ms) + ", now " + std::to_string(leaving.now.ms) + "\n" +
                leaving.about());
}

void Oracles::probing(const tools::Call& call) {
  const auto at = circuits_.find({call.server, ""});
  if (at == circuits_.end() || at->second.row.state != BreakerState::half_open) return;
  HOLDFAST_REQUIRE(++at->second.starts <= 1, "one_probe_at_a_time", call.server);
  at->second.prober.clear();  // it has no row
}

bool Oracles::probe_out() const {
  for (const auto& [key, circuit] : circuits_)
    if (circuit.row.state == BreakerState::half_open && circuit.starts > 0) return true;
  return false;
}

}  // namespace holdfast::sim
