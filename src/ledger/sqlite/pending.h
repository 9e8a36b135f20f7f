#pragma once
// What is committed and not yet in the tables: the last image of each row, put together from the journal's records.
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/ledger/ledger.h"

namespace holdfast::ledger::sqlite {

class RecordReader;
class RecordWriter;

enum class Image : std::uint8_t { none, changed, fresh };  // fresh: the row is not in its table

struct PendingAttempt {
  run::Attempt attempt;
  std::int64_t begun_after = 0;
};

/// What is known of a run: of members of rows that are not `fresh`, those that have changed alone.
struct PendingRun {
  run::Run run;
  Image image = Image::none;
  std::vector<Image> steps;  // of run.steps
  std::vector<PendingAttempt> attempts;
  std::vector<run::Event> events;
  bool carried = false;
};

/// Steps, writes, attempts and events of a run that is wholly known, as a record.
[[nodiscard]] std::string encode_children(const PendingRun& of);
/// What encode_children() wrote; of the run itself only `seq`. Throws SQLite::Exception (SQLITE_CORRUPT).
[[nodiscard]] PendingRun decode_children(std::string_view record);

// What readers make of a run that is wholly known; the same as of its rows.
[[nodiscard]] run::Run to_run(PendingRun whole);
[[nodiscard]] std::vector<run::Attempt> to_attempts(PendingRun whole, std::int64_t after_row, std::uint32_t limit);
[[nodiscard]] std::vector<run::Event> to_events(PendingRun whole, std::int64_t after, std::uint32_t limit);
[[nodiscard]] std::optional<run::Attempt> to_attempt(PendingRun whole, std::uint32_t step, std::uint32_t n);

/// Of the map of submissions.
[[nodiscard]] std::string key_of(std::string_view owner, std::string_view key);

class Pending {
 public:
  /// What `batch` says of runs as a record, told against what is known; empty when it says nothing of them. Throws SQLite::Exception
  /// (SQLITE_CORRUPT) when the batch speaks of a step that its run does not have.
  [[nodiscard]] std::string encode(const Batch& batch) const;
  /// A record of runs that stay when the others are folded: everything that is known of them.
  [[nodiscard]] std::string encode(const std::vector<std::int64_t>& seqs) const;
  /// Takes in a record, the oldest first. Throws SQLite::Exception (SQLITE_CORRUPT).
  void absorb(std::string_view record);
  /// Forgets everything but the runs of `record`, which encode(seqs) made; empty: everything.
  void keep_only(std::string_view record);
  void clear();

  [[nodiscard]] const std::map<std::int64_t, PendingRun>& runs() const { return runs_; }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  /// Roughly what it holds in memory.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const Ledger::Submission* submission(std::string_view owner, std::string_view key) const;
  /// What is here of a run; nullptr for nothing.
  [[nodiscard]] const PendingRun* find(std::int64_t seq) const;
  /// A run whose every row is here; nullptr when it is not, or not wholly.
  [[nodiscard]] const PendingRun* whole(std::string_view run_id) const;
  [[nodiscard]] const PendingRun* whole(std::int64_t seq) const;

 private:
  friend PendingRun decode_children(std::string_view record);
  PendingRun& at(std::int64_t seq);
  void take(RecordReader& record);

  std::map<std::int64_t, PendingRun> runs_;
  std::unordered_map<std::string, Ledger::Submission> submissions_;  // owner NUL key
  std::unordered_map<std::string, std::int64_t> ids_;                // of new runs
  std::size_t bytes_ = 0;
};

}  // namespace holdfast::ledger::sqlite
