#include "sim/spy.h"

#include <algorithm>
#include <utility>

#include "sim/portrait.h"

namespace holdfast::sim {

Result<ledger::Committed> Spy::commit(ledger::Batch& batch) {
  oracles_.deciding(batch);
  if (dies(Doom::Kind::before_commit)) {
    world_.tally.reached(Goal::crash_before_commit);
    throw Crash{};
  }
  auto done = inner_.commit(batch);
  world_.note(0xc0 + batch.events.size() * 256 + batch.attempts.size(), [&] {
    std::string text = "commit " + std::to_string(batch.new_runs.size()) + " new, " +
                       std::to_string(batch.attempts.size()) + " attempts" +
                       (done ? "" : ": " + done.error().code);
    for (const auto& [run, event] : batch.events)
      text += "\n        " + run->name + " " + std::string(event.type) + " " + event.step + " " + event.data;
    for (const auto& [run, attempt] : batch.attempts) text += "\n        " + run->name + " " + portrait(attempt);
    return text;
  });
  if (!disk_.running()) {
    world_.tally.reached(doom_.kind == Doom::Kind::kill_at_operation ? Goal::kill_in_commit
                                                                     : Goal::power_cut_in_commit);
    oracles_.perhaps_committed(batch);
    throw Crash{};
  }
  if (!done) {
    if (done.error().code == "storage_broken") {
      world_.tally.reached(Goal::sync_failed);
      oracles_.perhaps_committed(batch);
      throw Crash{};
    }
    failed_before_ = true;
    return done;
  }
  if (std::exchange(failed_before_, false)) {
    world_.tally.reached(disk_.counts().full > 0 ? Goal::disk_full_and_back : Goal::write_failed_and_back);
  }
  oracles_.committed(batch);
  if (dies(Doom::Kind::after_commit)) {
    const bool sends = std::any_of(batch.attempts.begin(), batch.attempts.end(), [](const auto& row) {
      return row.second.delivery == Delivery::in_flight;
    });
    if (sends) world_.tally.reached(Goal::crash_between_commit_and_send);
    throw Crash{};
  }
  return done;
}

}  // namespace holdfast::sim
