// The operator among the people: settles what is unknown, and forces circuits.
#include <utility>

#include "holdfast/core/ids.h"
#include "sim/people.h"

namespace holdfast::sim {

void People::round() {
  if (home_) return;
  // An alert brings the operator; now and then he looks without one.
  if (desk_.engine && (*desk_.unknown_writes > 0 || dice_.chance(100))) {
    ledger::UnknownFilter filter;
    filter.limit = 20;
    if (auto unknowns = desk_.reader->unknowns(filter)) {
      bool posted = false;
      for (const ledger::UnknownEntry& entry : *unknowns)
        if (healed_ || dice_.chance(400)) {
          settle(entry);
          posted = true;
        }
      if (posted) desk_.posted();
    }
  }
  world_.after(dice_.span(healed_ ? 1'000 : 200, healed_ ? 4'000 : 8'000), [this] { round(); });
}

/// By what the effect log says, as far as it can be known; or at random.
void People::settle(const ledger::UnknownEntry& entry) {
  Op* op = truth_.find(Truth::name_in(entry.state.spec.args));
  const std::string write = write_id(entry.run_id, entry.step);
  if (left_alone_.contains(write)) return;
  if (healed_ && dice_.chance(100)) {
    left_alone_.insert(write);
    return;
  }
  engine::Engine::Verdict verdict;
  verdict.who = "operator";
  verdict.note = "looked it up";
  const bool careless = !healed_ && dice_.chance(swarm_.wrong_word);
  if (!careless && op->travelling()) return;
  if (dice_.chance(swarm_.abandon / (healed_ ? 4 : 1)))
    verdict.verdict = run::Resolution::abandon;
  else if (careless)
    verdict.verdict = dice_.chance(500) ? run::Resolution::landed : run::Resolution::not_landed;
  else
    verdict.verdict = op->effects > 0 ? run::Resolution::landed : run::Resolution::not_landed;
  switch (verdict.verdict) {
    case run::Resolution::landed:
      op->said_landed = true;
      verdict.result = R"({"by":"hand"})";
      break;
    case run::Resolution::not_landed:
      ++op->orders;
      if (op->effects > 0 || op->travelling()) ++op->wrong_orders;
      break;
    default:
      op->said_abandon = true;
  }
  const Stored* stored = oracles_.find(entry.run_id);
  const bool late = stored && desk_.clock->now() >= stored->run.deadline;
  if (late && dice_.chance(500)) {
    verdict.deadline = desk_.clock->now() + dice_.span(1'000, 20'000);
    latest_deadline_ = std::max(latest_deadline_, *verdict.deadline);
    op->extended = true;
  }
  const run::Resolution word = verdict.verdict;
  const bool extends = verdict.deadline.has_value();
  world_.note(0x4e50 + static_cast<std::uint64_t>(word), [&] {
    return "operator says " + std::string(run::word(word)) + " of " + op->name + (extends ? " with a new deadline" : "");
  });
  desk_.engine->resolve(write, std::move(verdict), [this, write, word, extends](Result<void> answer) {
    if (!answer) {
      if (answer.error().code == "already_resolved") world_.tally.reached(Goal::operator_second_word);
      HOLDFAST_REQUIRE(answer.error().code != "write_not_found" || oracles_.pruned(write.substr(0, write.find('.'))), "no_run_lost",
              write);
      return;
    }
    if (word == run::Resolution::landed) world_.tally.reached(Goal::operator_landed);
    if (word == run::Resolution::not_landed) world_.tally.reached(Goal::operator_not_landed);
    if (word == run::Resolution::abandon) world_.tally.reached(Goal::operator_abandon);
    if (extends) world_.tally.reached(Goal::operator_deadline);
    if (!dice_.chance(200)) return;
    // The same word again changes nothing; another one is refused.
    engine::Engine::Verdict second;
    second.who = "operator";
    second.note = "again";
    const bool same = dice_.chance(500);
    second.verdict = same                                  ? word
                     : word == run::Resolution::abandon ? run::Resolution::landed
                                                           : run::Resolution::abandon;
    if (const auto ref = parse_write_id(write)) {
      const Stored* stored_run = oracles_.find(ref->run_id);
      Op* named = stored_run ? truth_.find(Truth::name_in(stored_run->run.steps[ref->step_index].spec.args)) : nullptr;
      if (named && second.verdict == run::Resolution::landed) named->said_landed = true;
      if (named && second.verdict == run::Resolution::abandon) named->said_abandon = true;
      if (named && second.verdict == run::Resolution::not_landed) {
        ++named->orders;
        if (named->effects > 0 || named->travelling()) ++named->wrong_orders;
      }
    }
    world_.after(Duration{10}, [this, write, second = std::move(second)]() mutable {
      if (!desk_.engine || home_) return;
      desk_.engine->resolve(write, std::move(second), [this](Result<void> reply) {
        if (!reply && reply.error().code == "already_resolved")
          world_.tally.reached(Goal::operator_second_word);
      });
      desk_.posted();
    });
  });
}

void People::force() {
  if (home_ || healed_) return;
  if (desk_.engine && dice_.chance(swarm_.force)) {
    const Tool& tool = *town_.tools[dice_.index(town_.tools.size())];
    const std::string name = dice_.chance(500) ? tool.name : "";
    const bool open = dice_.chance(700);
    std::optional<Duration> span;
    if (dice_.chance(600)) span = dice_.span(100, 10'000);
    forced_.insert({tool.server, name});
    if (!open && name.empty()) oracles_.gate_opened(tool.server);
    desk_.engine->force_breaker(tool.server, name, open, "operator", "maintenance", span, [](Result<Breaker>) {});
    desk_.posted();
  }
  world_.after(dice_.span(500, 20'000), [this] { force(); });
}

}  // namespace holdfast::sim
