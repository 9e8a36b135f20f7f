#pragma once
// An HttpClient without sockets: tests answer each request by hand, time moves only when told to.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/tools/http_client.h"
#include "holdfast/tools/transport.h"

namespace holdfast::test {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  void set(Instant at) { now_ = at; }

 private:
  Instant now_{1'000'000};
};

class FakeHttp final : public tools::HttpClient {
 public:
  struct Exchange {
    tools::RequestId id = 0;
    tools::HttpRequest request;
    tools::HttpCallbacks callbacks;
    bool seen = false;       // the script has had it
    bool open = true;        // done() has not run
    bool lingering = false;  // done() has reported a timeout, late() may come
    bool streaming = false;

    [[nodiscard]] std::string header(std::string_view lower_name) const {
      for (const auto& [name, value] : request.headers) {
        const bool same = std::ranges::equal(
            name, lower_name, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
        if (same) return value;
      }
      return {};
    }
    [[nodiscard]] bool says(std::string_view text) const {
      return request.body.find(text) != std::string::npos;
    }
  };

  explicit FakeHttp(ManualClock& clock) : clock_(clock) {}

  tools::RequestId start(tools::HttpRequest request, tools::HttpCallbacks callbacks) override {
    const tools::RequestId id = exchanges.size() + 1;
    exchanges.push_back({id, std::move(request), std::move(callbacks)});
    return id;
  }
  void cancel(tools::RequestId id) override {
    at(Instant{}, [this, id] {
      Exchange& x = exchanges[id - 1];
      x.lingering = false;
      if (x.open) fail(x, Failure::cancelled, Phase::tx_all);
    });
  }
  void at(Instant when, std::function<void()> task) override { tasks_.emplace(when.ms, std::move(task)); }
  void stop() override { exchanges.clear(); }

  /// Runs what is due and hands new requests to the script, until nothing is left to do.
  void pump() {
    for (bool busy = true; busy;) {
      busy = false;
      while (!tasks_.empty() && tasks_.begin()->first <= clock_.now().ms) {
        const auto task = std::move(tasks_.begin()->second);
        tasks_.erase(tasks_.begin());
        task();
        busy = true;
      }
      for (std::size_t i = 0; i < exchanges.size(); ++i) {
        if (exchanges[i].seen || !exchanges[i].open) continue;
        exchanges[i].seen = busy = true;
        if (script) script(exchanges[i]);
      }
    }
  }

  /// Moves time on, from event to event.
  void advance(Duration by) {
    const Instant end = clock_.now() + by;
    for (;;) {
      pump();
      std::int64_t next = end.ms;
      if (!tasks_.empty()) next = std::min(next, std::max(tasks_.begin()->first, clock_.now().ms));
      for (const Exchange& x : exchanges) {
        if (x.open) next = std::min(next, x.request.deadline.ms);
      }
      clock_.set(Instant{std::max(next, clock_.now().ms)});
      expire();
      pump();
      if (clock_.now() >= end) return;
    }
  }

  void answer(Exchange& x, int status, std::string body, std::string type = "application/json",
              std::vector<std::pair<std::string, std::string>> headers = {}) {
    tools::HttpOutcome outcome;
    outcome.phase = Phase::rx_all;
    outcome.status = status;
    outcome.headers.list = std::move(headers);
    if (!type.empty()) outcome.headers.list.emplace_back("content-type", type);
    outcome.body = std::move(body);
    outcome.bytes_sent = x.request.body.size();
    outcome.bytes_received = outcome.body.size();
    end(x, std::move(outcome));
  }
  void fail(Exchange& x, Failure failure, Phase phase) {
    tools::HttpOutcome outcome;
    outcome.phase = phase;
    outcome.failure = failure;
    outcome.bytes_sent = phase >= Phase::tx_part ? x.request.body.size() : 0;
    end(x, std::move(outcome));
  }
  void open_stream(Exchange& x, std::vector<std::pair<std::string, std::string>> headers = {}) {
    tools::HttpHeaders list{std::move(headers)};
    list.list.emplace_back("content-type", "text/event-stream");
    x.streaming = x.callbacks.stream && x.callbacks.stream(200, list);
  }
  void piece(Exchange& x, std::string_view text) {
    if (!x.callbacks.chunk(text)) end_stream(x);
  }
  void end_stream(Exchange& x, Failure failure = Failure::none) {
    tools::HttpOutcome outcome;
    outcome.phase = Phase::rx_part_body;
    outcome.failure = failure;
    outcome.status = 200;
    outcome.headers.list = {{"content-type", "text/event-stream"}};
    outcome.bytes_sent = x.request.body.size();
    end(x, std::move(outcome));
  }

  /// Requests whose body names this JSON-RPC method; "GET" for resume requests.
  std::vector<Exchange*> of(std::string_view method) {
    std::vector<Exchange*> found;
    for (Exchange& x : exchanges) {
      const bool same =
          method == "GET" ? x.request.method == "GET" : x.says("\"method\":\"" + std::string(method) + "\"");
      if (same) found.push_back(&x);
    }
    return found;
  }

  std::function<void(Exchange&)> script;
  std::deque<Exchange> exchanges;

 private:
  void end(Exchange& x, tools::HttpOutcome outcome) {
    if (x.open) {
      x.open = false;
      x.callbacks.done(std::move(outcome));
    } else if (std::exchange(x.lingering, false) && outcome.failure == Failure::none) {
      x.callbacks.late(std::move(outcome));
    }
  }
  void expire() {
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      Exchange& x = exchanges[i];
      if (!x.open || x.request.deadline > clock_.now()) continue;
      x.lingering = x.request.linger.count() > 0 && x.callbacks.late;
      fail(x, Failure::timeout, x.streaming ? Phase::rx_part_body : Phase::tx_all);
    }
  }

  ManualClock& clock_;
  std::multimap<std::int64_t, std::function<void()>> tasks_;
};

/// Keeps what a transport reported.
class RecordingSink final : public tools::CallSink {
 public:
  void finished(tools::CallId id, Evidence evidence) override { done[id].push_back(std::move(evidence)); }
  void late(tools::CallId id, Evidence evidence) override { late_answers[id].push_back(std::move(evidence)); }

  std::map<tools::CallId, std::vector<Evidence>> done;
  std::map<tools::CallId, std::vector<Evidence>> late_answers;
};

}  // namespace holdfast::test
