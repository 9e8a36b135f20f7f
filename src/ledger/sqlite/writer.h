#pragma once
// The one connection that writes and checkpoints.
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/answers.h"
#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/file.h"
#include "ledger/sqlite/journal.h"
#include "ledger/sqlite/open.h"
#include "ledger/sqlite/pending.h"
#include "ledger/sqlite/touched.h"

namespace holdfast::ledger::sqlite {

class SqliteLedger final : public Ledger {
 public:
  /// `path` is resolved and its schema is current. Throws SQLite::Exception, also when a setting does not
  /// hold.
  SqliteLedger(std::string path, Lock lock, const Tuning& tuning);

  Result<Committed> commit(Batch& batch) override;
  Result<Open> load_open() override;
  Result<std::optional<run::Run>> load(std::string_view run_id) override;
  Result<std::optional<Submission>> find_submission(std::string_view owner, std::string_view key) override;
  Result<std::optional<run::Attempt>> find_attempt(std::int64_t run_seq, std::uint32_t step,
                                                   std::uint32_t n) override;
  Result<std::optional<CachedAnswer>> find_answer(std::string_view server, std::string_view tool,
                                                  std::string_view arguments) override;
  Result<PruneSlice> prunable(Instant ended_before, std::int64_t after_seq, std::uint32_t most,
                              const MayGo& may_go) override;
  void checkpoint_if_due() override;
  std::uint64_t wal_bytes() const override;
  Result<void> backup(const std::string& path) override;
  void when_broken(std::function<void(const Error&)> tell) override;

  /// Of the newest event of a run that is not settled; Instant{} without one. Before anything is committed.
  [[nodiscard]] Instant newest();

  // For readers, on any thread: brings what was committed before the call into the tables, and calls `then` before anything else is committed. Fails
  // as a commit does, without calling it; nothing is lost by that.
  [[nodiscard]] Result<void> show_all(const std::function<void()>& then);
  /// Where the tables can't be written: `read` sees what is pending in a transaction that is then taken back.
  [[nodiscard]] Result<void> look(const std::function<void(Connection&)>& read);
  /// A run that was accepted so lately that it is whole in memory: nothing has to be brought anywhere for who reads it.
  [[nodiscard]] std::optional<PendingRun> young(std::string_view run_id);
  [[nodiscard]] std::optional<PendingRun> young(std::int64_t run_seq);
  /// For who looks for this run alone.
  [[nodiscard]] Result<void> show(std::int64_t run_seq);
  [[nodiscard]] Result<void> show(std::string_view run_id);

 private:
  [[nodiscard]] bool to_journal(const Batch& batch, std::string& record) const;
  void write_runs(const Batch& batch, std::int64_t first_new);
  void write_others(const Batch& batch);
  void replay();
  void fold_into_tables(std::span<const std::int64_t> carried);
  [[nodiscard]] Result<void> fold(bool carrying);
  [[nodiscard]] std::vector<std::int64_t> to_carry(std::string& record) const;
  [[nodiscard]] Error failed(const SQLite::Exception& failure);
  void break_off(const Error& error);
  void roll_back();
  void checkpoint(int mode);
  void note_checkpoint(int code);
  void watch_wal();
  [[nodiscard]] Result<void> look_inside(const std::function<void(Connection&)>& read);
  template <class F>
  auto reading(F&& read) -> Result<decltype(read())>;
  template <class F>
  auto reading_all(bool touched, F&& read) -> Result<decltype(read())>;

  std::mutex mutex_;  // a reader may fold: everything below is its holder's
  Touched touched_;
  Lock lock_;  // released last
  std::string path_;
  Tuning tuning_;
  Connection connection_;
  Journal journal_;
  Pending pending_;
  mutable std::mutex memory_;  // held beside the other while `pending_` changes: who reads that alone waits for no fsync
  std::int64_t next_run_ = 1;
  std::uint64_t frames_ = 0;  // in the WAL after the last commit
  std::uint64_t frames_at_checkpoint_ = 0;
  std::uint64_t due_at_ = 0;  // frames at which the next checkpoint is tried
  bool checkpoint_failing_ = false;
  bool fold_failing_ = false;
  std::optional<Error> fold_failed_;  // since the last commit
  std::optional<AnswersKept> answers_;  // unknown until the first is put, and after a commit that failed
  std::optional<std::chrono::steady_clock::time_point> wal_alarmed_;  // the last line about a WAL that is too large
  std::function<void(const Error&)> tell_broken_;
  std::optional<Error> broken_;  // set for good by what only a restart can mend
};

}  // namespace holdfast::ledger::sqlite
