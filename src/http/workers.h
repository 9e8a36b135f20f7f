#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/exchange.h"
#include "http/processor.h"

namespace holdfast::http {

/// Threads that run handlers, started on demand. The queue holds at most one exchange per connection, so it needs no bound of
/// its own.
class Workers {
 public:
  /// Takes the exchange back after one run, on a worker's thread.
  using Done = std::function<void(std::unique_ptr<Exchange>, Step)>;

  /// `name`: whose workers these are; their threads are called so.
  Workers(std::string name, Topics& topics, Duration idle_time, std::uint32_t most, Done done);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void submit(std::unique_ptr<Exchange> exchange);
  /// Starts another thread when work waits and none has been taken for too long: every handler blocks. True while it should be asked again soon.
  [[nodiscard]] bool relieve();
  /// Runs what is queued and ends the threads.
  void stop();

 private:
  struct Job {
    std::unique_ptr<Exchange> exchange;
    std::chrono::steady_clock::time_point since;
  };
  void work();
  void carry_out(Processor& processor, std::unique_ptr<Exchange> exchange);
  [[nodiscard]] bool waits_too_long() const;
  void start_one();

  const std::string name_;
  Topics& topics_;
  const Duration idle_time_;
  const std::uint32_t most_;
  const Done done_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<Job> jobs_;
  std::chrono::steady_clock::time_point last_taken_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast::http
