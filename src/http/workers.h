#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "http/exchange.h"
#include "http/processor.h"

namespace holdfast::http {

/// Threads that run handlers, started on demand. While no request waits, they keep the connections that they have answered
/// for a moment (decision 28). The queue holds at most one exchange per connection, so it needs no bound of
/// its own.
class Workers {
 public:
  /// Takes the exchange back, or the one that followed it on its connection, on a worker's thread.
  using Done = std::function<void(std::unique_ptr<Exchange>, Step)>;

  /// From here on the poller must not be woken by the exchange's socket. On a worker's thread.
  using Quieten = std::function<void(const Exchange&)>;

  /// `options`, `router` and `topics` outlive the workers.
  Workers(const Options& options, const Router& router, Topics& topics, Quieten quieten, Done done);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void submit(std::unique_ptr<Exchange> exchange);
  /// Starts another thread when work waits and none has been taken for too long: every handler blocks. True while it should be asked again soon.
  [[nodiscard]] bool relieve();
  /// From now on every connection goes back after one run.
  void keep_none();
  /// Runs what is queued and ends the threads.
  void stop();

 private:
  struct Job {
    std::unique_ptr<Exchange> exchange;
    std::chrono::steady_clock::time_point since;
  };
  void work();
  void carry_out(Processor& processor, std::unique_ptr<Exchange> exchange);
  [[nodiscard]] bool begin_keeping();
  [[nodiscard]] std::unique_ptr<Exchange> keep(const Exchange& exchange, std::string& received);
  [[nodiscard]] bool waits_too_long() const;
  void start_one();

  const Options& options_;
  const Router& router_;
  Topics& topics_;
  const std::uint32_t most_;
  const Quieten quieten_;
  const Done done_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<Job> jobs_;
  std::chrono::steady_clock::time_point last_taken_;
  std::size_t idle_ = 0;
  std::size_t kept_ = 0;  // threads that wait for the next request of a connection
  bool keeps_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast::http
