#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "holdfast/core/time.h"

namespace holdfast::api {

/// The texts of settled runs that are large, so that a hundred pollers of one large result hold it once and not a
/// hundred times. Thread-safe. Bounded: four texts of at most 32 MiB together; the oldest are let go first.
class LargeAnswers {
 public:
  struct Text {
    Instant deadline;
    std::string before;                       // up to the value of remaining_ms, which is told anew each time
    std::shared_ptr<const std::string> after;  // from behind it
  };
  /// What may be kept of a run that is read after this call: nothing, if the run changes in between.
  struct Ticket {
    std::uint64_t changes = 0;
  };

  [[nodiscard]] static bool is_large(std::string_view text) { return text.size() >= 64 * 1024; }
  /// Without `after`: nothing is kept.
  [[nodiscard]] Text find(std::string_view run_id) const;
  [[nodiscard]] Ticket before_reading(std::string_view run_id) const;
  void keep(Ticket ticket, std::string_view run_id, Text text);
  /// From now on one_at_a_time() holds for this run.
  void was_large(std::string_view run_id);
  /// The run has changed.
  void forget(std::string_view run_id);
  /// Held while a large answer is made, so that many pollers make one and not many. `run_id` was large before; an empty
  /// lock for any other.
  [[nodiscard]] std::unique_lock<std::mutex> one_at_a_time(std::string_view run_id) const;

 private:
  [[nodiscard]] std::atomic<std::uint64_t>& changes_of(std::string_view run_id) const {
    return changes_[std::hash<std::string_view>{}(run_id) % changes_.size()];
  }

  mutable std::mutex mutex_;  // guards kept_ and bytes_
  std::deque<std::pair<std::string, Text>> kept_;
  std::size_t bytes_ = 0;
  std::atomic<bool> any_{false};  // whether kept_ has anything: most servers never have a large result
  mutable std::mutex making_;
  mutable std::array<std::atomic<std::uint64_t>, 256> changes_{};
  mutable std::array<std::atomic<bool>, 4096> was_large_{};  // by hash: a collision only makes two runs wait for each other
};

}  // namespace holdfast::api
