#pragma once
// Where other threads leave what the loop has to look at.
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "holdfast/core/time.h"

namespace holdfast::engine {

/// Bounded for commands; evidence is bounded by the calls in flight and always taken.
class Inbox {
 public:
  using Item = std::move_only_function<void()>;

  explicit Inbox(std::size_t limit) : limit_(limit) {}

  /// False when full: the item was not taken.
  [[nodiscard]] bool post_command(Item item) {
    {
      const std::lock_guard lock(mutex_);
      if (commands_ >= limit_) return false;
      ++commands_;
      items_.push_back(std::move(item));
    }
    wake_.notify_one();
    return true;
  }

  void post_evidence(Item item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    wake_.notify_one();
  }

  /// Everything that has gathered, in order; the vector's storage is swapped, not copied.
  void take(std::vector<Item>& into) {
    into.clear();
    const std::lock_guard lock(mutex_);
    into.swap(items_);
    commands_ = 0;
    nudged_ = false;
  }

  void nudge() {
    {
      const std::lock_guard lock(mutex_);
      nudged_ = true;
    }
    wake_.notify_one();
  }

  /// Returns when something is there, or after `at_most`.
  void wait(std::optional<Duration> at_most) {
    std::unique_lock lock(mutex_);
    const auto something = [&] { return !items_.empty() || nudged_; };
    if (at_most)
      (void)wake_.wait_for(lock, *at_most, something);
    else
      wake_.wait(lock, something);
  }

 private:
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Item> items_;
  std::size_t commands_ = 0;
  bool nudged_ = false;
};

}  // namespace holdfast::engine
