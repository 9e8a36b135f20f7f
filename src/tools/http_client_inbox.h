#pragma once
// What other threads want of the client's thread.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "holdfast/tools/http_client.h"

namespace holdfast::tools {

namespace order {

struct Start {
  RequestId id;
  Instant asked_at;
  HttpRequest request;
  HttpCallbacks callbacks;
};
struct Cancel {
  RequestId id;
};
struct Task {
  Instant at;
  std::function<void()> run;
};
/// A name that could not be resolved was looked up once more.
struct LookedUp {
  RequestId id;
  bool missing;
};

}  // namespace order

using Order = std::variant<order::Start, order::Cancel, order::Task, order::LookedUp>;

/// Orders from other threads. Shared with lookups, which may outlive the client.
class HttpInbox {
 public:
  HttpInbox() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~HttpInbox() {
    if (event_ >= 0) close(event_);
  }
  HttpInbox(const HttpInbox&) = delete;
  HttpInbox& operator=(const HttpInbox&) = delete;

  void post(Order order) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      orders_.push_back(std::move(order));
      if (!std::exchange(asleep_, false)) return;  // it looks before it sleeps
    }
    wake();
  }
  void close_down() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake();
  }
  /// Swaps the waiting orders into `out` (empty); false once closed.
  [[nodiscard]] bool take(std::vector<Order>& out) {
    const std::lock_guard lock(mutex_);
    asleep_ = false;
    out.swap(orders_);
    return !closed_;
  }
  /// The taker is about to wait for the event; false when it must look again instead.
  [[nodiscard]] bool may_sleep() {
    const std::lock_guard lock(mutex_);
    asleep_ = orders_.empty() && !closed_;
    return asleep_;
  }
  void woken() const {
    std::uint64_t count = 0;
    (void)!read(event_, &count, sizeof count);
  }
  [[nodiscard]] int event() const { return event_; }

 private:
  void wake() const {
    const std::uint64_t one = 1;
    (void)!write(event_, &one, sizeof one);
  }

  const int event_;
  std::mutex mutex_;
  std::vector<Order> orders_;
  bool asleep_ = false;  // a system call per order is saved while it is not
  bool closed_ = false;
};

}  // namespace holdfast::tools
