// What the ledger must hold, and whether it does.
#include "sim/oracles.h"

#include "run/machine_detail.h"
#include "sim/portrait.h"

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

}  // namespace

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
  const run::Run* last = nullptr;
  Stored* stored = nullptr;
  const auto of = [&](const run::Run* run) -> Stored& {
    if (run != last) {
      touched_.insert(run->id);
      stored = &stored_.at(run->id);
      last = run;
    }
    return *stored;
  };
  for (const std::string& id : named_by(batch.prune)) {
    stored_.erase(id);
    touched_.erase(id);
  }
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

void Oracles::committed(const ledger::Batch& batch) {
  ++world_.tally.commits;
  for (const auto& [run, attempt] : batch.attempts) record(*op_of(run->steps[attempt.step]), attempt);
  note_circuits(batch);
  std::set<const run::Run*> seen;
  for (const auto& [run, step] : batch.steps)
    if (seen.insert(run).second) note_goals(find(run->id), *run);
  for (const std::string& id : named_by(batch.prune)) mark_pruned(id);
  apply(batch);
}

/// Only what it touches can differ: how that would be is kept apart.
void Oracles::perhaps_committed(const ledger::Batch& batch) {
  perhaps_pruned_ = named_by(batch.prune);
  std::map<std::string, Stored> whole;
  std::swap(stored_, whole);
  const auto fetch = [&](const run::Run* run) {
    if (const auto at = whole.find(run->id); at != whole.end()) stored_.insert(*at);
  };
  for (const run::Run* run : batch.runs) fetch(run);
  for (const auto& [run, step] : batch.new_steps) fetch(run);
  for (const auto& [run, step] : batch.steps) fetch(run);
  for (const auto& [run, attempt] : batch.attempts) fetch(run);
  for (const auto& [run, event] : batch.events) fetch(run);
  apply(batch);
  perhaps_ = std::exchange(stored_, std::move(whole));
  perhaps_recorded_.clear();
  for (const auto& [run, attempt] : batch.attempts)
    perhaps_recorded_.emplace_back(op_of(run->steps[attempt.step]), attempt);
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
    const auto is_there = [&](const std::string& id) {
      auto there = reader.run(id);
      HOLDFAST_REQUIRE(there.has_value(), "ledger_can_be_read", there ? "" : there.error().message);
      return there->has_value();
    };
    if (!perhaps_pruned_.empty()) whole = !is_there(perhaps_pruned_.front());
    for (const std::string& id : perhaps_pruned_) HOLDFAST_REQUIRE(is_there(id) != whole, "commit_is_all_or_nothing", id + ", pruned");
    world_.tally.reached(whole ? Goal::cut_commit_survived : Goal::cut_commit_gone);
    if (whole) {
      for (const std::string& id : perhaps_pruned_) {
        mark_pruned(id);
        stored_.erase(id);
      }
      for (auto& [id, after] : perhaps_) {
        // Nobody was told the numbers that this commit gave to its new runs.
        if (auto there = reader.run(id); there && *there) after.run.seq = (**there).seq;
        stored_.insert_or_assign(id, std::move(after));
      }
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
  circuits_are(reader);
  for (const auto& [id, stored] : stored_)
    if (!stored.run.settled() || touched_.contains(id))
      compare(reader, id, stored, "after a start");
  touched_.clear();
}

std::uint64_t Oracles::survive(ledger::Reader& reader, const std::string& from, std::uint64_t most) const {
  std::uint64_t seen = 0;
  for (auto at = stored_.lower_bound(from); at != stored_.end() && seen < most; ++at) {
    if (at->second.run.settled()) continue;
    compare(reader, at->first, at->second, "after a power cut at a send");
    ++seen;
  }
  return seen;
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
    if (!run::terminal(step.status)) continue;
    const std::string word = "\"status\":\"" + std::string(run::word(step.status)) + "\"";
    HOLDFAST_REQUIRE(settled[step.spec.id].find(word) != std::string::npos, "events_replay_to_the_state",
            id + " step " + step.spec.id + ": " + settled[step.spec.id]);
  }
  const std::string word = "\"status\":\"" + std::string(run::word(stored.run.status)) + "\"";
  HOLDFAST_REQUIRE(stored.run.settled() == !run_end.empty() &&
              (run_end.empty() || run_end.find(word) != std::string::npos),
          "events_replay_to_the_state", id + ": " + run_end + "\n" + portrait(stored.run));
}

}  // namespace holdfast::sim
