#include "ledger/sqlite/writer.h"

#include <algorithm>

#include "core/canary.h"
#include "core/crash_point.h"
#include "ledger/sqlite/backup.h"
#include "ledger/sqlite/check.h"
#include "ledger/sqlite/insert.h"
#include "ledger/sqlite/packed.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr int kFull = 2;  // what `PRAGMA synchronous` answers for FULL
constexpr std::int64_t kWalKeptBytes =
    8 * 1024 * 1024;  // a WAL file that grew longer is cut back when it starts anew

int remember_frames(void* frames, sqlite3*, const char*, int in_wal) {
  *static_cast<std::uint64_t*>(frames) = static_cast<std::uint64_t>(in_wal);
  return SQLITE_OK;
}

void require(bool holds, const char* what) {
  if (!holds) throw SQLite::Exception(std::string("a setting does not hold: ") + what, SQLITE_ERROR);
}

void make_durable(Connection& connection) {
  require(connection.text("PRAGMA journal_mode = WAL") == "wal", "journal_mode = WAL");
  require(connection.number("PRAGMA synchronous") == kFull || canary(Canary::skip_fsync), "synchronous = FULL");
  connection.execute("PRAGMA foreign_keys = ON");
  require(connection.number("PRAGMA foreign_keys") == 1, "foreign_keys = ON");
  if (canary(Canary::pruned_in_part)) connection.execute("PRAGMA foreign_keys = OFF");
  connection.execute("PRAGMA wal_autocheckpoint = 0");
  connection.execute("PRAGMA journal_size_limit = " + std::to_string(kWalKeptBytes));
}

}  // namespace

SqliteLedger::SqliteLedger(std::string path, Lock lock, const Tuning& tuning)
    : lock_(std::move(lock)),
      path_(std::move(path)),
      tuning_(tuning),
      connection_(path_, Role::writer, tuning.writer_cache_kib, tuning.vfs),
      journal_(tuning.journal_slots),
      due_at_(tuning.checkpoint_frames) {
  make_durable(connection_);
  if (tuning.max_pages > 0)
    connection_.execute("PRAGMA max_page_count = " + std::to_string(tuning.max_pages));
  sqlite3_wal_hook(connection_.handle(), remember_frames, &frames_);
  replay();
  next_run_ = connection_.number(sql().newest_run) + 1;
}

/// One row of the journal, where it has room for the batch; what is rare is written to its tables at once, and then so is all that is pending.
Result<Committed> SqliteLedger::commit(Batch& batch) {
  const std::lock_guard lock(mutex_);
  if (broken_) return std::unexpected(*broken_);
  const std::int64_t first_new = next_run_;
  std::int64_t seq = first_new;
  for (run::Run* run : batch.new_runs) run->seq = seq++;
  try {
    std::string record;
    const bool journaled = to_journal(batch, record) && !canary(Canary::half_a_commit) && !canary(Canary::new_runs_committed_apart);
    connection_.statement(sql().begin_write).run();
    if (journaled) {
      check_batch(connection_, pending_, batch, first_new);
      if (!record.empty()) journal_.write(connection_, record);
    } else {
      fold_into_tables({});
      write_runs(batch, first_new);
    }
    write_others(batch);
    crash_point(CrashPoint::in_commit);
    connection_.statement(sql().commit).run();
    journal_.committed();
    fold_failed_.reset();
    next_run_ = seq;
    const std::lock_guard memory(memory_);
    if (!journaled) {
      pending_.clear();
      touched_.clear();
    } else if (!record.empty()) {
      pending_.absorb(record);
      touched_.add(batch);
    }
    return committed();
  } catch (const SQLite::Exception& failure) {
    Error error = failed(failure);
    for (run::Run* run : batch.new_runs) run->seq = 0;
    return std::unexpected(std::move(error));
  }
}

bool SqliteLedger::to_journal(const Batch& batch, std::string& record) const {
  if (batch.adopt || !batch.prune.empty() || pending_.bytes() >= 2 * tuning_.fold_bytes) return false;
  record = pending_.encode(batch);
  return record.empty() || journal_.fits(record.size());
}

/// A new run's rows hold its newest state already, so that changes of it in the same batch have nothing to
/// add.
void SqliteLedger::write_runs(const Batch& batch, std::int64_t first_new) {
  const std::int64_t end_new = first_new + static_cast<std::int64_t>(batch.new_runs.size());
  const auto stored_before = [&](const run::Run* run) { return run->seq < first_new || run->seq >= end_new; };
  for (const run::Run* run : batch.new_runs) {
    insert_run(connection_, *run);
    if (!canary(Canary::new_runs_committed_apart)) continue;
    connection_.statement(sql().commit).run();
    connection_.statement(sql().begin_write).run();
  }
  const auto as_rows = [&](const run::Run* run) {
    if (stored_before(run)) lay_out(connection_, run->seq);
  };
  std::ranges::for_each(batch.runs, as_rows);
  for (const auto& of : batch.steps) as_rows(of.run);
  for (const auto& [run, attempt] : batch.attempts) as_rows(run);
  for (const auto& [run, event] : batch.events) as_rows(run);
  for (const auto& [run, step] : batch.new_steps) {
    if (stored_before(run)) insert_step(connection_, *run, step);
  }
  for (const run::Run* run : batch.runs) {
    if (stored_before(run)) update_run(connection_, *run);
  }
  for (const auto& [run, step] : batch.steps) {
    if (stored_before(run)) update_step(connection_, *run, step);
  }
  if (canary(Canary::half_a_commit)) {
    connection_.statement(sql().commit).run();
    connection_.statement(sql().begin_write).run();
  }
  for (const auto& [run, attempt] : batch.attempts) put_attempt(connection_, run->seq, attempt, run->last_event);
  for (const auto& [run, event] : batch.events) insert_event(connection_, run->seq, event);
}

void SqliteLedger::write_others(const Batch& batch) {
  if (batch.probe) {
    // Setting the version to what it is writes the first page, and changes nothing.
    const std::int64_t version = connection_.number("PRAGMA user_version");
    connection_.execute("PRAGMA user_version = " + std::to_string(version));
  }
  if (batch.adopt) connection_.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  for (const Breaker& breaker : batch.breakers) put_breaker(connection_, breaker);
  for (const RateGate& gate : batch.gates) put_gate(connection_, gate);
  if (!batch.answers.empty()) {
    if (!answers_) answers_ = count_answers(connection_);
    for (const CachedAnswer& answer : batch.answers) put_answer(connection_, answer, *answers_);
    trim_answers(connection_, *answers_, {tuning_.max_answers, tuning_.max_answer_bytes});
  }
  for (const AuditEntry& entry : batch.audit) insert_audit(connection_, entry);
  put_latencies(connection_, batch.latencies);
  for (const std::int64_t seq : batch.prune) {
    if (!canary(Canary::deleted_run_stays)) connection_.statement(sql().prune_run).add(seq).run();
  }
}

void SqliteLedger::break_off(const Error& error) {
  broken_ = error;
  connection_.leave_log();
  if (tell_broken_) tell_broken_(error);
}

void SqliteLedger::when_broken(std::function<void(const Error&)> tell) {
  const std::lock_guard lock(mutex_);
  tell_broken_ = std::move(tell);
  if (broken_ && tell_broken_) tell_broken_(*broken_);
}

Error SqliteLedger::failed(const SQLite::Exception& failure) {
  Error error = to_error(path_, failure, connection_.handle());
  roll_back();
  journal_.rolled_back();
  answers_.reset();
  if (sqlite3_get_autocommit(connection_.handle()) == 0) {
    error = Error{"storage_broken", error.message + "; and the transaction cannot be rolled back", {}};
  }
  if (error.code == "storage_broken") break_off(error);
  return error;
}

void SqliteLedger::roll_back() {
  if (sqlite3_get_autocommit(connection_.handle()) != 0)
    return;  // SQLite did it itself, as after a full disk
  try {
    connection_.statement(sql().rollback).run();
  } catch (const SQLite::Exception&) {
    // The caller looks at the outcome.
  }
}

Result<void> SqliteLedger::backup(const std::string& path) {
  (void)show_all([] {});  // who looks into the copy with SQL sees more; what is still in the journal is copied too
  return copy_database(path_, path);
}

}  // namespace holdfast::ledger::sqlite
