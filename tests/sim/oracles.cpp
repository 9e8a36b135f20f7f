#include "sim/oracles.h"

#include <functional>

#include "run/machine_detail.h"

namespace holdfast::sim {

namespace {

void copy_head(run::Run& to, const run::Run& from) {
  to.status = from.status;
  to.reason = from.reason;
  to.detail = from.detail;
  to.wait = from.wait;
  to.started_at = from.started_at;
  to.finished_at = from.finished_at;
  to.deadline = from.deadline;
  to.retry_spent = from.retry_spent;
  to.warnings = from.warnings;
  to.result = from.result;
  to.cancel_requested = from.cancel_requested;
  to.cancel_reason = from.cancel_reason;
  to.finish_digest = from.finish_digest;
  to.last_event = from.last_event;
}

void append(std::string& out, const std::optional<Instant>& at) {
  out += at ? std::to_string(at->ms) : "-";
  out += ' ';
}

template <class E>
void append_word(std::string& out, E value) {
  out += run::word(value);
  out += ' ';
}

void portrait(std::string& out, const run::Step& step) {
  out += "\n  " + step.spec.id + ' ' + step.target + ' ';
  append_word(out, step.status);
  out += std::string(holdfast::word(step.reason)) + " [" + step.detail + "] " + std::to_string(step.attempts) + '/' +
         std::to_string(step.rows) + " wait ";
  append_word(out, step.wait.what);
  append(out, step.wait.until);
  out += step.result + (step.degraded ? " degraded" : "") + " doubt " + std::string(holdfast::word(step.doubt)) +
         (step.hinted_wait_used ? " hinted" : "") + (step.session_repaired ? " repaired" : "") +
         (step.ordered ? " ordered" : "") + " once[" + step.once_rows + "] checks " +
         std::to_string(step.checks) + ' ';
  append(out, step.next_check);
  out += "crashes " + std::to_string(step.crashes);
  if (!step.write) return;
  const run::Write& write = *step.write;
  out += " write ";
  append_word(out, write.state);
  out += write.key + ' ' + write.request.head + ' ' + write.request.body + (write.open ? " open " : " ") +
         (write.keyed ? "keyed " : "");
  append(out, write.first_sent_at);
  append(out, write.last_sent_at);
  append(out, write.unknown_since);
  append_word(out, write.resolution);
  out += write.resolved_by;
}

std::size_t hash_of(const tools::Call& call) {
  const std::hash<std::string> hash;
  return hash(call.request.head) * 31 + hash(call.request.body) * 7 + hash(call.key);
}

bool ended(run::StepStatus status) {
  return run::terminal(status);
}

}  // namespace

std::string portrait(const run::Run& run) {
  std::string out = run.id + ' ' + run.name + ' ';
  append_word(out, run.status);
  out += std::string(holdfast::word(run.reason)) + " [" + run.detail + "] spent " + std::to_string(run.retry_spent) +
         '/' + std::to_string(run.retry_limit) + " wait ";
  append_word(out, run.wait.what);
  append(out, run.wait.until);
  append(out, run.started_at);
  append(out, run.finished_at);
  out += "deadline " + std::to_string(run.deadline.ms) + ' ' + run.result +
         (run.cancel_requested ? " cancel " + run.cancel_reason : "") + " events " +
         std::to_string(run.last_event);
  for (const run::Step& step : run.steps) portrait(out, step);
  return out;
}

std::string portrait(const run::Attempt& a) {
  std::string out = "attempt " + std::to_string(a.step) + '/' + std::to_string(a.n) + ' ' +
                    std::string(word(a.kind)) + ' ' + std::string(word(a.delivery)) + ' ' +
                    std::string(word(a.phase)) + ' ' + std::string(word(a.verdict)) + ' ' +
                    std::string(word(a.klass)) + ' ' + a.row + (a.counted ? " counted" : "") +
                    (a.late ? " late" : "") + " status " + std::to_string(a.http_status) + ' ' +
                    std::to_string(a.started_at.ms) + '+' + std::to_string(a.deadline.count()) + ' ';
  append(out, a.finished_at);
  return out;
}

// --- the ledger's border ---

void Oracles::deciding(const ledger::Batch& batch) {
  for (const run::Run* run : batch.new_runs) {
    check_transition(nullptr, *run);
    for (const run::Step& step : run->steps) {
      const std::string& other = op_of(step)->run_id;
      HOLDFAST_REQUIRE(other == run->id || !find(other), "one_run_per_submission", other + " and " + run->id);
    }
  }
  std::set<const run::Run*> seen;
  const auto look = [&](const run::Run* run) {
    if (!seen.insert(run).second) return;
    const Stored* before = find(run->id);
    if (before) check_transition(before, *run);
  };
  for (const run::Run* run : batch.runs) look(run);
  for (const auto& [run, step] : batch.steps) look(run);
  for (const auto& [run, step] : batch.new_steps) look(run);
  for (const auto& [run, attempt] : batch.attempts) check_attempt(*run, attempt);
  std::map<const run::Run*, std::int64_t> newest;
  for (const auto& [run, event] : batch.events) {
    auto [at, first] = newest.try_emplace(run, 0);
    if (first)
      if (const Stored* before = find(run->id)) at->second = static_cast<std::int64_t>(before->events.size());
    HOLDFAST_REQUIRE(event.seq == at->second + 1, "events_gap_free",
            run->id + ": event " + std::to_string(event.seq) + " follows " + std::to_string(at->second));
    at->second = event.seq;
  }
}

void Oracles::check_transition(const Stored* before, const run::Run& after) {
  HOLDFAST_REQUIRE(after.retry_spent <= after.retry_limit, "budget_holds",
          "more is spent than there was\n" + portrait(after));
  if (before) {
    const run::Run& was = before->run;
    HOLDFAST_REQUIRE(!was.settled() || (was.status == after.status && was.reason == after.reason &&
                               was.result == after.result && was.deadline == after.deadline),
            "settled_is_final", portrait(was) + "\nbecomes " + portrait(after));
    HOLDFAST_REQUIRE(after.retry_spent >= was.retry_spent, "budget_holds", "the budget spent shrinks\n" + portrait(after));
    HOLDFAST_REQUIRE(!was.cancel_requested || after.cancel_requested, "cancel_is_kept", portrait(after));
    HOLDFAST_REQUIRE(after.steps.size() >= was.steps.size(), "no_step_lost", portrait(after));
    if (after.deadline != was.deadline) {
      bool extended = false;
      for (const run::Step& step : after.steps) extended |= op_of(step)->extended;
      HOLDFAST_REQUIRE(extended, "deadline_is_kept", portrait(was) + "\nbecomes " + portrait(after));
    }
  }
  for (std::uint32_t i = 0; i < after.steps.size(); ++i)
    check_step(after, i, before && i < before->run.steps.size() ? &before->run.steps[i] : nullptr);
  if (after.status == run::RunStatus::succeeded && after.mode == run::Mode::plan)
    for (const run::Step& step : after.steps)
      HOLDFAST_REQUIRE(ended(step.status) && !run::stops_run(step), "success_needs_every_step", portrait(after));
  if (after.settled())
    for (const run::Step& step : after.steps)
      HOLDFAST_REQUIRE(ended(step.status) && !(step.write && step.write->open), "no_open_write_in_a_settled_run",
              portrait(after));
}

void Oracles::check_step(const run::Run& run, std::uint32_t index, const run::Step* before) {
  const run::Step& step = run.steps[index];
  Op* op = op_of(step);
  HOLDFAST_REQUIRE(op != nullptr, "no_run_invented", "nobody submitted this step\n" + portrait(run));
  if (before) {
    HOLDFAST_REQUIRE(!ended(before->status) || before->status == step.status, "step_end_is_final",
            "step " + step.spec.id + " was " + std::string(run::word(before->status)) + "\n" + portrait(run));
    HOLDFAST_REQUIRE(step.attempts >= before->attempts && step.rows >= before->rows, "attempts_never_shrink",
            portrait(run));
    if (before->write && !before->write->request.head.empty() && step.write)
      HOLDFAST_REQUIRE(before->write->key == step.write->key &&
                  before->write->request.body == step.write->request.body &&
                  before->write->request.head == step.write->request.head,
              "request_is_frozen", portrait(run));
  }
  HOLDFAST_REQUIRE(step.attempts <= step.max_attempts, "attempt_limit_holds", portrait(run));
  if (!op->tool->is_write()) return;
  const auto about = [&] { return op->name + "\n" + portrait(run); };
  const bool told_otherwise = op->said_landed || op->wrong_orders > 0;
  const bool news = !before || before->status != step.status;
  const run::WriteState state = step.write ? step.write->state : run::WriteState::intended;
  if (news && step.status == run::StepStatus::succeeded)
    HOLDFAST_REQUIRE(op->effects > 0 || op->said_landed, "success_needs_an_effect", about());
  if (state == run::WriteState::landed)
    HOLDFAST_REQUIRE(op->effects > 0 || op->said_landed, "landed_needs_an_effect", about());
  if (news && ended(step.status)) {
    if (step.reason == Reason::abandoned)
      HOLDFAST_REQUIRE(op->said_abandon, "abandon_needs_a_person", about());
    else if (state != run::WriteState::landed && step.status != run::StepStatus::succeeded)
      HOLDFAST_REQUIRE((op->effects == 0 || told_otherwise) && state != run::WriteState::unknown &&
                  state != run::WriteState::dispatched,
              "failure_needs_proof", about());
  }
  if (step.write && step.write->open && !(before && before->write && before->write->open)) {
    // Of a repeat beside the count (a session repaired, an operator's order) only the doubt itself tells.
    const bool lost_in_a_crash = step.crashes > 0 || (step.doubt == Reason::crashed && life_ > 1);
    bool cause = lost_in_a_crash;
    for (std::size_t i = op->cleared; i < op->sends.size(); ++i)
      cause |= op->sends[i].given != Shown::unsent && op->sends[i].given != Shown::refused;
    HOLDFAST_REQUIRE(cause, "doubt_needs_a_cause", about());
  }
}

/// A row once finished says what it said; what it says of delivery is no bolder than the truth.
void Oracles::check_attempt(const run::Run& run, const run::Attempt& attempt) {
  const Stored* before = find(run.id);
  const auto about = [&] { return portrait(attempt) + "\n" + portrait(run); };
  if (before) {
    const auto at = before->attempts.find({attempt.step, attempt.n});
    if (at == before->attempts.end() && attempt.delivery == Delivery::in_flight && attempt.kind != AttemptKind::check)
      HOLDFAST_REQUIRE(!before->run.cancel_requested, "cancelled_run_sends_nothing", about());
    if (at != before->attempts.end() && at->second.delivery != Delivery::in_flight)
      HOLDFAST_REQUIRE(at->second.verdict == attempt.verdict && at->second.delivery == attempt.delivery,
              "attempt_is_final", portrait(at->second) + "\nbecomes " + about());
  }
  if (attempt.kind != AttemptKind::call || attempt.delivery == Delivery::in_flight) return;
  Op* op = op_of(run.steps[attempt.step]);
  if (!op->tool->is_write() || attempt.klass == AttemptClass::crashed) return;
  for (const Send& send : op->sends) {
    if (send.n != attempt.n) continue;
    const bool claims_nothing = attempt.verdict == Verdict::not_sent || attempt.verdict == Verdict::refused;
    HOLDFAST_REQUIRE(!claims_nothing || send.given == Shown::unsent || send.given == Shown::refused,
            "verdict_no_bolder_than_the_truth", about());
    const bool claims_done = attempt.verdict == Verdict::ok || attempt.verdict == Verdict::landed;
    HOLDFAST_REQUIRE(!claims_done || send.given == Shown::done, "verdict_no_bolder_than_the_truth", about());
    HOLDFAST_REQUIRE(attempt.verdict != Verdict::not_sent || !send.acted, "not_sent_had_no_effect", about());
    return;
  }
}

void Oracles::apply(const ledger::Batch& batch) {
  const auto name = [&](const run::Run& run, std::uint32_t step) {
    Op* op = op_of(run.steps[step]);
    op->run_id = run.id;
    op->step = step;
  };
  for (const run::Run* run : batch.new_runs) {
    stored_[run->id].run = *run;
    touched_.insert(run->id);
    for (std::uint32_t i = 0; i < run->steps.size(); ++i) name(*run, i);
  }
  const auto of = [&](const run::Run* run) -> Stored& {
    touched_.insert(run->id);
    return stored_.at(run->id);
  };
  for (const auto& [run, step] : batch.new_steps) {
    of(run).run.steps.push_back(run->steps[step]);
    name(*run, step);
  }
  for (const run::Run* run : batch.runs) copy_head(of(run).run, *run);
  for (const auto& [run, step] : batch.steps)
    if (step < of(run).run.steps.size()) of(run).run.steps[step] = run->steps[step];
  for (const auto& [run, attempt] : batch.attempts)
    of(run).attempts.insert_or_assign({attempt.step, attempt.n}, attempt);
  for (const auto& [run, event] : batch.events) {
    of(run).events.push_back(event);
    of(run).run.last_event = event.seq;
  }
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

void Oracles::committed(const ledger::Batch& batch) {
  ++world_.tally.commits;
  for (const auto& [run, attempt] : batch.attempts) record(*op_of(run->steps[attempt.step]), attempt);
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
  std::set<const run::Run*> seen;
  for (const auto& [run, step] : batch.steps)
    if (seen.insert(run).second) note_goals(find(run->id), *run);
  apply(batch);
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
      const std::uint32_t most = town_.config->servers.at(step.spec.server).max_in_flight;
      const auto at = out.find(step.spec.server);
      HOLDFAST_REQUIRE(most > 0 && at != out.end() && at->second >= most, "awaited_slot_is_taken", portrait(stored.run));
    }
}

void Oracles::perhaps_committed(const ledger::Batch& batch) {
  // Only what it touches can differ.
  std::map<std::string, Stored> whole = stored_;
  std::set<std::string> touched = touched_;
  apply(batch);
  perhaps_ = std::move(stored_);
  perhaps_recorded_.clear();
  for (const auto& [run, attempt] : batch.attempts)
    perhaps_recorded_.emplace_back(op_of(run->steps[attempt.step]), attempt);
  stored_ = std::move(whole);
  in_doubt_ = true;
}

void Oracles::recovered(ledger::Reader& reader) {
  if (in_doubt_) {
    // All of the commit in doubt, or nothing of it: the first run that differs decides.
    in_doubt_ = false;
    bool whole = false;
    for (const auto& [id, after] : perhaps_) {
      const Stored* before = find(id);
      if (before && portrait(before->run) == portrait(after.run) && before->events.size() == after.events.size() &&
          before->attempts.size() == after.attempts.size())
        continue;
      whole = same(reader, id, after);
      break;
    }
    world_.tally.reached(whole ? Goal::cut_commit_survived : Goal::cut_commit_gone);
    if (whole) {
      stored_ = std::move(perhaps_);
      for (const auto& [op, attempt] : perhaps_recorded_) record(*op, attempt);
    } else {
      for (const auto& [id, after] : perhaps_)
        if (!find(id)) {
          auto there = reader.run(id);
          HOLDFAST_REQUIRE(there.has_value() && !there->has_value(), "commit_is_all_or_nothing", id);
        }
    }
    perhaps_.clear();
  }
  if (auto rows = reader.breakers()) {
    for (Breaker& row : *rows) {
      Circuit& circuit = circuits_[{row.server, row.tool}];
      if (circuit.row.generation != row.generation) circuit.starts = 0;
      circuit.row = std::move(row);
    }
  }
  for (const auto& [id, stored] : stored_)
    if (!stored.run.settled() || touched_.contains(id))
      compare(reader, id, stored, "after a start");
  touched_.clear();
}

bool Oracles::same(ledger::Reader& reader, const std::string& id, const Stored& expected) const {
  auto there = reader.run(id);
  return there && *there && portrait(**there) == portrait(expected.run);
}

void Oracles::compare(ledger::Reader& reader, const std::string& id, const Stored& expected,
                      const std::string& place) const {
  auto there = reader.run(id);
  HOLDFAST_REQUIRE(there.has_value(), "ledger_can_be_read", there ? "" : there.error().message);
  HOLDFAST_REQUIRE(there->has_value(), "no_run_lost", id + " is gone " + place + "\n" + portrait(expected.run));
  HOLDFAST_REQUIRE(portrait(**there) == portrait(expected.run), "stored_is_what_was_committed",
          place + "\nexpected " + portrait(expected.run) + "\nfound    " + portrait(**there));
  auto attempts = reader.attempts((*there)->seq, 0, 10'000);
  HOLDFAST_REQUIRE(attempts.has_value() && attempts->size() == expected.attempts.size(), "stored_is_what_was_committed",
          id + ": attempts " + place);
  for (const run::Attempt& attempt : *attempts) {
    const auto at = expected.attempts.find({attempt.step, attempt.n});
    HOLDFAST_REQUIRE(at != expected.attempts.end() && portrait(at->second) == portrait(attempt),
            "stored_is_what_was_committed",
            place + "\nfound " + portrait(attempt) +
                (at == expected.attempts.end() ? "" : "\nexpected " + portrait(at->second)));
  }
  auto events = reader.events((*there)->seq, 0, 10'000);
  HOLDFAST_REQUIRE(events.has_value() && events->size() == expected.events.size(), "events_gap_free",
          id + ": events are missing " + place);
  for (std::size_t i = 0; i < events->size(); ++i)
    HOLDFAST_REQUIRE((*events)[i].seq == static_cast<std::int64_t>(i) + 1 &&
                (*events)[i].type == expected.events[i].type && (*events)[i].data == expected.events[i].data,
            "events_gap_free", id + ": event " + std::to_string(i + 1) + " differs " + place);
}

// --- the transport's border ---

void Oracles::starting(const tools::Call& call, Op& op, Instant engine_now) {
  const auto about = [&] {
    const Stored* stored = find(op.run_id);
    return op.name + " to " + call.server + "/" + call.tool + " (" + std::string(word(call.kind)) + ")\n" +
           (stored ? portrait(stored->run) : std::string("not stored"));
  };
  HOLDFAST_REQUIRE(!op.run_id.empty() && find(op.run_id), "send_after_commit", about());
  const Stored& stored = *find(op.run_id);
  const run::Run& run = stored.run;
  // The newest row of this step, made for this very call.
  auto row = stored.attempts.lower_bound({op.step + 1, 0});
  HOLDFAST_REQUIRE(row != stored.attempts.begin(), "send_after_commit", "no row\n" + about());
  --row;
  HOLDFAST_REQUIRE(row->first.first == op.step && row->second.delivery == Delivery::in_flight &&
              row->second.kind == call.kind,
          "send_after_commit", "no row in flight\n" + about());
  const run::Attempt& attempt = row->second;
  const std::uint32_t last = op.sends.empty() ? 0 : op.sends.back().n;
  const ToolPolicy& policy = town_.config->servers.at(call.server).tools.at(call.tool).policy;
  HOLDFAST_REQUIRE(call.deadline <= attempt.started_at + policy.deadline, "call_deadline_holds", about());
  for (const auto& key : {std::pair{call.server, std::string{}}, std::pair{call.server, call.tool}}) {
    const auto at = circuits_.find(key);
    if (at == circuits_.end()) continue;
    const Breaker& circuit = at->second.row;
    if (at->second.since_turn < turn_ && circuit.state == BreakerState::open)
      HOLDFAST_REQUIRE(circuit.until && *circuit.until <= attempt.started_at, "open_circuit_sends_nothing",
              key.first + "/" + key.second + "\n" + about());
    if (circuit.state != BreakerState::half_open) continue;
    HOLDFAST_REQUIRE(++at->second.starts <= 1, "one_probe_at_a_time", key.first + "/" + key.second + "\n" + about());
    at->second.prober = run.id;
    at->second.step = op.step;
    at->second.n = attempt.n;
    on_probe(std::atoi(run.name.c_str()));
  }
  const auto gate = gates_.find(call.server);
  if (gate != gates_.end() && gate->second.since_turn < turn_)
    HOLDFAST_REQUIRE(engine_now >= gate->second.until, "rate_gate_holds",
            "until " + std::to_string(gate->second.until.ms) + ", now " + std::to_string(engine_now.ms) + "\n" +
                about());
  if (call.kind != AttemptKind::call) {
    ++op.asked[call.kind == AttemptKind::check ? 0 : 1];
    if (call.kind == AttemptKind::fallback)
      HOLDFAST_REQUIRE(call.deadline <= run.deadline, "run_deadline_holds", about());
    return;
  }
  HOLDFAST_REQUIRE(attempt.n > last, "hits_within_rows", about());
  HOLDFAST_REQUIRE(call.deadline <= run.deadline, "run_deadline_holds", about());
  const run::StepSpec& spec = run.steps[op.step].spec;
  HOLDFAST_REQUIRE(!spec.deadline || call.deadline <= attempt.started_at + *spec.deadline, "call_deadline_holds", about());
  for (const std::uint32_t before : spec.after)
    HOLDFAST_REQUIRE(ended(run.steps[before].status), "step_waits_for_its_dependencies", about());
  const std::uint32_t extra = op.orders + op.repairs;
  HOLDFAST_REQUIRE(op.sends.size() + 1 <= policy.max_attempts + extra, "attempt_limit_holds",
          std::to_string(op.sends.size() + 1) + " sends\n" + about());
  std::size_t repeats = 0, allowed = run.retry_limit;
  for (const run::Step& step : run.steps) {
    const Op* other = op_of(step);
    const std::size_t sends = other->sends.size() + (other == &op ? 1 : 0);
    repeats += sends > 0 ? sends - 1 : 0;
    allowed += other->orders + other->repairs;
  }
  HOLDFAST_REQUIRE(repeats <= allowed, "budget_holds", std::to_string(repeats) + " repeats\n" + about());
  if (!op.sends.empty() && run.retry_spent > 0) {
    spent_in_life_.try_emplace(run.id, life_);
  }
  for (const Send& send : op.sends)
    if (send.not_before && send.recorded && !send.crashed && op.orders == 0 && op.cleared == 0)
      HOLDFAST_REQUIRE(engine_now >= *send.not_before, "retry_after_is_waited", about());
  if (!op.tool->is_write()) return;

  const run::Step& step = run.steps[op.step];
  HOLDFAST_REQUIRE(!(step.write && step.write->open), "unknown_is_never_retried", about());
  const std::uint64_t request = hash_of(call);
  HOLDFAST_REQUIRE(op.request == 0 || (op.request == request && op.key == call.key), "request_is_frozen", about());
  op.request = request;
  op.key = call.key;
  if (op.tool->is_keyed()) {
    HOLDFAST_REQUIRE(!call.key.empty(), "key_is_sent", about());
    if (op.absent_seen) op.absent = op.sends.size();
    for (std::size_t i = op.absent; i < op.sends.size() && op.orders == 0; ++i)
      HOLDFAST_REQUIRE(op.sends[i].harmless() || attempt.started_at - op.sends[i].begun <= policy.key->retention,
              "expired_key_is_not_used", about());
  }
  bool harmless = true;
  for (std::size_t i = op.cleared; i < op.sends.size(); ++i) harmless &= op.sends[i].harmless();
  if (!harmless && !op.tool->is_keyed()) {
    const bool ordered = op.orders > 0;
    const bool absent = op.tool->is_checkable() && op.absent_seen;
    HOLDFAST_REQUIRE(ordered || absent, "write_repeated_without_proof", about());
    op.cleared = op.sends.size();
    if (absent) world_.tally.reached(Goal::check_absent);
  }
  op.absent_seen = false;
}

void Oracles::probing(const tools::Call& call) {
  const auto at = circuits_.find({call.server, ""});
  if (at == circuits_.end() || at->second.row.state != BreakerState::half_open) return;
  HOLDFAST_REQUIRE(++at->second.starts <= 1, "one_probe_at_a_time", call.server);
  at->second.prober.clear();  // it has no row
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

bool Oracles::probe_out() const {
  for (const auto& [key, circuit] : circuits_)
    if (circuit.row.state == BreakerState::half_open && circuit.starts > 0) return true;
  return false;
}

// --- goals ---

void Oracles::note_goals(const Stored* before, const run::Run& run) {
  Tally& tally = world_.tally;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const run::Step& step = run.steps[i];
    const run::Step* was = before && i < before->run.steps.size() ? &before->run.steps[i] : nullptr;
    if (was && was->status == step.status && was->wait.what == step.wait.what &&
        (was->write.has_value() == step.write.has_value()) &&
        (!step.write || was->write->resolution == step.write->resolution))
      continue;
    if (step.wait.what == run::WaitFor::slot) tally.reached(Goal::slot_wait);
    if (step.degraded) tally.reached(Goal::fallback);
    switch (step.reason) {
      case Reason::retry_budget_exhausted:
        if (spent_in_life_.contains(run.id) && spent_in_life_.at(run.id) != life_)
          tally.reached(Goal::budget_across_restart);
        break;
      case Reason::attempts_exhausted:
        if (step.crashes > 0) tally.reached(Goal::attempts_across_restart);
        break;
      case Reason::crash_loop:
        tally.reached(Goal::crash_loop);
        break;
      case Reason::key_expired:
        tally.reached(Goal::key_expired);
        break;
      case Reason::deadline_in_flight:
        tally.reached(Goal::deadline_in_flight);
        break;
      case Reason::bad_reference:
        tally.reached(Goal::bad_reference);
        break;
      case Reason::result_lost:
        tally.reached(Goal::landed_result_lost);
        break;
      default:
        break;
    }
    if (step.write && step.write->resolution == run::Resolution::evidence)
      tally.reached(step.write->resolution_note == "check" ? Goal::check_found : Goal::late_answer_settles);
  }
}

// --- the end ---

void Oracles::check_events(const std::string& id, const Stored& stored) const {
  std::map<std::string, std::string> settled;
  std::string run_end;
  for (const run::Event& event : stored.events) {
    HOLDFAST_REQUIRE(run_end.empty() || event.type == "attempt.late_answer", "settled_is_final",
            id + ": " + std::string(event.type) + " after run.settled");
    if (event.type == "step.settled") settled[event.step] = event.data;
    if (event.type == "run.settled") run_end = event.data;
  }
  for (const run::Step& step : stored.run.steps) {
    if (!ended(step.status)) continue;
    const std::string word = "\"status\":\"" + std::string(run::word(step.status)) + "\"";
    HOLDFAST_REQUIRE(settled[step.spec.id].find(word) != std::string::npos, "events_replay_to_the_state",
            id + " step " + step.spec.id + ": " + settled[step.spec.id]);
  }
  const std::string word = "\"status\":\"" + std::string(run::word(stored.run.status)) + "\"";
  HOLDFAST_REQUIRE(stored.run.settled() == !run_end.empty() &&
              (run_end.empty() || run_end.find(word) != std::string::npos),
          "events_replay_to_the_state", id + ": " + run_end + "\n" + portrait(stored.run));
}

void Oracles::check_end(const std::string& id, const Stored& stored) {
  const run::Run& run = stored.run;
  HOLDFAST_REQUIRE(run.settled() || run.status == run::RunStatus::unknown, "every_run_comes_to_rest", portrait(run));
  check_events(id, stored);
  for (const run::Step& step : run.steps) {
    Op* op = op_of(step);
    const auto about = [&] { return op->name + "\n" + portrait(run); };
    if (step.status == run::StepStatus::unknown) {
      bool evidence = false;
      for (const auto& [at, attempt] : stored.attempts)
        evidence |= &run.steps[at.first] == &step && (attempt.verdict == Verdict::ambiguous);
      HOLDFAST_REQUIRE(evidence && step.write && step.write->open, "unknown_has_evidence", about());
    }
    if (!op->tool->is_write()) continue;
    const bool told_otherwise = op->said_landed || op->said_abandon || op->wrong_orders > 0;
    if (ended(step.status) && (!step.write || step.write->state == run::WriteState::not_landed))
      HOLDFAST_REQUIRE(op->effects == 0 || told_otherwise, "failure_needs_proof", "at the end: " + about());
    if (step.write && step.write->state == run::WriteState::landed)
      HOLDFAST_REQUIRE(op->effects >= 1 || op->said_landed, "landed_needs_an_effect", "at the end: " + about());
  }
}

void Oracles::at_rest(const std::vector<Submission>& submissions, ledger::Reader& reader) {
  for (const auto& [id, stored] : stored_) check_end(id, stored);
  // Every row of every tenth run, and of every run in every fourth history.
  const std::uint64_t draw = world_.hash() % 40;
  std::uint64_t n = 0;
  for (const auto& [id, stored] : stored_)
    if (draw < 10 || ++n % 10 == draw % 10) compare(reader, id, stored, "at the end");
  std::map<std::string, int> runs_by_key;
  std::map<const Submission*, int> runs_of;
  for (const auto& [id, stored] : stored_) {
    if (!stored.run.submit_key.empty())
      HOLDFAST_REQUIRE(++runs_by_key[stored.run.submit_key] == 1, "one_run_per_key", stored.run.submit_key);
    const int number = std::atoi(stored.run.name.c_str());
    HOLDFAST_REQUIRE(number >= 0 && static_cast<std::size_t>(number) < submissions.size() && submissions[static_cast<std::size_t>(number)].asked,
            "no_run_invented", id);
    const Submission& owner = submissions[static_cast<std::size_t>(number)];
    HOLDFAST_REQUIRE(++runs_of[&owner] == 1, "one_run_per_submission", id);
    HOLDFAST_REQUIRE(!owner.refused || !owner.run_id.empty() || owner.lost_answer, "refused_runs_are_not_stored", id);
  }
  for (const Submission& submission : submissions) {
    if (submission.run_id.empty()) continue;
    const Stored* stored = find(submission.run_id);
    HOLDFAST_REQUIRE(stored != nullptr, "no_run_lost", submission.run_id);
    HOLDFAST_REQUIRE(!submission.cancel_acked || stored->run.cancel_requested || stored->run.settled(), "cancel_is_kept",
            portrait(stored->run));
    HOLDFAST_REQUIRE(stored->run.steps.size() >= submission.steps_acked, "no_step_lost", portrait(stored->run));
    HOLDFAST_REQUIRE(!submission.finish_acked || stored->run.settled(), "finish_is_kept", portrait(stored->run));
    HOLDFAST_REQUIRE(submission.settled_as.empty() || submission.settled_as == run::word(stored->run.status),
            "settled_is_final", portrait(stored->run));
  }
}

}  // namespace holdfast::sim
