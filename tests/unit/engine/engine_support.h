#pragma once
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include "holdfast/core/ids.h"
#include "holdfast/engine/engine.h"
#include "holdfast/run/plan.h"
#include "support/forwarding_ledger.h"

namespace holdfast::testing {

class HandClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return at; }
  Instant at{1'800'000'000'000};
};

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-engine-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

/// Collects calls instead of sending them.
class FakeTransport final : public tools::Transport {
 public:
  void start(tools::Call call) override {
    if (on_start) on_start(call);
    calls.push_back(std::move(call));
  }
  void cancel(tools::CallId id) override { cancelled.push_back(id); }
  void stop() override {}
  std::function<void(const tools::Call&)> on_start;
  std::vector<tools::Call> calls;
  std::vector<tools::CallId> cancelled;
};

class NoMetrics final : public engine::Metrics {
 public:
  void attempt_finished(std::string_view, std::string_view, AttemptClass, double, bool) override {}
  void run_settled(run::RunStatus) override {}
  void retried(Reason, std::string_view why) override { retries.emplace_back(why); }
  void retry_budget_exhausted() override {}
  void late_answer() override { ++late_answers; }
  void fallback(std::string_view, std::string_view) override { ++fallbacks; }
  void circuit(std::string_view, std::string_view, BreakerState, bool) override {}
  void committed(double, std::size_t) override { ++commits; }
  void gauges(const engine::RunsByStatus& o, std::uint64_t unknown, std::optional<Instant>,
              std::optional<Instant>, Instant, std::uint64_t) override {
    open = o;
    unknown_writes = unknown;
  }
  int commits = 0, late_answers = 0, fallbacks = 0;
  std::vector<std::string> retries;
  engine::RunsByStatus open;
  std::uint64_t unknown_writes = 0;
};

class NoObserver final : public engine::Observer {
 public:
  void run_changed(std::string_view id, bool) override { changed.emplace_back(id); }
  void run_left(run::Run run) override { left.push_back(std::move(run)); }
  void run_pruned(std::string_view id) override { pruned.emplace_back(id); }
  std::vector<std::string> changed, pruned;
  std::vector<run::Run> left;
};

/// The real ledger, with a switch that makes commits fail.
class SwitchLedger final : public ForwardingLedger {
 public:
  using ForwardingLedger::ForwardingLedger;
  Result<ledger::Committed> commit(ledger::Batch& batch) override {
    if (full) return std::unexpected(Error{"storage_full", "no space left", ""});
    return ForwardingLedger::commit(batch);
  }
  Result<std::optional<Submission>> find_submission(std::string_view owner, std::string_view key) override {
    if (corrupt) return std::unexpected(Error{"storage_broken", "the page is malformed", ""});
    return ForwardingLedger::find_submission(owner, key);
  }
  void when_broken(std::function<void(const Error&)> tell) override { broken = std::move(tell); }
  bool full = false, corrupt = false;
  std::function<void(const Error&)> broken;
};

inline constexpr const char* kConfig = R"(
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    max_in_flight: 2
    tools:
      read: {effect: read, request: {method: GET, path: /read}}
      plain: {effect: write, request: {method: POST, path: /plain}}
      keyed: {effect: write, request: {method: POST, path: /keyed}, key: {header: Idempotency-Key}}
)";

/// One life of the product without sockets and threads.
struct Life {
  explicit Life(const std::filesystem::path& folder, HandClock& clock_, std::size_t inbox = 100,
                const std::string& yaml = kConfig)
      : place(folder), clock(clock_) {
    auto db = ledger::open_sqlite({(folder / "holdfast.db").string(), 1, true});
    if (!db) FAIL(db.error().message);
    opened = std::move(*db);
    ledger.emplace(*opened.ledger);
    catalog.emplace(config_of(yaml));
    engine.emplace(clock, *random, *ledger, *catalog, transport, observer, metrics,
                   engine::Options{inbox, Duration{1'000}});
    REQUIRE(engine->load());
  }

  tools::Config config_of(const std::string& yaml) const {
    std::ofstream(place / "c.yaml") << yaml;
    auto config = tools::load_config((place / "c.yaml").string(),
                                     [](const std::string&) -> const char* { return nullptr; });
    if (!config) FAIL(config.error().message);
    return std::move(*config);
  }

  run::Run plan(const std::string& body) const {
    run::PlanContext context;
    context.find_tool = [&](std::string_view s, std::string_view t) -> const ToolPolicy* {
      const auto* tool = catalog->find(s, t);
      return tool ? &tool->policy : nullptr;
    };
    context.server_exists = [&](std::string_view s) { return catalog->server(s) != nullptr; };
    context.now = clock.now();
    const auto document = json::parse(body);
    REQUIRE(document);
    auto planned = run::plan(*document, context);
    if (!planned) FAIL(planned.error().message + " " + planned.error().pointer);
    return std::move(*planned);
  }

  /// A chain of steps of these tools; nullopt when the engine refused it.
  std::optional<Result<engine::Submitted>> submit(const std::vector<std::string>& tools,
                                                  const std::string& key = {}) {
    std::string steps;
    for (std::size_t i = 0; i < tools.size(); ++i)
      steps += (i ? "," : "") + ("{\"id\":\"s" + std::to_string(i)) + "\",\"server\":\"api\",\"tool\":\"" +
               tools[i] + "\",\"args\":{\"n\":1.50}}";
    run::Run planned = plan("{\"name\":\"t\",\"steps\":[" + steps + "]}");
    planned.submit_key = key;
    auto answer = std::make_shared<std::optional<Result<engine::Submitted>>>();
    engine->submit(std::move(planned), [answer](Result<engine::Submitted> r) { *answer = std::move(r); });
    (void)engine->turn();
    return *answer;
  }

  void answer(const tools::Call& call, Evidence evidence) {
    engine->finished(call.id, std::move(evidence));
    (void)engine->turn();
  }

  run::Run stored(const std::string& id) {
    auto found = opened.reader->run(id);
    REQUIRE(found);
    REQUIRE(*found);
    return std::move(**found);
  }

  std::filesystem::path place;
  HandClock& clock;
  std::unique_ptr<Random> random = seeded_random(3);
  ledger::Opened opened;
  std::optional<SwitchLedger> ledger;
  std::optional<tools::Catalog> catalog;
  FakeTransport transport;
  NoObserver observer;
  NoMetrics metrics;
  std::optional<engine::Engine> engine;
};

inline Evidence good(std::string result = "{\"ok\":true}") {
  Evidence e;
  e.phase = Phase::parsed;
  e.answer = Answer::http;
  e.http_status = 200;
  e.result = std::move(result);
  return e;
}

inline Evidence lost() {
  Evidence e;
  e.phase = Phase::tx_all;
  e.failure = Failure::connection_lost;
  e.bytes_sent = 80;
  return e;
}

}  // namespace holdfast::testing
