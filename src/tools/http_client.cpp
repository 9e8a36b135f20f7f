// The client's thread: libcurl's multi interface driven by epoll, so that thousands of waiting exchanges cost
// nothing while they wait.
#include "holdfast/tools/http_client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/crash_point.h"
#include "holdfast/core/thread_name.h"
#include "tools/http_client_address.h"
#include "tools/http_client_exchange.h"
#include "tools/http_client_inbox.h"
#include "tools/http_client_lookup.h"
#include "tools/http_client_redirect.h"

namespace holdfast::tools {
namespace {

constexpr long kIdleConnections = 512;
constexpr std::size_t kPooledExchanges = 1024;
constexpr Duration kDrainTime{100};
constexpr std::int64_t kLongestPoll_ms = 60'000;

void start_libcurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw std::runtime_error("libcurl cannot be initialised");
}

class CurlClient final : public HttpClient, private ExchangeHost {
 public:
  explicit CurlClient(const Clock& clock) : clock_(clock), inbox_(std::make_shared<HttpInbox>()) {
    start_libcurl();
    multi_ = curl_multi_init();
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (!multi_ || epoll_ < 0 || inbox_->event() < 0)
      throw std::runtime_error("no descriptors for the HTTP client");
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kIdleConnections);
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
    watch(EPOLL_CTL_ADD, inbox_->event(), EPOLLIN);
    start_thread();
  }

  ~CurlClient() override {
    stop();
    close(epoll_);
  }

  RequestId start(HttpRequest request, HttpCallbacks callbacks) override {
    const RequestId id = next_id_.fetch_add(1, std::memory_order_relaxed);
    inbox_->post(order::Start{id, clock_.now(), std::move(request), std::move(callbacks)});
    return id;
  }
  void cancel(RequestId id) override { inbox_->post(order::Cancel{id}); }
  void at(Instant at, std::function<void()> task) override { inbox_->post(order::Task{at, std::move(task)}); }

  void stop() override {
    inbox_->close_down();
    const std::lock_guard lock(stop_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  using State = Exchange::State;

  // --- the loop
  // ---------------------------------------------------------------------------------------------------------------

  // Signals belong to other threads; a blocked SIGPIPE turns into EPIPE.
  void start_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] {
      name_this_thread("http-out");
      run();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() {
    std::vector<Order> orders;
    while (true) {
      orders.clear();
      if (!inbox_->take(orders)) break;
      for (Order& each : orders) std::visit([this](auto& order) { obey(order); }, each);
      fire_timers();
      if (curl_due_ && clock_.now() >= *curl_due_) {
        curl_due_.reset();
        act(CURL_SOCKET_TIMEOUT, 0);
      }
      reap();
      poll();
      reap();
    }
    end_everything();
  }

  void poll() {
    std::array<epoll_event, 256> events;
    const std::int64_t wait_ms = time_to_wait_ms();
    const bool may_wait = wait_ms > 0 && inbox_->may_sleep();
    const int n = epoll_wait(epoll_, events.data(), events.size(), may_wait ? static_cast<int>(wait_ms) : 0);
    for (int i = 0; i < n; ++i) {
      if (events[i].data.fd == inbox_->event()) {
        inbox_->woken();
        continue;
      }
      const int mask = ((events[i].events & EPOLLIN) ? CURL_CSELECT_IN : 0) |
                       ((events[i].events & EPOLLOUT) ? CURL_CSELECT_OUT : 0) |
                       ((events[i].events & (EPOLLERR | EPOLLHUP)) ? CURL_CSELECT_ERR : 0);
      act(events[i].data.fd, mask);
    }
  }

  void act(curl_socket_t socket, int mask) {
    int running = 0;
    curl_multi_socket_action(multi_, socket, mask, &running);
  }

  [[nodiscard]] std::int64_t time_to_wait_ms() const {
    const std::int64_t now = clock_.now().ms;
    std::int64_t due = now + kLongestPoll_ms;
    if (curl_due_) due = std::min(due, curl_due_->ms);
    if (!timers_.empty()) due = std::min(due, timers_.begin()->first);
    if (!tasks_.empty()) due = std::min(due, tasks_.begin()->first);
    return std::max<std::int64_t>(0, due - now);
  }

  void watch(int operation, int fd, std::uint32_t interest) const {
    epoll_event event{};
    event.events = interest;
    event.data.fd = fd;
    const int other = operation == EPOLL_CTL_ADD ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    // A closed descriptor leaves epoll by itself, and its number may come back.
    if (epoll_ctl(epoll_, operation, fd, &event) != 0 && operation != EPOLL_CTL_DEL &&
        (errno == EEXIST || errno == ENOENT))
      epoll_ctl(epoll_, other, fd, &event);
  }

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    const auto& client = *static_cast<CurlClient*>(self);
    if (what == CURL_POLL_REMOVE) {
      client.watch(EPOLL_CTL_DEL, socket, 0);
      return 0;
    }
    const std::uint32_t interest =
        ((what & CURL_POLL_IN) ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) ? EPOLLOUT : 0u);
    client.watch(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, interest);
    if (!known) curl_multi_assign(client.multi_, socket, self);
    return 0;
  }

  static int on_timer(CURLM*, long wait_ms, void* self) {
    auto& client = *static_cast<CurlClient*>(self);
    if (wait_ms < 0)
      client.curl_due_.reset();
    else
      client.curl_due_ = client.clock_.now() + Duration{wait_ms};
    return 0;
  }

  // --- orders
  // -----------------------------------------------------------------------------------------------------------------

  void obey(order::Start& order) {
    Exchange& exchange = *live_.emplace(order.id, fresh_exchange()).first->second;
    exchange.id = order.id;
    exchange.request = std::move(order.request);
    exchange.callbacks = std::move(order.callbacks);
    exchange.started = order.asked_at;
    exchange.state = State::running;
    arm(exchange, exchange.request.deadline);
    if (exchange.request.deadline <= clock_.now())
      return give_up_before_start(exchange, Failure::timeout, "no time was left for the call; nothing sent");
    launch(exchange);
  }

  void obey(const order::Cancel& order) {
    const auto found = live_.find(order.id);
    if (found == live_.end()) return;
    Exchange& exchange = *found->second;
    if (exchange.state == State::running)
      give_up(exchange, Failure::cancelled);
    else
      retire(exchange, false);
  }

  void obey(order::Task& order) { tasks_.emplace(order.at.ms, std::move(order.run)); }

  void obey(const order::LookedUp& order) {
    const auto found = live_.find(order.id);
    if (found == live_.end() || !found->second->looking_up) return;
    Exchange& exchange = *found->second;
    HttpOutcome outcome = outcome_of(exchange, CURLE_COULDNT_RESOLVE_HOST);
    if (order.missing && outcome.failure == Failure::dns_temporary) {
      outcome.failure = Failure::dns_not_found;
      outcome.detail = "the name does not exist; nothing sent";
    }
    report(exchange, std::move(outcome));
    retire(exchange, false);
  }

  // --- the life of an exchange
  // ------------------------------------------------------------------------------------------------

  std::unique_ptr<Exchange> fresh_exchange() {
    if (pool_.empty()) return std::make_unique<Exchange>(static_cast<ExchangeHost&>(*this));
    auto exchange = std::move(pool_.back());
    pool_.pop_back();
    return exchange;
  }

  void launch(Exchange& exchange) {
    if (auto problem = prepare(exchange, exchange.request.deadline - clock_.now()))
      return give_up_before_start(exchange, Failure::address_refused, std::move(*problem));
    if (curl_multi_add_handle(multi_, exchange.easy) != CURLM_OK)
      give_up_before_start(exchange, Failure::local_resource,
                           "libcurl takes no further transfer; nothing sent");
  }

  void give_up_before_start(Exchange& exchange, Failure failure, std::string detail) {
    HttpOutcome outcome;
    const bool seen_elsewhere = exchange.earlier_sent > 0;  // by an earlier hop
    outcome.phase = seen_elsewhere ? Phase::tx_all : Phase::local;
    outcome.failure = seen_elsewhere ? Failure::connection_lost : failure;
    outcome.detail = std::move(detail);
    outcome.bytes_sent = exchange.earlier_sent;
    outcome.bytes_received = exchange.earlier_received;
    report(exchange, std::move(outcome));
    retire(exchange, false);
  }

  // Lingering is for answers alone: a request that is not all out by now must not go on leaving after we said
  // so.
  void give_up(Exchange& exchange, Failure failure) {
    HttpOutcome outcome = cut_outcome(exchange, failure, clock_.now());
    const bool lingers = exchange.request.linger.count() > 0 && all_sent(exchange) && exchange.callbacks.late;
    if (outcome.phase == Phase::tx_part) drop_unsent(exchange);
    report(exchange, std::move(outcome));
    if (!lingers) return retire(exchange, false);
    exchange.state = State::lingering;
    arm(exchange, clock_.now() + exchange.request.linger);
  }

  void stopped(Exchange& exchange) override {
    if (exchange.state != State::running) return;
    report(exchange, outcome_of(exchange, CURLE_OK));
    exchange.state = State::draining;
    arm(exchange, clock_.now() + kDrainTime);
  }

  static void report(Exchange& exchange, HttpOutcome outcome) {
    const auto done = std::move(exchange.callbacks.done);
    exchange.callbacks.done = nullptr;
    if (outcome.phase >= Phase::rx_all) crash_point(CrashPoint::answer_read);
    if (done) done(std::move(outcome));
  }

  // All of them are taken first: libcurl looks through those that are left whenever a transfer is taken away.
  void reap() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      void* self = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
      ended_.emplace_back(static_cast<Exchange*>(self), message->data.result);
    }
    for (const auto& [exchange, code] : ended_) finish(*exchange, code);
    ended_.clear();
  }

  void finish(Exchange& exchange, CURLcode code) {
    if (exchange.state == State::draining) return retire(exchange, code == CURLE_OK);
    if (ask_again(exchange, code)) return;
    HttpOutcome outcome = outcome_of(exchange, code);
    if (exchange.state == State::running && outcome.failure == Failure::none) {
      const Hop hop = follow(exchange, outcome);
      if (hop == Hop::next) {
        curl_multi_remove_handle(multi_, exchange.easy);
        return launch(exchange);
      }
      if (hop == Hop::limit) {
        outcome.failure = Failure::redirect_limit;
        outcome.detail = "more than " + std::to_string(kMostHops) + " redirects; the last one is " +
                         std::to_string(outcome.status);
      }
    }
    if (exchange.state == State::running)
      report(exchange, std::move(outcome));
    else if (outcome.status != 0 && exchange.callbacks.late)
      exchange.callbacks.late(std::move(outcome));
    retire(exchange, code == CURLE_OK);
  }

  [[nodiscard]] bool ask_again(Exchange& exchange, CURLcode code) {
    if (code != CURLE_COULDNT_RESOLVE_HOST || exchange.state != State::running) return false;
    const auto origin = origin_of(exchange.request.url);
    if (!origin) return false;
    exchange.looking_up = ask_whether_missing(origin->host, [inbox = inbox_, id = exchange.id](bool missing) {
      inbox->post(order::LookedUp{id, missing});
    });
    if (exchange.looking_up) curl_multi_remove_handle(multi_, exchange.easy);
    return exchange.looking_up;
  }

  // Only handles of clean exchanges are used again: libcurl keeps the last error number of a failed one.
  void retire(Exchange& exchange, bool clean) {
    disarm(exchange);
    curl_multi_remove_handle(multi_, exchange.easy);
    const auto found = live_.find(exchange.id);
    std::unique_ptr<Exchange> owned = std::move(found->second);
    live_.erase(found);
    reset(*owned);
    if (clean && pool_.size() < kPooledExchanges) pool_.push_back(std::move(owned));
  }

  // --- timers
  // -----------------------------------------------------------------------------------------------------------------

  void arm(Exchange& exchange, Instant when) {
    disarm(exchange);
    exchange.timer_node.key() = when.ms;
    exchange.timer_node.mapped() = &exchange;
    exchange.timer = timers_.insert(std::move(exchange.timer_node));
  }

  void disarm(Exchange& exchange) {
    if (exchange.timer_node.empty()) exchange.timer_node = timers_.extract(exchange.timer);
  }

  void fire_timers() {
    const std::int64_t now = clock_.now().ms;
    while (!timers_.empty() && timers_.begin()->first <= now) {
      Exchange& exchange = *timers_.begin()->second;
      if (exchange.state == State::running)
        give_up(exchange, Failure::timeout);
      else
        retire(exchange, false);
    }
    while (!tasks_.empty() && tasks_.begin()->first <= now) {
      const auto task = tasks_.extract(tasks_.begin());
      task.mapped()();
    }
  }

  void end_everything() {
    for (auto& [id, exchange] : live_) {
      disarm(*exchange);
      curl_multi_remove_handle(multi_, exchange->easy);
    }
    curl_multi_cleanup(multi_);
    sockets.clear();
    routes.clear();
    live_.clear();
    pool_.clear();
    tasks_.clear();
  }

  const Clock& clock_;
  std::shared_ptr<HttpInbox> inbox_;
  std::atomic<RequestId> next_id_{1};
  std::mutex stop_mutex_;
  std::thread thread_;

  // Below: the client's thread only.
  CURLM* multi_ = nullptr;
  int epoll_ = -1;
  std::optional<Instant> curl_due_;
  Exchange::Timers timers_;
  std::multimap<std::int64_t, std::function<void()>> tasks_;
  std::unordered_map<RequestId, std::unique_ptr<Exchange>> live_;
  std::vector<std::unique_ptr<Exchange>> pool_;
  std::vector<std::pair<Exchange*, CURLcode>> ended_;  // while reap() is at work
};

}  // namespace

std::string_view HttpHeaders::get(std::string_view lower_name) const {
  const auto found =
      std::ranges::find(list, lower_name, [](const auto& field) { return std::string_view(field.first); });
  return found == list.end() ? std::string_view{} : std::string_view(found->second);
}

std::string HttpHeaders::all(std::string_view lower_name) const {
  std::string out;
  bool first = true;
  for (const auto& [name, value] : list) {
    if (name != lower_name) continue;
    if (!first) out += ", ";
    first = false;
    out += value;
  }
  return out;
}

std::unique_ptr<HttpClient> make_curl_client(const Clock& clock) {
  return std::make_unique<CurlClient>(clock);
}

}  // namespace holdfast::tools
