// What keepers do with a server: stopping it, deleting old runs, answers that are kept.
#include <algorithm>

#include "run/machine_detail.h"
#include "sim/oracles.h"
#include "sim/portrait.h"

namespace holdfast::sim {

namespace {

std::string about(const Tool& tool, std::string_view args) {
  const std::size_t at = args.find("\"about\":");
  return tool.server + "/" + tool.name + "/" + std::string(args.substr(at, args.find('}', at) - at));
}

}  // namespace

void Oracles::turn_begins(Instant now) {
  ++turn_;
  now_ = now;
  for (auto& [asked, result] : handed_) answers_[asked].push_back({std::move(result), now});
  handed_.clear();
}

void Oracles::drained() const {
  for (const auto& [id, stored] : stored_)
    for (const auto& [at, attempt] : stored.attempts)
      HOLDFAST_REQUIRE(stored.run.settled() || attempt.delivery != Delivery::in_flight, "drained_leaves_nothing_out",
              portrait(attempt) + "\n" + portrait(stored.run));
}

void Oracles::answered(const Op& op, std::string_view args, const std::string& result) {
  if (op.tool->cached) handed_.emplace_back(about(*op.tool, args), result);
}

/// The tool gave this very answer to equal arguments, and not too long ago when the step was settled: what a disk refuses is committed later.
void Oracles::check_kept(const run::Step& step, const run::Run& run) const {
  const Tool* tool = town_.find(step.spec.server, step.spec.tool);
  const ToolPolicy* rules = town_.rules(step.spec.server, step.spec.tool);
  const auto known = answers_.find(about(*tool, step.spec.args));
  Instant settled = now_;
  for (const auto& [whose, event] : deciding_->events)
    if (whose == &run && event.step == step.spec.id && event.type == "step.settled") settled = event.at;
  bool given = false;
  if (known != answers_.end() && rules != nullptr)
    for (const Kept& kept : known->second) given |= kept.result == step.result && settled - kept.at <= rules->fallback->max_age;
  HOLDFAST_REQUIRE(given, "kept_answer_was_given", step.result + "\n" + portrait(run));
  world_.tally.reached(Goal::kept_answer);
}

std::vector<std::string> Oracles::named_by(const std::vector<std::int64_t>& seqs) const {
  std::vector<std::string> ids;
  if (seqs.empty()) return ids;
  for (const auto& [id, stored] : stored_)
    if (std::ranges::find(seqs, stored.run.seq) != seqs.end()) ids.push_back(id);
  return ids;
}

/// Only what has ended, long enough ago, and whose keys no tool knows any more.
void Oracles::check_prune(const ledger::Batch& batch) {
  const auto old = [&](const run::Run& run) {
    return run.settled() && run.finished_at && *run.finished_at + *town_.config->retention <= now_;
  };
  const auto key_is_known = [&](const run::Run& run) {
    return std::ranges::any_of(run.steps, [&](const run::Step& step) {
      const Op* op = op_of(step);
      const ToolPolicy* rules = town_.rules(step.spec.server, step.spec.tool);
      const Duration kept = rules != nullptr && rules->key ? rules->key->retention : KeyRule{}.retention;
      const bool sent = !op->sends.empty();
      const bool landed = step.write && step.write->state == run::WriteState::landed;
      return landed && op->tool->is_keyed() && sent && now_ < op->sends.back().begun + kept;
    });
  };
  for (const std::string& id : named_by(batch.prune)) {
    const Stored& stored = stored_.at(id);
    HOLDFAST_REQUIRE(town_.config->retention && old(stored.run), "pruned_run_was_due", portrait(stored.run));
    HOLDFAST_REQUIRE(!key_is_known(stored.run), "pruned_key_was_forgotten", portrait(stored.run));
    check_end(id, stored);
  }
  for (const auto& [id, stored] : stored_)
    if (old(stored.run) && key_is_known(stored.run)) {
      world_.tally.reached(Goal::kept_for_key);
      break;
    }
}

void Oracles::mark_pruned(const std::string& id) {
  world_.tally.reached(Goal::pruned);
  pruned_.insert(id);
  gone_.insert(std::atoi(stored_.at(id).run.name.c_str()));
}

}  // namespace holdfast::sim
