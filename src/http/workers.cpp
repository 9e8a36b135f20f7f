#include "http/workers.h"

#include <poll.h>
#include <sys/socket.h>

#include "holdfast/core/thread_name.h"
#include "http/next_request.h"

namespace holdfast::http {
namespace {

/// Two threads answer quick handlers faster than many; more are started only when handlers are seen to block.
constexpr std::size_t kAtOnce = 2;
constexpr std::chrono::milliseconds kPatience{1};
constexpr std::size_t kMostKept = 6;  // connections

/// How many bytes the socket takes now. An error is left for the poller to see as well.
std::size_t send_now(int socket, std::string_view bytes, int flags = 0) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n =
        ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  return sent;
}

/// A client that was reset needs no answer, and what it only wanted to read need not be made.
bool is_pointless(const Exchange& exchange) {
  if (exchange.request.method != "GET") return false;
  pollfd p{.fd = exchange.socket, .events = 0, .revents = 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

/// Sends what the socket takes now; the rest is the poller's.
void send_now(int socket, Step& step) {
  step.bytes.erase(0, send_now(socket, step.bytes, step.tail ? MSG_MORE : 0));
  if (step.bytes.empty() && step.tail) step.tail_sent = send_now(socket, *step.tail);
}

}  // namespace

Workers::Workers(const Options& options, const Router& router, Topics& topics, Quieten quieten, Done done)
    : options_(options),
      router_(router),
      topics_(topics),
      most_(std::max(options.threads, 1U)),
      quieten_(std::move(quieten)),
      done_(std::move(done)),
      keeps_(options.keep_time.count() > 0) {}

Workers::~Workers() {
  stop();
}

/// Without a thread to be had the others go on; the first one must start.
void Workers::start_one() {
  try {
    threads_.emplace_back([this] {
      name_this_thread((options_.name + " worker").c_str());
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
    if (!notify && threads_.size() < std::min<std::size_t>(kAtOnce + kept_, most_)) start_one();
  }
  if (notify) wanted_.notify_one();
}

bool Workers::waits_too_long() const {
  // Work that waits while others are taken is a busy machine's, and another thread would only make it busier.
  return std::chrono::steady_clock::now() - std::max(jobs_.front().since, last_taken_) >= kPatience;
}

bool Workers::relieve() {
  const std::scoped_lock lock(mutex_);
  if (jobs_.empty() || idle_ > 0 || threads_.size() >= most_) return false;
  if (waits_too_long()) start_one();
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

void Workers::keep_none() {
  const std::scoped_lock lock(mutex_);
  keeps_ = false;
}

/// Nobody waits, and whoever comes finds a thread: one that is idle, or one that is started beside those that keep.
bool Workers::begin_keeping() {
  const std::scoped_lock lock(mutex_);
  const bool another = idle_ > 0 || threads_.size() < most_;
  if (!keeps_ || !jobs_.empty() || threads_.size() - idle_ > kMostKept || !another) return false;
  ++kept_;
  return true;
}

std::unique_ptr<Exchange> Workers::keep(const Exchange& exchange, std::string& received) {
  if (!begin_keeping()) return nullptr;
  auto next = next_request(exchange, router_, options_, received);
  const std::scoped_lock lock(mutex_);
  --kept_;
  return next;
}

void Workers::carry_out(Processor& processor, std::unique_ptr<Exchange> exchange) {
  while (true) {
    Step step{.next = Step::Next::close};
    if (!is_pointless(*exchange)) step = processor.run(*exchange);
    send_now(exchange->socket, step);
    std::unique_ptr<Exchange> next;
    if (step.next == Step::Next::finish && step.all_sent()) next = keep(*exchange, step.received);
    if (next == nullptr) return done_(std::move(exchange), std::move(step));
    if (!exchange->quiet) quieten_(*exchange);
    next->quiet = true;
    topics_.unwatch(exchange->connection, exchange->topics);
    exchange = std::move(next);
  }
}

void Workers::work() {
  Processor processor(topics_, options_.idle_time);
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
    carry_out(processor, std::move(exchange));
  }
}

}  // namespace holdfast::http
