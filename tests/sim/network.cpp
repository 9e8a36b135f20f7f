#include "sim/network.h"

namespace holdfast::sim {

namespace {

FaultKind fault_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::never_sent:
      return FaultKind::never_sent;
    case Outcome::cut_while_sending:
      return FaultKind::cut_while_sending;
    case Outcome::lost_before_effect:
      return FaultKind::lost_before_effect;
    case Outcome::lost_after_effect:
      return FaultKind::lost_after_effect;
    case Outcome::truncated:
      return FaultKind::truncated;
    case Outcome::malformed:
      return FaultKind::malformed;
    case Outcome::refused:
      return FaultKind::refused;
    case Outcome::limited_with_time:
      return FaultKind::limited_with_time;
    case Outcome::limited_without_time:
      return FaultKind::limited_without_time;
    case Outcome::server_error:
      return FaultKind::server_error;
    case Outcome::redirect:
      return FaultKind::redirect;
    case Outcome::tool_error:
      return FaultKind::tool_error;
    case Outcome::rpc_error:
      return FaultKind::rpc_error;
    default:
      return FaultKind::slow;
  }
}

/// How long a request may wander after its caller has gone: a check's `settle` is set with this in mind.
std::int64_t wandering(const Tool& tool) {
  return tool.is_checkable() ? (tool.settle - tool.lag).count() / 2 : 5'000;
}

}  // namespace

Transport::Transport(World& world, Truth& truth, const Town& town, Oracles& oracles, Network& network,
                     const LifeClock& clock, Hooks hooks)
    : world_(world),
      truth_(truth),
      town_(town),
      oracles_(oracles),
      network_(network),
      clock_(clock),
      hooks_(std::move(hooks)) {}

Outcome Transport::draw_outcome(const Tool& tool) {
  if (network_.healed) return Outcome::good;
  Dice& dice = network_.dice;
  Instant& sick = network_.sick_until[tool.server];
  if (dice.chance(network_.swarm.sick)) sick = world_.now() + dice.span(500, 20'000);
  if (sick > world_.now() && dice.chance(700)) {
    constexpr std::array kIll{Outcome::never_sent, Outcome::server_error, Outcome::lost_after_effect,
                              Outcome::slow, Outcome::limited_with_time};
    return dice.pick(kIll);
  }
  std::int64_t sum = 0;
  for (int i = 0; i < kOutcomes; ++i) sum += network_.swarm.outcome[i];
  std::int64_t draw = dice.between(0, sum - 1);
  for (int i = 0; i < kOutcomes; ++i) {
    draw -= network_.swarm.outcome[i];
    if (draw >= 0) continue;
    const auto outcome = static_cast<Outcome>(i);
    const bool only_mcp = outcome == Outcome::tool_error || outcome == Outcome::rpc_error;
    if (only_mcp && !tool.mcp) return Outcome::server_error;
    if (outcome == Outcome::redirect && !tool.is_write()) return Outcome::refused;
    return outcome;
  }
  return Outcome::good;
}

void Transport::plan(Flight& flight) {
  Dice& dice = network_.dice;
  flight.script = write_script(dice, draw_outcome(*flight.tool), *flight.tool, *flight.policy);
  const int most = network_.healed ? 5 : network_.swarm.latency_ms;
  const Duration connect = dice.span(1, most), travel = dice.span(1, most), back = dice.span(0, most);
  flight.sent = world_.now() + connect;
  flight.arrives = flight.sent + travel;
  flight.answered = flight.arrives + back;
  const Instant deadline = clock_.true_time(flight.call.deadline);
  flight.gives_up = std::max(deadline, world_.now());
  if (deadline <= world_.now()) {  // it waited for the ledger until it was too late
    flight.script.outcome = Outcome::never_sent;
    flight.script.leaves = flight.script.acts = false;
    flight.script.silent = true;
  }
  if (flight.script.outcome == Outcome::slow) {
    const Duration late{1 + dice.between(0, 2 * std::max<std::int64_t>(flight.policy->linger.count(), 500))};
    (dice.chance(500) ? flight.arrives : flight.answered) = flight.gives_up + late;
    flight.answered = std::max(flight.answered, flight.arrives + back);
  }
}

void Transport::fill(Flight& flight, tools::Call call, Op* op) {
  static const ToolPolicy kDoor;
  flight.op = op;
  if (call.tool.empty()) {
    Tool& door = network_.doors[call.server];
    door.server = call.server;
    door.trait = Trait::read;
    door.mcp = true;
    flight.tool = &door;
    flight.policy = &kDoor;
  } else {
    flight.tool = town_.find(call.server, call.tool);
    flight.policy = town_.rules(call.server, call.tool);
  }
  flight.call = std::move(call);
  plan(flight);
}

void Transport::start(tools::Call call) {
  Op* op = nullptr;
  if (call.kind != AttemptKind::probe) {
    op = truth_.find(Truth::name_in(call.request.body));
    HOLDFAST_REQUIRE(op != nullptr, "request_is_as_submitted", "a call that nobody asked for: " + call.request.body);
  }
  hooks_.before_start(call, op);
  if (op)
    oracles_.starting(call, *op, clock_.now());
  else
    oracles_.probing(call);
  ++world_.tally.calls;
  auto flight = std::make_shared<Flight>();
  fill(*flight, std::move(call), op);
  Flight& f = *flight;
  if (f.script.outcome != Outcome::good) world_.tally.fault(fault_of(f.script.outcome));
  if (is_call(f)) {
    f.send = op->sends.size();
    Send& send = op->sends.emplace_back();
    const Stored* stored = oracles_.find(op->run_id);
    const run::Attempt& row = std::prev(stored->attempts.lower_bound({op->step + 1, 0}))->second;
    send.n = row.n;
    send.begun = row.started_at;
    send.travelling = f.script.leaves;
  }
  world_.note(0x5e4d ^ f.call.id, [&] {
    return "send  " + name_of(f) + " " + f.call.server + "/" + f.call.tool + " " +
           std::string(word(f.call.kind)) + " call " + std::to_string(f.call.id) + " outcome " +
           std::to_string(static_cast<int>(f.script.outcome)) + " answer in " +
           std::to_string((f.answered - world_.now()).count()) + " deadline in " +
           std::to_string((f.gives_up - world_.now()).count());
  });
  flights_.emplace(f.call.id, flight);
  const std::uint32_t most = town_.slots(f.call.server);
  HOLDFAST_REQUIRE(++out_[f.call.server] <= most || most == 0, "slots_hold", f.call.server);
  HOLDFAST_REQUIRE(flights_.size() <= town_.config->limits.concurrent_calls, "slots_hold", f.call.server);
  if (f.script.leaves) world_.at(f.arrives, [this, flight] { arrive(flight, 0); });
  if (!f.script.silent) world_.at(f.answered, [this, flight] { answer(flight); });
  world_.at(f.gives_up, [this, flight] { give_up(flight, Failure::timeout); });
}

void Transport::arrive(const Held& flight, std::uint64_t arrival) {
  Flight& f = *flight;
  if (f.arrived || f.arrival != arrival) return;
  f.arrived = true;
  if (!f.op) return;
  Op& op = *f.op;
  ++world_.tally.hits;
  if (f.tool->trait == Trait::check) {
    const bool seen = op.effects > 0 && op.first_effect && *op.first_effect + op.tool->lag <= world_.now();
    f.total = seen ? op.effects : 0;
    return;
  }
  if (!is_call(f)) return;
  ++op.hits;
  Send& send = op.sends[f.send];
  send.travelling = false;
  if (!f.script.acts) return;
  if (f.over) world_.tally.reached(Goal::delivered_after_give_up);
  Tool& tool = *f.tool;
  if (tool.is_keyed()) {
    const auto known = tool.keys.find(f.call.key);
    const Duration window = tool.retention + Duration{60'000};
    if (known != tool.keys.end() && world_.now() - known->second <= window) {
      f.recognised = true;
      world_.tally.reached(Goal::keyed_replay);
      world_.note(0x4ec0, [&] { return "tool  recognises the key of " + op.name; });
      return;
    }
    if (known == tool.keys.end() && op.effects > 0 && tool.trait == Trait::forgetful) {
      ++op.forgotten;
      world_.tally.reached(Goal::tool_forgot);
    }
    tool.keys[f.call.key] = world_.now();
  }
  if (tool.is_write()) {
    send.acted = true;
    ++op.effects;
    ++world_.tally.effects;
    if (!op.first_effect) op.first_effect = world_.now();
    if (op.effects > 1 && op.wrong_orders > 0) world_.tally.reached(Goal::operator_wrong);
    world_.note(0xeffec7, [&] { return "tool  acts for " + op.name + ", " + std::to_string(op.effects); });
  }
  oracles_.acted(op);
}

Evidence Transport::answer_of(Flight& flight) {
  if (flight.tool->trait == Trait::check)
    return good_answer(*flight.tool, "{\"total\":" + std::to_string(flight.total) + "}");
  return good_answer(*flight.tool, "{\"ok\":true,\"n\":" + std::to_string(flight.call.id) + "}");
}

void Transport::answer(const Held& flight) {
  Flight& f = *flight;
  if (!*alive_) return;
  if (f.over) {
    if (f.answered_late || f.call.linger.count() == 0 || world_.now() > f.gives_up + f.call.linger) return;
    // After we gave up: evidence, if somebody still listens.
    if (f.script.outcome != Outcome::good && f.script.outcome != Outcome::slow) return;
    if (!f.arrived) return;
    f.answered_late = true;
    world_.tally.fault(FaultKind::late_answer);
    const Stored* stored = f.op ? oracles_.find(f.op->run_id) : nullptr;
    if (stored && stored->run.settled()) world_.tally.reached(Goal::late_answer_after_end);
    world_.note(0x1a7e, [&] { return "late  " + name_of(f) + " call " + std::to_string(f.call.id); });
    sink_->late(f.call.id, answer_of(f));
    if (network_.dice.chance(50)) {
      world_.tally.fault(FaultKind::answer_twice);
      world_.tally.reached(Goal::answer_twice);
      sink_->late(f.call.id, answer_of(f));
    }
    hooks_.posted();
    return;
  }
  const bool good = f.script.outcome == Outcome::good || f.script.outcome == Outcome::slow;
  hand_over(flight, good ? answer_of(f) : f.script.evidence, good ? Shown::done : f.script.shown);
}

void Transport::hand_over(const Held& flight, Evidence evidence, Shown shown) {
  Flight& f = *flight;
  f.over = true;
  flights_.erase(f.call.id);
  --out_[f.call.server];
  evidence.detail = "outcome " + std::to_string(static_cast<int>(f.script.outcome));
  if (is_call(f)) {
    std::optional<Instant> not_before;
    if (!evidence.retry_after.empty() && evidence.http_status == 429)
      not_before = clock_.now() + Duration{std::stoll(evidence.retry_after) * 1'000};
    if (evidence.failure == Failure::session_lost) ++f.op->repairs;
    if (evidence.failure == Failure::cancelled && oracles_.is_draining() && !f.op->tool->is_write()) {
      ++f.op->repairs;
      world_.tally.reached(Goal::drain_gives_up_read);
    }
    oracles_.handed_over(*f.op, f.send, shown, not_before);
    if (shown == Shown::done) oracles_.answered(*f.op, f.call.request.body, evidence.result);
  } else if (f.call.kind == AttemptKind::check && shown == Shown::done) {
    f.op->absent_seen = f.total == 0;
  }
  world_.note(0xf1217 ^ f.call.id, [&] {
    return "answer " + name_of(f) + " call " + std::to_string(f.call.id) + " failure " +
           std::to_string(static_cast<int>(evidence.failure)) + " status " +
           std::to_string(evidence.http_status) + " phase " + std::string(word(evidence.phase)) + " shows " +
           std::to_string(static_cast<int>(shown)) + " " + evidence.result;
  });
  sink_->finished(f.call.id, evidence);
  if (network_.dice.chance(5)) {
    world_.tally.fault(FaultKind::answer_twice);
    world_.tally.reached(Goal::answer_twice);
    sink_->finished(f.call.id, std::move(evidence));
  }
  hooks_.posted();
}

/// By our own word: the deadline passed, or somebody cancelled.
void Transport::give_up(const Held& flight, Failure failure) {
  Flight& f = *flight;
  if (f.over || !*alive_) return;
  world_.tally.fault(failure == Failure::cancelled ? FaultKind::cancelled : FaultKind::timed_out);
  Evidence evidence;
  evidence.failure = failure;
  evidence.over_mcp = f.tool->mcp;
  Shown shown = Shown::doubtful;
  const bool left = f.script.leaves || f.script.outcome == Outcome::lost_before_effect;
  if (world_.now() < f.sent || !left) {
    evidence.phase = world_.now() < f.sent ? Phase::tcp : Phase::tx0;
    shown = Shown::unsent;
    ++f.arrival;  // nothing has left
    if (is_call(f)) f.op->sends[f.send].travelling = false;
  } else if (f.script.head_seen && f.arrived) {
    evidence.phase = Phase::rx_part_body;
    evidence.http_status = 200;
    shown = f.tool->mcp ? Shown::doubtful : Shown::done;
    evidence.bytes_sent = 100;
  } else {
    evidence.phase = Phase::tx_all;
    evidence.bytes_sent = 100;
  }
  if (failure == Failure::cancelled && is_call(f)) {
    if (shown == Shown::unsent) world_.tally.reached(Goal::cancel_before_send);
    if (f.op->sends[f.send].acted) world_.tally.reached(Goal::cancel_after_effect);
  }
  if (shown != Shown::unsent) after_give_up(flight);
  hand_over(flight, std::move(evidence), shown);
}

/// What is on its way arrives within the time that the tool's settings allow for, or never.
void Transport::after_give_up(const Held& flight) {
  Flight& f = *flight;
  if (f.arrived || !f.script.leaves) return;
  const std::uint64_t arrival = ++f.arrival;
  if (network_.dice.chance(400)) {
    if (is_call(f)) f.op->sends[f.send].travelling = false;
    return;
  }
  f.arrives = std::min(std::max(f.arrives, world_.now()),
                       world_.now() + network_.dice.span(0, std::max<std::int64_t>(wandering(*f.tool), 0)));
  world_.at(f.arrives, [this, flight, arrival] { arrive(flight, arrival); });
  if (!f.script.silent && f.answered < f.arrives) {
    f.answered = f.arrives + Duration{1};
    world_.at(f.answered, [this, flight] { answer(flight); });
  }
}

void Transport::cancel(tools::CallId id) {
  const auto at = flights_.find(id);
  if (at == flights_.end()) return;
  const Held flight = at->second;
  // "finished() follows at once", and never from inside.
  world_.at(world_.now(), [this, flight] { give_up(flight, Failure::cancelled); });
}

void Transport::die() {
  *alive_ = false;
  for (auto& [id, flight] : flights_) {
    Flight& f = *flight;
    if (f.over) continue;
    f.over = true;
    if (world_.now() < f.sent) {
      ++f.arrival;
      if (is_call(f)) f.op->sends[f.send].travelling = false;
    } else {
      after_give_up(flight);
    }
    if (is_call(f)) oracles_.call_lost_with_process(*f.op, f.send);
  }
  flights_.clear();
}

}  // namespace holdfast::sim
