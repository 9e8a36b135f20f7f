#include "ledger/sqlite/check.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ledger/sqlite/load.h"
#include "ledger/sqlite/packed.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

void require(bool holds) {
  if (!holds) throw SQLite::Exception("ledger and memory disagree: no such row, or there is one", SQLITE_CORRUPT);
}

/// How far a run has come in what is stored; by that of the batch which has been looked at already too.
struct Extent {
  std::string id;
  std::size_t steps = 0;
  std::int64_t last_event = 0;
};

Extent in_memory(const PendingRun& known) {
  return {known.run.id, known.run.steps.size(), known.events.empty() ? 0 : known.events.back().seq};
}

Extent in_tables(Connection& connection, std::int64_t seq) {
  Extent extent;
  Statement& rows = connection.statement(sql().extent).add(seq);
  const Reset reset(rows);
  require(rows.row());
  rows.take(extent.id, extent.steps, extent.last_event);
  if (extent.steps == 0) {
    if (const std::optional<PendingRun> packed = unpack(connection, seq)) {
      extent.steps = packed->run.steps.size();
      extent.last_event = in_memory(*packed).last_event;
    }
  }
  return extent;
}

class Extents {
 public:
  Extents(Connection& connection, const Pending& pending, std::int64_t first_new, std::int64_t end_new)
      : connection_(connection), pending_(pending), first_new_(first_new), end_new_(end_new) {}

  Extent& of(const run::Run* run) {
    if (run == last_run_) return *last_;
    const auto [place, fresh] = extents_.try_emplace(run->seq);
    if (fresh) place->second = look(*run);
    require(place->second.id == run->id);
    last_run_ = run;
    return *(last_ = &place->second);
  }
  [[nodiscard]] bool is_new(const run::Run* run) const { return run->seq >= first_new_ && run->seq < end_new_; }

 private:
  [[nodiscard]] Extent look(const run::Run& run) const {
    if (is_new(&run)) return {run.id, run.steps.size(), 0};
    const PendingRun* known = pending_.find(run.seq);
    if (known && known->image == Image::fresh) return in_memory(*known);
    Extent extent = in_tables(connection_, run.seq);
    if (known) {
      extent.steps = std::max(extent.steps, known->run.steps.size());
      extent.last_event = std::max(extent.last_event, in_memory(*known).last_event);
    }
    return extent;
  }

  Connection& connection_;
  const Pending& pending_;
  std::int64_t first_new_, end_new_;
  std::unordered_map<std::int64_t, Extent> extents_;
  const run::Run* last_run_ = nullptr;
  Extent* last_ = nullptr;
};

bool stored(Connection& connection, const Pending& pending, const run::Run& run) {
  if (pending.whole(run.id) || run_seq_of(connection, run.id) != 0) return true;
  return !run.submit_key.empty() && find_submission(connection, pending, run.owner, run.submit_key).has_value();
}

void check_new_runs(Connection& connection, const Pending& pending, const Batch& batch) {
  std::set<std::string_view> ids;
  std::set<std::pair<std::string_view, std::string_view>> keys;
  for (const run::Run* run : batch.new_runs) {
    const bool again = !ids.insert(run->id).second || (!run->submit_key.empty() && !keys.emplace(run->owner, run->submit_key).second);
    if (again || stored(connection, pending, *run)) throw SQLite::Exception("a run's id or submit key is taken", SQLITE_CONSTRAINT);
  }
}

}  // namespace

std::optional<Ledger::Submission> find_submission(Connection& connection, const Pending& pending, std::string_view owner, std::string_view key) {
  if (const Ledger::Submission* found = pending.submission(owner, key)) return *found;
  std::optional<Ledger::Submission> found;
  Statement& rows = connection.statement(sql().submission).add(owner, key);
  const Reset reset(rows);
  if (rows.row()) {
    found.emplace();
    rows.take(found->run_id, found->digest);
  }
  return found;
}

void check_batch(Connection& connection, const Pending& pending, const Batch& batch, std::int64_t first_new) {
  check_new_runs(connection, pending, batch);
  Extents extents(connection, pending, first_new, first_new + static_cast<std::int64_t>(batch.new_runs.size()));
  for (const Batch::StepOf& of : batch.new_steps)
    if (!extents.is_new(of.run)) require(of.step == extents.of(of.run).steps++);
  for (const run::Run* run : batch.runs) (void)extents.of(run);
  for (const Batch::StepOf& of : batch.steps) require(of.step < extents.of(of.run).steps);
  for (const auto& [run, attempt] : batch.attempts) require(attempt.step < extents.of(run).steps);
  for (const auto& [run, event] : batch.events) {
    std::int64_t& last = extents.of(run).last_event;
    require(event.seq > last);
    last = event.seq;
  }
}

}  // namespace holdfast::ledger::sqlite
