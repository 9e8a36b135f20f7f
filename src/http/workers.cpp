#include "http/workers.h"

#include <sys/socket.h>

#include "holdfast/core/thread_name.h"

namespace holdfast::http {
namespace {

/// Two threads answer quick handlers faster than many; more are started only when handlers are seen to block.
constexpr std::size_t kAtOnce = 2;
constexpr std::chrono::milliseconds kPatience{1};

/// Sends what the socket takes now; the rest is the poller's. An error is left for the poller to see as well.
void send_now(const Exchange& exchange, std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n =
        ::send(exchange.socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  bytes.erase(0, sent);
}

}  // namespace

Workers::Workers(Topics& topics, Duration idle_time, std::uint32_t most, Done done)
    : topics_(topics), idle_time_(idle_time), most_(std::max(most, 1U)), done_(std::move(done)) {}

Workers::~Workers() {
  stop();
}

/// Without a thread to be had the others go on; the first one must start.
void Workers::start_one() {
  try {
    threads_.emplace_back([this] {
      name_this_thread("worker");
      work();
    });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void Workers::submit(std::unique_ptr<Exchange> exchange) {
  bool notify = false;
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back({std::move(exchange), std::chrono::steady_clock::now()});
    notify = idle_ > 0;
    if (!notify && threads_.size() < std::min<std::size_t>(kAtOnce, most_)) start_one();
  }
  if (notify) wanted_.notify_one();
}

bool Workers::relieve() {
  const std::scoped_lock lock(mutex_);
  if (jobs_.empty() || idle_ > 0 || threads_.size() >= most_) return false;
  // Work that waits while others are taken is a busy machine's, and another thread would only make it busier.
  const auto now = std::chrono::steady_clock::now();
  if (now - std::max(jobs_.front().since, last_taken_) >= kPatience) start_one();
  return true;
}

void Workers::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::work() {
  Processor processor(topics_, idle_time_);
  while (true) {
    std::unique_ptr<Exchange> exchange;
    {
      std::unique_lock lock(mutex_);
      ++idle_;
      wanted_.wait(lock, [this] { return !jobs_.empty() || stopping_; });
      --idle_;
      if (jobs_.empty()) return;
      exchange = std::move(jobs_.front().exchange);
      jobs_.pop_front();
      last_taken_ = std::chrono::steady_clock::now();
    }
    Step step = processor.run(*exchange);
    send_now(*exchange, step.bytes);
    done_(std::move(exchange), std::move(step));
  }
}

}  // namespace holdfast::http
