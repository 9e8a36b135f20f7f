#pragma once
// The handlers' surroundings: a ledger and an engine that say what each test wants, without sockets.
#include <catch2/catch.hpp>
#include <regex>

#include "api/hub.h"
#include "api/later.h"
#include "api/metrics.h"
#include "api/render.h"
#include "api/routes.h"

namespace holdfast {

inline const std::string kRun = "run_01M8N30BJBAJEHS3KS1CSNG9W1";

struct FixedClock final : Clock {
  Instant at{1'796'000'000'000};
  [[nodiscard]] Instant now() const override { return at; }
};

struct FakeServer final : http::Server {
  std::map<std::pair<std::string, std::string>, http::Handler> handlers;
  std::map<std::string, http::Access> served;  // "GET /v1/runs/{}", parameters without their names
  std::map<std::pair<std::string, std::string>, http::Glance> glances;  // empty where there is none
  void route(std::string method, std::string pattern, http::Access access, http::Handler handler,
             http::Glance glance) override {
    glances[{method, pattern}] = std::move(glance);
    served[method + " " + std::regex_replace(pattern, std::regex(R"(\{[^}]*\})"), "{}")] = access;
    handlers[{std::move(method), std::move(pattern)}] = std::move(handler);
  }
  [[nodiscard]] Result<std::string> listen() override { return "nowhere"; }
  void wake(std::string_view topic) override { woken.emplace_back(topic); }
  std::vector<std::string> woken;
  void stop_accepting() override {}
  void stop() override {}
};

struct FakeReader final : ledger::Reader {
  std::map<std::string, run::Run, std::less<>> stored;
  std::vector<run::Event> recorded;
  ledger::RunFilter filter;
  std::vector<run::Run> listed;  // newest first
  bool closed = false;  // it must not be asked

  [[nodiscard]] Result<std::optional<run::Run>> run(std::string_view id) override {
    if (closed) FAIL("the ledger was asked");
    const auto found = stored.find(id);
    if (found == stored.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] Result<std::vector<run::Run>> runs(const ledger::RunFilter& wanted) override {
    filter = wanted;
    std::vector<run::Run> out;
    for (const run::Run& run : listed) {
      if (out.size() < wanted.limit && (wanted.before_seq == 0 || run.seq < wanted.before_seq)) out.push_back(run);
    }
    return out;
  }
  [[nodiscard]] Result<std::vector<run::Attempt>> attempts(std::int64_t, std::int64_t,
                                                           std::uint32_t) override {
    return std::vector<run::Attempt>{};
  }
  [[nodiscard]] Result<std::vector<run::Event>> events(std::int64_t, std::int64_t after,
                                                       std::uint32_t limit) override {
    std::vector<run::Event> out;
    for (const run::Event& event : recorded) {
      if (event.seq > after && out.size() < limit) out.push_back(event);
    }
    return out;
  }
  [[nodiscard]] Result<std::vector<ledger::UnknownEntry>> unknowns(const ledger::UnknownFilter&) override {
    return std::vector<ledger::UnknownEntry>{};
  }
  [[nodiscard]] Result<std::optional<ledger::UnknownEntry>> unknown(std::string_view,
                                                                    std::uint32_t) override {
    return std::nullopt;
  }
  [[nodiscard]] Result<std::vector<ledger::AuditEntry>> audit(std::int64_t, std::uint32_t) override {
    return std::vector<ledger::AuditEntry>{};
  }
  [[nodiscard]] Result<std::vector<Breaker>> breakers() override { return std::vector<Breaker>{}; }
};

struct FakeCommands final : api::Commands {
  Result<engine::Submitted> submitted = engine::Submitted{kRun, false};
  Result<engine::StepAdded> added = engine::StepAdded{false};
  Result<void> done;
  run::Run planned;
  engine::Engine::Verdict verdict;
  std::string owner = "nobody asked", forced, noted;
  std::string by;  // who did it, where the engine writes the audit itself
  int calls = 0;
  bool is_ready = true, has_storage = true, is_slow = false;
  engine::Answer<engine::Submitted> later;

  void submit(run::Run run, engine::Answer<engine::Submitted> answer) override {
    ++calls;
    planned = std::move(run);
    if (is_slow)
      later = std::move(answer);
    else
      answer(submitted);
  }
  [[nodiscard]] Result<engine::StepAdded> add_step(std::string, std::string, std::string, std::string,
                                                   engine::Engine::Bind) override {
    ++calls;
    return added;
  }
  [[nodiscard]] Result<std::optional<engine::Submitted>> replay(std::string, std::string key,
                                                                std::string) override {
    return key == "known" ? std::optional(engine::Submitted{"run_00000000000000000000000000", true}) : std::nullopt;
  }
  [[nodiscard]] Result<void> finish(std::string, std::string, run::RunStatus, std::string, std::string,
                                    std::string) override {
    ++calls;
    return done;
  }
  [[nodiscard]] Result<void> cancel(std::string, std::string owner_or_any, std::string who,
                                    std::string) override {
    ++calls;
    by = std::move(who);
    owner = std::move(owner_or_any);
    return done;
  }
  [[nodiscard]] Result<void> resolve(std::string, engine::Engine::Verdict given) override {
    ++calls;
    by = given.who;
    verdict = std::move(given);
    return done;
  }
  [[nodiscard]] Result<Breaker> force_breaker(std::string server, std::string tool, bool open, std::string who,
                                              std::string, std::optional<Duration>) override {
    ++calls;
    by = std::move(who);
    forced = server + "/" + tool + (open ? " open" : " close");
    return Breaker{.server = server, .tool = tool};
  }
  [[nodiscard]] bool ready() const override { return is_ready; }
  [[nodiscard]] bool storage_ok() const override { return has_storage; }
  [[nodiscard]] Result<void> note(std::string who, std::string action, std::string subject, std::string) override {
    noted = who + " " + action + " " + subject;
    return {};
  }
  [[nodiscard]] Result<void> backup(const std::string&) override {
    ++calls;
    return done;
  }
};

inline tools::Config config() {
  tools::Config config;
  tools::ServerConfig server;
  server.name = "api";
  tools::ToolConfig tool;
  tool.policy.server = "api";
  tool.policy.tool = "w";
  server.tools["w"] = tool;
  config.servers["api"] = server;
  return config;
}

struct World {
  FixedClock clock;
  FakeReader reader;
  FakeCommands commands;
  tools::Catalog catalog{config()};
  api::MetricsRegistry metrics{clock};
  api::KnownRuns known;
  engine::Latencies latencies;
  api::LargeAnswers large;
  api::Service service{clock, commands, reader, known, large, catalog, metrics, latencies};
  FakeServer server;
  std::any state;
  std::vector<std::string> watched;

  World() {
    api::add_admin_listener(server, service);
    run::Run run;
    run.id = kRun;
    run.owner = "nightly";
    run.status = run::RunStatus::running;
    run.deadline = clock.at + Duration{60'000};
    run.steps.resize(1);
    run.steps[0].spec.id = "s";
    run.steps[0].status = run::StepStatus::running;
    reader.stored[kRun] = run;
  }
  run::Run& run() { return reader.stored[kRun]; }

  http::Request request(std::map<std::string, std::string> parameters = {{"id", kRun}},
                        std::string body = "") {
    http::Request out;
    out.parameters = std::move(parameters);
    out.body = std::move(body);
    out.state = &state;
    out.watch = [this](std::string_view topic) { watched.emplace_back(topic); };
    return out;
  }
  http::Outcome call(const std::string& method, const std::string& pattern, http::Request& request) {
    return server.handlers.at({method, pattern})(request);
  }
  http::Response answer(const std::string& method, const std::string& pattern, http::Request request) {
    return std::get<http::Response>(call(method, pattern, request));
  }
};

inline const std::string kSubmission = R"({"name":"n","steps":[{"id":"s","server":"api","tool":"w","args":{}}]})";

inline bool says(const http::Response& response, std::string_view text) {
  return response.body.find(text) != std::string::npos;
}

}  // namespace holdfast
