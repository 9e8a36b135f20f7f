#include "ledger/sqlite/pending.h"

#include <algorithm>
#include <tuple>

#include "ledger/sqlite/load.h"
#include "ledger/sqlite/pending_entries.h"

namespace holdfast::ledger::sqlite {

std::string key_of(std::string_view owner, std::string_view key) {
  std::string both(owner);
  both += '\0';
  return both += key;
}

run::Run to_run(PendingRun whole) {
  run::Run& run = whole.run;
  if (run.settled()) return std::move(run);
  if (!whole.events.empty()) run.last_event = std::max(run.last_event, whole.events.back().seq);
  for (const PendingAttempt& row : whole.attempts)
    if (row.attempt.delivery == Delivery::in_flight && row.attempt.step < run.steps.size()) mark_in_flight(run.steps[row.attempt.step], row.attempt);
  return std::move(run);
}

std::vector<run::Attempt> to_attempts(PendingRun whole, std::int64_t after_row, std::uint32_t limit) {
  std::ranges::sort(whole.attempts, {}, [](const PendingAttempt& row) {
    return std::tuple(row.begun_after, row.attempt.started_at, row.attempt.step, row.attempt.n);
  });
  std::vector<run::Attempt> out;
  for (auto row = static_cast<std::size_t>(std::max<std::int64_t>(after_row, 0)); row < whole.attempts.size() && out.size() < limit; ++row)
    out.push_back(std::move(whole.attempts[row].attempt));
  return out;
}

std::vector<run::Event> to_events(PendingRun whole, std::int64_t after, std::uint32_t limit) {
  std::vector<run::Event> out;
  for (run::Event& event : whole.events)  // they are in order
    if (event.seq > after && out.size() < limit) out.push_back(std::move(event));
  return out;
}

std::optional<run::Attempt> to_attempt(PendingRun whole, std::uint32_t step, std::uint32_t n) {
  if (PendingAttempt* row = entries::known_attempt(&whole, step, n)) return std::move(row->attempt);
  return std::nullopt;
}

void Pending::keep_only(std::string_view record) {
  clear();
  if (record.empty()) return;
  absorb(record);
  for (auto& [seq, of] : runs_) of.carried = true;
}

void Pending::clear() {
  runs_.clear();
  submissions_.clear();
  ids_.clear();
  bytes_ = 0;
}

const PendingRun* Pending::find(std::int64_t seq) const {
  const auto place = runs_.find(seq);
  return place == runs_.end() ? nullptr : &place->second;
}

const PendingRun* Pending::whole(std::int64_t seq) const {
  const PendingRun* found = find(seq);
  return found && found->image == Image::fresh ? found : nullptr;
}

const PendingRun* Pending::whole(std::string_view run_id) const {
  const auto place = ids_.find(std::string(run_id));
  return place == ids_.end() ? nullptr : find(place->second);
}

const Ledger::Submission* Pending::submission(std::string_view owner, std::string_view key) const {
  const auto place = submissions_.find(key_of(owner, key));
  return place == submissions_.end() ? nullptr : &place->second;
}

}  // namespace holdfast::ledger::sqlite
