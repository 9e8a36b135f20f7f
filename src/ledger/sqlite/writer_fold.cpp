// From the journal into the tables: when it is time, at start, and when somebody wants to read.
#include <algorithm>

#include "core/canary.h"
#include "core/crash_point.h"
#include "ledger/sqlite/fold.h"
#include "ledger/sqlite/rows.h"
#include "ledger/sqlite/writer.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr std::size_t kMostCarriedBytes = 128 * 1024;

}  // namespace

/// At start: what the last life has committed and not brought into the tables.
void SqliteLedger::replay() {
  {
    const Snapshot snapshot(connection_);
    for (const std::string& record : journal_.load(connection_)) pending_.absorb(record);
  }
  if (canary(Canary::replay_skipped)) pending_.clear();
  journal_.committed();
  if (pending_.empty()) return;
  connection_.statement(sql().begin_write).run();
  try {
    fold_into_tables({});
    connection_.statement(sql().commit).run();
  } catch (...) {
    roll_back();
    connection_.leave_log();
    throw;
  }
  journal_.committed();
  pending_.clear();
}

/// Young runs that are still open stay in the journal, in one record: most of them end soon, and their rows are then written once.
std::vector<std::int64_t> SqliteLedger::to_carry(std::string& record) const {
  std::vector<std::int64_t> seqs;
  for (const auto& [seq, run] : pending_.runs())
    if (run.image == Image::fresh && !run.carried && !run.run.settled()) seqs.push_back(seq);
  record = pending_.encode(seqs);
  if (record.size() > kMostCarriedBytes) seqs.clear(), record.clear();
  return seqs;
}

/// One that failed is not tried again before a commit has gone well: until then, who reads looks inside.
Result<void> SqliteLedger::fold(bool carrying) {
  if (pending_.empty()) return {};
  if (broken_) return std::unexpected(*broken_);
  if (fold_failed_) return std::unexpected(*fold_failed_);
  try {
    std::string record;
    const std::vector<std::int64_t> young = carrying ? to_carry(record) : std::vector<std::int64_t>{};
    connection_.statement(sql().begin_write).run();
    fold_into_tables(young);
    if (!record.empty()) journal_.write(connection_, record);
    crash_point(CrashPoint::folding);
    connection_.statement(sql().commit).run();
    journal_.committed();
    crash_point(CrashPoint::folded);
    const std::lock_guard memory(memory_);
    pending_.keep_only(record);
    touched_.keep_only(pending_);
    return {};
  } catch (const SQLite::Exception& failure) {
    fold_failed_ = failed(failure);
    return std::unexpected(*fold_failed_);
  }
}

/// All runs but those of `carried`, which is in ascending order.
void SqliteLedger::fold_into_tables(std::span<const std::int64_t> carried) {
  if (pending_.empty()) return;
  if (canary(Canary::journal_emptied_before_fold)) {
    journal_.folded(connection_);
    connection_.statement(sql().commit).run();
    connection_.statement(sql().begin_write).run();
  }
  for (const auto& [seq, run] : pending_.runs()) {
    if (!std::ranges::binary_search(carried, seq)) fold_run(connection_, run);
  }
  journal_.folded(connection_);
}

std::optional<PendingRun> SqliteLedger::young(std::string_view run_id) {
  if (!touched_.has(run_id)) return std::nullopt;
  const std::lock_guard memory(memory_);
  const PendingRun* found = pending_.whole(run_id);
  return found ? std::optional(*found) : std::nullopt;
}

std::optional<PendingRun> SqliteLedger::young(std::int64_t run_seq) {
  if (!touched_.has(run_seq)) return std::nullopt;
  const std::lock_guard memory(memory_);
  const PendingRun* found = pending_.whole(run_seq);
  return found ? std::optional(*found) : std::nullopt;
}

/// A newer run could be folded behind the look at what is pending, and an older one carried: who then looked would see a gap.
Result<void> SqliteLedger::show_all(const std::function<void()>& then) {
  const std::lock_guard lock(mutex_);
  const Result<void> shown = canary(Canary::reader_before_fold) ? Result<void>{} : fold(false);
  if (shown) then();
  return shown;
}

Result<void> SqliteLedger::look(const std::function<void(Connection&)>& read) {
  const std::lock_guard lock(mutex_);
  return look_inside(read);
}

/// What a read finds wrong is the reader's affair, as on a connection of its own.
Result<void> SqliteLedger::look_inside(const std::function<void(Connection&)>& read) {
  if (broken_) return std::unexpected(*broken_);
  try {
    connection_.statement(sql().begin_write).run();
    fold_into_tables({});
  } catch (const SQLite::Exception& failure) {
    return std::unexpected(failed(failure));
  }
  Result<void> done;
  try {
    read(connection_);
  } catch (const SQLite::Exception& failure) {
    done = std::unexpected(to_error(path_, failure, connection_.handle()));
  }
  roll_back();
  journal_.rolled_back();
  return done;
}

Result<void> SqliteLedger::show(std::int64_t run_seq) {
  return touched_.has(run_seq) ? show_all([] {}) : Result<void>{};
}

Result<void> SqliteLedger::show(std::string_view run_id) {
  return touched_.has(run_id) ? show_all([] {}) : Result<void>{};
}

}  // namespace holdfast::ledger::sqlite
