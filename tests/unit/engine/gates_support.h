#pragma once
#include "unit/engine/engine_support.h"

namespace holdfast::testing {

inline const std::string kGates = R"(
limits: {concurrent_calls: 4}
defaults: {max_attempts: 3, backoff: {base: 250ms, cap: 10s}, run_deadline: 1h}
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    probe: {tool: rates}
    max_in_flight: 2
    breaker: {consecutive_failures: 1, cooldown: 1s, max_cooldown: 8s}
    tools:
      rates: {effect: read, request: {method: GET, path: /rates}}
      read: {effect: read, request: {method: POST, path: /read}}
      plain: {effect: write, request: {method: POST, path: /plain}}
  bare:
    http: {base_url: "http://127.0.0.1:9"}
    breaker: {consecutive_failures: 1, cooldown: 1s}
    tools:
      read: {effect: read, request: {method: POST, path: /read}}
      plain: {effect: write, request: {method: POST, path: /plain}}
      checked:
        effect: write
        request: {method: POST, path: /checked}
        check: {tool: read, found: {pointer: /n, not: 0}}
  crm:
    mcp: {url: "http://127.0.0.1:9/mcp"}
    deadline: 2s
    breaker: {consecutive_failures: 1, cooldown: 1s}
    tools:
      plain: {effect: write}
  calm:
    http: {base_url: "http://127.0.0.1:9"}
    breaker: {enabled: false}
    max_in_flight: 4
    tools:
      read: {effect: read, request: {method: POST, path: /read}}
)";

struct World {
  explicit World(const std::string& yaml_ = kGates) : yaml(yaml_) { begin(); }

  void begin() {
    life.reset();
    clock.at = clock.at + Duration{1};  // each life draws the same numbers: run ids must differ by time
    life.emplace(folder.path, clock, 1'000, yaml);
  }
  /// One run of one step for each place, such as `api/plain`; they are in one plan, one after the other.
  std::string submit(const std::vector<std::string>& places, const std::string& more = "") {
    std::string steps;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto slash = places[i].find('/');
      steps += (i ? "," : "") + ("{\"id\":\"s" + std::to_string(i)) + "\",\"server\":\"" +
               places[i].substr(0, slash) + "\",\"tool\":\"" + places[i].substr(slash + 1) + "\"}";
    }
    std::string id;
    life->engine->submit(life->plan("{\"steps\":[" + steps + "]" + more + "}"),
                         [&](Result<engine::Submitted> r) { id = r->run_id; });
    turn();
    return id;
  }
  void turn() { (void)life->engine->turn(); }
  /// Time goes on; the loop turns whenever something is due.
  void pass(Duration span) {
    const Instant end = clock.at + span;
    for (;;) {
      const auto next = life->engine->turn();
      if (!next || *next > end) break;
      clock.at = std::max(clock.at + Duration{1}, *next);
    }
    clock.at = end;
    turn();
  }
  [[nodiscard]] std::size_t sent() const { return life->transport.calls.size(); }
  const tools::Call& last() {
    REQUIRE_FALSE(life->transport.calls.empty());
    return life->transport.calls.back();
  }
  void answer_last(Evidence evidence) {
    const tools::Call call = last();
    life->answer(call, std::move(evidence));
  }
  run::Step step(const std::string& id, std::size_t index = 0) { return life->stored(id).steps.at(index); }
  Breaker breaker(const std::string& server, const std::string& tool = "") {
    const auto all = life->opened.reader->breakers();
    REQUIRE(all);
    for (const Breaker& b : *all)
      if (b.server == server && b.tool == tool) return b;
    return {};
  }
  RateGate gate(const std::string& server) {
    auto open = life->opened.ledger->load_open();
    REQUIRE(open);
    for (const RateGate& g : open->gates)
      if (g.server == server) return g;
    return {};
  }
  /// The server's circuit opens: this write finds nobody there, and waits.
  std::string trip(const std::string& place = "api/plain") {
    const std::string id = submit({place});
    answer_last(unreachable());
    return id;
  }

  static Evidence unreachable() {
    Evidence e;
    e.phase = Phase::tcp;
    e.failure = Failure::connect;
    return e;
  }
  static Evidence status(int code, const std::string& retry_after = "") {
    Evidence e = good("{}");
    e.http_status = code;
    e.retry_after = retry_after;
    return e;
  }
  static Evidence timeout() {
    Evidence e = lost();
    e.failure = Failure::timeout;
    return e;
  }

  std::string yaml;
  Folder folder;
  HandClock clock;
  std::optional<Life> life;
};

}  // namespace holdfast::testing
