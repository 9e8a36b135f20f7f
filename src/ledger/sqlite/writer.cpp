#include "ledger/sqlite/writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/canary.h"
#include "core/crash_point.h"
#include "ledger/sqlite/backup.h"
#include "ledger/sqlite/check.h"
#include "ledger/sqlite/insert.h"
#include "ledger/sqlite/load.h"
#include "ledger/sqlite/packed.h"
#include "ledger/sqlite/prune.h"
#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr int kFull = 2;  // what `PRAGMA synchronous` answers for FULL
constexpr std::int64_t kWalKeptBytes =
    8 * 1024 * 1024;  // a WAL file that grew longer is cut back when it starts anew

constexpr std::uint64_t kFrameBytes = 4096 + 24;
constexpr std::chrono::minutes kAlarmPause{1};

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

/// One look into the index for each open run.
Instant SqliteLedger::newest() {
  const std::lock_guard lock(mutex_);
  return Instant{connection_.number(
      "SELECT coalesce(max((SELECT at FROM events WHERE run_seq = runs.seq ORDER BY seq DESC LIMIT 1)), 0) "
      "FROM runs INDEXED BY runs_unsettled WHERE settled = 0")};
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

/// Reads inside one transaction of the writer's connection.
template <class F>
auto SqliteLedger::reading(F&& read) -> Result<decltype(read())> {
  if (broken_) return std::unexpected(*broken_);
  try {
    const Snapshot snapshot(connection_);
    return read();
  } catch (const SQLite::Exception& failure) {
    return std::unexpected(failed(failure));
  }
}

/// The same once the tables hold all that is committed; where they can't be brought up to date now, as on a full disk, in a transaction that is
/// taken back.
template <class F>
auto SqliteLedger::reading_all(bool touched, F&& read) -> Result<decltype(read())> {
  if (!touched || fold(false)) return reading(read);
  std::optional<decltype(read())> value;
  if (const Result<void> looked = look_inside([&](Connection&) { value = read(); }); !looked) return std::unexpected(looked.error());
  return std::move(*value);
}

Result<Ledger::Open> SqliteLedger::load_open() {
  const std::lock_guard lock(mutex_);
  if (const Result<void> shown = fold(false); !shown) return std::unexpected(shown.error());
  return reading([this] {
    Open open;
    Statement& rows = connection_.statement(sql().unsettled);
    const Reset reset(rows);
    while (rows.row()) {
      run::Run& run = open.runs.emplace_back();
      take_run(rows, run);
      load_steps(connection_, run, &open.in_flight);
    }
    if (connection_.number("PRAGMA application_id") == kBackupId)
      open.restored = Instant{connection_.number(
          "SELECT max((SELECT coalesce(max(at), 0) FROM events), (SELECT coalesce(max(finished_at), 0) FROM runs))")};
    open.breakers = load_breakers(connection_);
    open.gates = load_gates(connection_);
    open.latencies = load_latencies(connection_);
    return open;
  });
}

Result<std::optional<run::Run>> SqliteLedger::load(std::string_view run_id) {
  const std::lock_guard lock(mutex_);
  if (const PendingRun* found = pending_.whole(run_id)) return to_run(*found);
  return reading_all(touched_.has(run_id), [&] { return load_run(connection_, run_id); });
}

Result<std::optional<Ledger::Submission>> SqliteLedger::find_submission(std::string_view owner,
                                                                        std::string_view key) {
  const std::lock_guard lock(mutex_);
  return reading([&] { return sqlite::find_submission(connection_, pending_, owner, key); });
}

Result<std::optional<run::Attempt>> SqliteLedger::find_attempt(std::int64_t run_seq, std::uint32_t step,
                                                               std::uint32_t n) {
  const std::lock_guard lock(mutex_);
  if (const PendingRun* found = pending_.whole(run_seq)) return to_attempt(*found, step, n);
  return reading_all(touched_.has(run_seq), [&] { return load_attempt(connection_, run_seq, step, n); });
}

Result<std::optional<CachedAnswer>> SqliteLedger::find_answer(std::string_view server, std::string_view tool,
                                                              std::string_view arguments) {
  const std::lock_guard lock(mutex_);
  return reading([&] { return load_answer(connection_, server, tool, arguments); });
}

Result<Ledger::PruneSlice> SqliteLedger::prunable(Instant ended_before, std::int64_t after_seq,
                                                  std::uint32_t most) {
  const std::lock_guard lock(mutex_);
  return reading_all(true, [&] { return prune_slice(connection_, next_run_ - 1, ended_before, after_seq, most); });
}

/// Passive first: it waits for nobody, and the next commit starts the WAL anew when no reader is left behind.
/// When that has not happened for long, wait a moment for the readers.
void SqliteLedger::checkpoint_if_due() {
  const std::lock_guard lock(mutex_);
  if (journal_.used() >= tuning_.fold_slots || pending_.bytes() >= tuning_.fold_bytes) {
    const Result<void> folded = fold(true);
    if (!folded && !fold_failing_) spdlog::error("the journal can't be folded: {}", folded.error().message);
    fold_failing_ = !folded;
  }
  if (frames_ < frames_at_checkpoint_) {  // started anew since
    frames_at_checkpoint_ = 0;
    due_at_ = tuning_.checkpoint_frames;
  }
  if (!broken_ && frames_ >= due_at_)
    checkpoint(frames_ < tuning_.restart_frames ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE);
  watch_wal();
}

/// A WAL grows without bound only while somebody reads an old state of it, or while it can't be moved into the database.
void SqliteLedger::watch_wal() {
  const std::uint64_t bytes = frames_ * kFrameBytes;
  if (bytes < tuning_.wal_alarm_bytes) {
    if (wal_alarmed_) spdlog::info("the WAL is small again: {}", path_);
    wal_alarmed_.reset();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (wal_alarmed_ && now - *wal_alarmed_ < kAlarmPause) return;
  wal_alarmed_ = now;
  spdlog::warn("the WAL has grown to {} MiB and is not getting smaller: {}", bytes >> 20, path_);
}

void SqliteLedger::checkpoint(int mode) {
  constexpr int kReaderWaitMs = 50;
  constexpr int kWriterWaitMs = 2'000;
  int in_wal = -1;
  int moved = -1;
  crash_point(CrashPoint::checkpoint_begun);
  sqlite3_busy_timeout(connection_.handle(), kReaderWaitMs);
  const int code = sqlite3_wal_checkpoint_v2(connection_.handle(), nullptr, mode, &in_wal, &moved);
  sqlite3_busy_timeout(connection_.handle(), kWriterWaitMs);
  crash_point(CrashPoint::checkpoint_done);
  if (code == SQLITE_OK && in_wal == 0) frames_ = 0;  // truncated
  frames_at_checkpoint_ = frames_;
  due_at_ = frames_ + tuning_.checkpoint_frames;
  note_checkpoint(code);
}

void SqliteLedger::note_checkpoint(int code) {
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) {
    const Error error = to_error(path_, SQLite::Exception(connection_.handle(), code), connection_.handle());
    if (!checkpoint_failing_) spdlog::error("checkpoint failed: {}", error.message);
    if (error.code == "storage_broken") break_off(error);
    checkpoint_failing_ = true;
  } else if (checkpoint_failing_) {
    spdlog::info("checkpoint works again: {}", path_);
    checkpoint_failing_ = false;
  }
}

std::uint64_t SqliteLedger::wal_bytes() const {
  return size_of(path_ + "-wal");
}

Result<void> SqliteLedger::backup(const std::string& path) {
  (void)show_all([] {});  // who looks into the copy with SQL sees more; what is still in the journal is copied too
  return copy_database(path_, path);
}

}  // namespace holdfast::ledger::sqlite
