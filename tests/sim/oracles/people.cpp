// What people were told is so, and stays so.
#include "sim/oracles.h"
#include "sim/portrait.h"

namespace holdfast::sim {

void Oracles::at_rest(const std::vector<Submission>& submissions, ledger::Reader& reader) {
  for (const auto& [id, stored] : stored_) check_end(id, stored);
  // Every row of every tenth run, and of every run in every fourth history.
  const std::uint64_t draw = world_.hash() % 40;
  std::uint64_t n = 0;
  for (const auto& [id, stored] : stored_)
    if (draw < 10 || ++n % 10 == draw % 10) compare(reader, id, stored, "at the end");
  for (const std::string& id : pruned_) {
    const auto there = reader.run(id);
    HOLDFAST_REQUIRE(there && !*there, "pruned_run_is_gone", id);
  }
  std::map<const Submission*, int> runs_of;
  for (const auto& [id, stored] : stored_) {
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
    if (pruned(submission.run_id)) continue;
    HOLDFAST_REQUIRE(stored != nullptr, "no_run_lost", submission.run_id);
    HOLDFAST_REQUIRE(submission.settled_as.empty() || submission.settled_as == run::word(stored->run.status),
            "settled_is_final", portrait(stored->run));
  }
}

}  // namespace holdfast::sim
