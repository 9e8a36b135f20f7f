// The handlers against a ledger and an engine that say what each test wants, without sockets.
#include <catch2/catch.hpp>

#include "api/hub.h"
#include "api/later.h"
#include "api/metrics.h"
#include "api/render.h"
#include "api/routes.h"

using namespace holdfast;

namespace {

const std::string kRun = "run_01M8N30BJBAJEHS3KS1CSNG9W1";

struct FixedClock final : Clock {
  Instant at{1'796'000'000'000};
  [[nodiscard]] Instant now() const override { return at; }
};

struct FakeServer final : http::Server {
  std::map<std::pair<std::string, std::string>, http::Handler> handlers;
  void route(std::string method, std::string pattern, http::Access, http::Handler handler) override {
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
  std::vector<run::Run> listed;

  [[nodiscard]] Result<std::optional<run::Run>> run(std::string_view id) override {
    const auto found = stored.find(id);
    if (found == stored.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] Result<std::vector<run::Run>> runs(const ledger::RunFilter& wanted) override {
    filter = wanted;
    return listed;
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
  int calls = 0;
  bool is_ready = true, is_slow = false;
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
  [[nodiscard]] Result<void> cancel(std::string, std::string owner_or_any, std::string,
                                    std::string) override {
    ++calls;
    owner = std::move(owner_or_any);
    return done;
  }
  [[nodiscard]] Result<void> resolve(std::string, engine::Engine::Verdict given) override {
    ++calls;
    verdict = std::move(given);
    return done;
  }
  [[nodiscard]] Result<Breaker> force_breaker(std::string server, std::string tool, bool open, std::string,
                                              std::string, std::optional<Duration>) override {
    ++calls;
    forced = server + "/" + tool + (open ? " open" : " close");
    return Breaker{.server = server, .tool = tool};
  }
  [[nodiscard]] bool ready() const override { return is_ready; }
  [[nodiscard]] Result<void> note(std::string by, std::string action, std::string subject, std::string) override {
    noted = by + " " + action + " " + subject;
    return {};
  }
  [[nodiscard]] Result<void> backup(const std::string&) override {
    ++calls;
    return done;
  }
};

tools::Config config() {
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
  api::LargeAnswers large;
  api::Service service{clock, commands, reader, known, large, catalog, metrics};
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

const std::string kSubmission = R"({"name":"n","steps":[{"id":"s","server":"api","tool":"w","args":{}}]})";

bool says(const http::Response& response, std::string_view text) {
  return response.body.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a submission is 201 with its place, a repeated one 200 and marked") {
  World world;
  auto request = world.request({}, kSubmission);
  request.headers.emplace("idempotency-key", "k1");
  request.identity = {"nightly", false};
  auto response = world.answer("POST", "/v1/runs", request);
  CHECK(response.status == 201);
  CHECK(response.headers ==
        std::vector<std::pair<std::string, std::string>>{{"Location", "/v1/runs/" + kRun}});
  CHECK(world.commands.planned.owner == "nightly");
  CHECK(world.commands.planned.submit_key == "k1");
  world.commands.submitted = engine::Submitted{kRun, true};
  world.state.reset();
  response = world.answer("POST", "/v1/runs", request);
  CHECK(response.status == 200);
  CHECK(response.headers.back() == std::pair<std::string, std::string>{"Idempotency-Replayed", "true"});
}

TEST_CASE("a submission holds no thread while its commit is under way") {
  World world;
  world.commands.is_slow = true;
  auto request = world.request({}, kSubmission);
  auto outcome = world.call("POST", "/v1/runs", request);
  REQUIRE(std::holds_alternative<http::Park>(outcome));
  CHECK(std::get<http::Park>(outcome).until == world.clock.at + api::kLongestCommit);
  REQUIRE(world.watched.size() == 1);

  request.resumed = true;  // woken by something else: it goes on waiting and asks nothing twice
  CHECK(std::holds_alternative<http::Park>(world.call("POST", "/v1/runs", request)));
  CHECK(world.commands.calls == 1);

  world.commands.later(engine::Submitted{kRun, false});
  CHECK(world.server.woken == world.watched);
  outcome = world.call("POST", "/v1/runs", request);
  REQUIRE(std::holds_alternative<http::Response>(outcome));
  CHECK(std::get<http::Response>(outcome).status == 201);
  CHECK(world.commands.calls == 1);
}

TEST_CASE("a submission whose commit takes too long says that it may still take effect") {
  World world;
  world.commands.is_slow = true;
  auto request = world.request({}, kSubmission);
  REQUIRE(std::holds_alternative<http::Park>(world.call("POST", "/v1/runs", request)));
  request.waited_out = true;
  const auto response = std::get<http::Response>(world.call("POST", "/v1/runs", request));
  CHECK(response.status == 503);
  CHECK(says(response, "commit_timeout"));
}

TEST_CASE("who waits for a run that is known to move is parked without a look at the ledger") {
  World world;
  world.known.changed(kRun, false);
  world.reader.stored.clear();
  auto request = world.request();
  request.query.emplace("wait", "30s");
  CHECK(std::holds_alternative<http::Park>(world.call("GET", "/v1/runs/{id}", request)));
  run::Run settled;
  settled.id = kRun;
  settled.status = run::RunStatus::succeeded;
  world.known.settled(settled);
  world.known.changed(kRun, true);
  const auto response = std::get<http::Response>(world.call("GET", "/v1/runs/{id}", request));
  CHECK(response.status == 200);
  CHECK(says(response, "\"settled\":true"));
}

TEST_CASE("a submission that is refused reaches no engine") {
  World world;
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{""}, kSubmission},
      {{"  "}, kSubmission},
      {{"a", "b"}, kSubmission},
      {{"a", "a"}, kSubmission},
      {{std::string(256, 'k')}, kSubmission},
      {{"a\r\nX: 1"}, kSubmission},
      {{}, "{"},
      {{}, "[]"},
      {{}, ""},
      {{}, R"({"steps":[]})"}};
  for (const auto& [keys, body] : rows) {
    auto request = world.request({}, body);
    for (const auto& key : keys) request.headers.emplace("idempotency-key", key);
    INFO(body);
    CHECK(world.answer("POST", "/v1/runs", request).status == 400);
  }
  CHECK(world.commands.calls == 0);
}

TEST_CASE("what the engine refuses has its status and says when to come again") {
  World world;
  for (const auto& [code, status, hint] : {std::tuple{"key_reused", 422, false},
                                           {"overloaded", 503, true},
                                           {"shutting_down", 503, true},
                                           {"storage_full", 507, true},
                                           {"commit_timeout", 503, true}}) {
    world.commands.submitted = std::unexpected(Error{code, "because", ""});
    world.state.reset();
    const auto response = world.answer("POST", "/v1/runs", world.request({}, kSubmission));
    INFO(code);
    CHECK(response.status == status);
    CHECK(std::ranges::any_of(response.headers, [](const auto& h) { return h.first == "Retry-After"; }) ==
          hint);
  }
}

TEST_CASE("a run is waited for until it settles, needs a person, or the wait is over") {
  World world;
  auto request = world.request();
  CHECK(std::holds_alternative<http::Response>(world.call("GET", "/v1/runs/{id}", request)));
  request.query.emplace("wait", "30s");
  auto outcome = world.call("GET", "/v1/runs/{id}", request);
  REQUIRE(std::holds_alternative<http::Park>(outcome));
  const Instant until = std::get<http::Park>(outcome).until;
  CHECK(until == world.clock.at + Duration{30'000});
  CHECK(world.watched.back() == api::rest_topic(kRun));

  world.clock.at = world.clock.at + Duration{10'000};
  outcome = world.call("GET", "/v1/runs/{id}", request);
  REQUIRE(std::holds_alternative<http::Park>(outcome));
  CHECK(std::get<http::Park>(outcome).until == until);  // woken early: the wait does not start again

  world.run().status = run::RunStatus::unknown;
  CHECK(std::holds_alternative<http::Response>(world.call("GET", "/v1/runs/{id}", request)));
  world.run().status = run::RunStatus::running;
  request.waited_out = true;
  CHECK(std::holds_alternative<http::Response>(world.call("GET", "/v1/runs/{id}", request)));
}

TEST_CASE("a client token lists and cancels its own runs only") {
  World world;
  auto request = world.request({});
  request.identity = {"other", false};
  (void)world.answer("GET", "/v1/runs", request);
  CHECK(world.reader.filter.owner == "other");
  request.parameters = {{"id", kRun}};
  (void)world.answer("POST", "/v1/runs/{id}/cancel", request);
  CHECK(world.commands.owner == "other");
  request.identity = {"ops", true};
  (void)world.answer("POST", "/v1/runs/{id}/cancel", request);
  CHECK(world.commands.owner.empty());
}

TEST_CASE("a large settled run is told from one text, with the time that is left now") {
  World world;
  world.run().status = run::RunStatus::succeeded;
  world.run().result = '"' + std::string(200'000, 'x') + '"';
  const auto first = world.answer("GET", "/v1/runs/{id}", world.request());
  REQUIRE(first.shared_body != nullptr);
  CHECK((first.body + *first.shared_body) == api::run_json(world.run(), world.clock.at));
  world.clock.at = world.clock.at + Duration{1'500};
  const auto second = world.answer("GET", "/v1/runs/{id}", world.request());
  CHECK(second.shared_body == first.shared_body);
  CHECK((second.body + *second.shared_body) == api::run_json(world.run(), world.clock.at));
}

TEST_CASE("a backup is in the audit log before it is made") {
  World world;
  auto request = world.request({}, R"({"path": "/tmp/copy.db"})");
  request.identity = {"ops", true};
  CHECK(world.answer("POST", "/v1/backup", request).status == 200);
  CHECK(world.commands.noted == "ops backup /tmp/copy.db");
}

TEST_CASE("a full page has a cursor that the next request understands") {
  World world;
  world.reader.listed.resize(2);
  world.reader.listed[0].seq = 9;
  world.reader.listed[1].seq = 4;
  auto request = world.request({});
  request.query.emplace("limit", "2");
  const auto page = world.answer("GET", "/v1/runs", request);
  const auto root = json::parse(page.body);
  REQUIRE(root->find("next_cursor")->is(json::Kind::string));
  request.query.emplace("cursor", root->find("next_cursor")->text());
  world.reader.listed.resize(1);
  CHECK(says(world.answer("GET", "/v1/runs", request), R"("next_cursor":null)"));
  CHECK(world.reader.filter.before_seq == 4);
  request.query.erase("cursor");
  request.query.emplace("cursor", "rubbish");
  CHECK(says(world.answer("GET", "/v1/runs", request), R"("code":"bad_cursor")"));
}

TEST_CASE("a stream sends what is there, resumes after the last id, beats while idle and ends with the run") {
  World world;
  const auto event = [](std::int64_t seq, std::string_view type) {
    run::Event e;
    e.seq = seq;
    e.type = type;
    return e;
  };
  world.reader.recorded = {event(1, "run.submitted"), event(2, "step.dispatched")};
  world.run().last_event = 2;
  auto request = world.request();
  request.headers.emplace("accept", "text/event-stream");
  request.headers.emplace("last-event-id", "1");
  const auto next = [&] {
    return std::get<http::Stream>(world.call("GET", "/v1/runs/{id}/events", request));
  };
  auto piece = next();
  CHECK(piece.data.starts_with("id: 2\nevent: step.dispatched\ndata: {"));
  CHECK_FALSE(piece.end);
  CHECK(next().data.empty());
  request.waited_out = true;
  CHECK(next().data.starts_with(":"));
  request.waited_out = false;
  world.reader.recorded.push_back(event(3, "run.settled"));
  world.run().last_event = 3;
  world.run().status = run::RunStatus::succeeded;
  piece = next();
  CHECK(piece.data.starts_with("id: 3\n"));
  CHECK(piece.end);
}

TEST_CASE("events are paged, waited for, and not waited for when none can come") {
  World world;
  auto request = world.request();
  request.query = {{"after", "0"}, {"wait", "5s"}};
  CHECK(std::holds_alternative<http::Park>(world.call("GET", "/v1/runs/{id}/events", request)));
  world.run().status = run::RunStatus::failed;
  CHECK(says(world.answer("GET", "/v1/runs/{id}/events", request), R"({"events":[],"next":0})"));
  request.query = {{"after", "-1"}};
  CHECK(world.answer("GET", "/v1/runs/{id}/events", request).status == 400);
}

TEST_CASE("a reader that is ahead of the ledger is told, and goes on behind the last event") {
  World world;
  world.run().last_event = 2;
  world.reader.recorded = {run::Event{.seq = 1, .type = "run.submitted"}, run::Event{.seq = 2, .type = "run.waiting"}};
  auto request = world.request();
  request.query.emplace("after", "7");
  request.query.emplace("wait", "30s");
  const auto page = world.answer("GET", "/v1/runs/{id}/events", request);
  CHECK(says(page, R"("next":2,"gap":{"after":7,"last":2})"));
  request.query.clear();
  request.headers.emplace("accept", "text/event-stream");
  request.headers.emplace("last-event-id", "7");
  const auto first = std::get<http::Stream>(world.call("GET", "/v1/runs/{id}/events", request));
  CHECK(first.data == "id: 2\nevent: gap\ndata: {\"after\":7,\"last\":2}\n\n");
  world.reader.recorded.push_back(run::Event{.seq = 3, .type = "run.settled"});
  world.run().last_event = 3;
  request.resumed = true;
  const auto second = std::get<http::Stream>(world.call("GET", "/v1/runs/{id}/events", request));
  CHECK(second.data.starts_with("id: 3\n"));
}

TEST_CASE("a step is posted once however often its request is woken") {
  World world;
  auto request = world.request({{"id", kRun}}, R"({"id":"s","server":"api","tool":"w","args":{}})");
  request.query.emplace("wait", "5s");
  CHECK(std::holds_alternative<http::Park>(world.call("POST", "/v1/runs/{id}/steps", request)));
  world.run().steps[0].status = run::StepStatus::succeeded;
  const auto response = world.answer("POST", "/v1/runs/{id}/steps", request);
  CHECK(response.status == 201);
  CHECK(world.commands.calls == 1);
  world.commands.added = std::unexpected(Error{"step_reused", "other body", ""});
  world.state.reset();
  CHECK(world.answer("POST", "/v1/runs/{id}/steps", request).status == 422);
}

TEST_CASE("a verdict needs a word and a note, and a write that exists") {
  World world;
  const std::string write = "wr_01M8N30BJBAJEHS3KS1CSNG9W1_0";
  for (const auto& [body, code] : {std::pair{R"({"verdict":"maybe","note":"x"})", "bad_verdict"},
                                   {R"({"verdict":"landed"})", "note_required"},
                                   {R"({"verdict":"landed","note":"  "})", "note_required"},
                                   {R"({"verdict":"abandon","note":"x","result":1})", "bad_verdict"},
                                   {R"({"verdict":"landed","note":"x","reslut":1})", "unknown_member"}}) {
    const auto response =
        world.answer("POST", "/v1/unknowns/{id}/resolve", world.request({{"id", write}}, body));
    INFO(body);
    CHECK(response.status == 400);
    CHECK(says(response, code));
  }
  CHECK(world.commands.calls == 0);
  const std::string good = R"({"verdict":"landed","note":"seen","result":{"n": 1.0},"deadline":"1m"})";
  CHECK(world.answer("POST", "/v1/unknowns/{id}/resolve", world.request({{"id", "nope"}}, good)).status ==
        404);
  (void)world.answer("POST", "/v1/unknowns/{id}/resolve", world.request({{"id", write}}, good));
  CHECK(world.commands.verdict.verdict == run::Resolution::landed);
  CHECK(world.commands.verdict.result == R"({"n": 1.0})");
  CHECK(world.commands.verdict.who == "operator");
  CHECK(world.commands.verdict.deadline == world.clock.at + Duration{60'000});
  world.commands.done = std::unexpected(Error{"already_resolved", "it is settled otherwise", ""});
  CHECK(world.answer("POST", "/v1/unknowns/{id}/resolve", world.request({{"id", write}}, good)).status ==
        409);
}

TEST_CASE("a circuit is forced with a reason") {
  World world;
  CHECK(says(world.answer("POST", "/v1/breakers/{server}/open", world.request({{"server", "api"}}, "{}")),
             "reason_required"));
  CHECK(
      world
          .answer("POST", "/v1/breakers/{server}/{tool}/open",
                  world.request({{"server", "api"}, {"tool", "w"}}, R"({"reason":"maintenance","for":"1h"})"))
          .status == 200);
  CHECK(world.commands.forced == "api/w open");
  CHECK(says(world.answer("POST", "/v1/breakers/{server}/close",
                          world.request({{"server", "api"}}, R"({"reason":"x","for":"1h"})")),
             "unknown_member"));
}

TEST_CASE("health is always there, readiness is the engine's word, and tools never called are marked") {
  World world;
  CHECK(world.answer("GET", "/healthz", world.request({})).status == 200);
  CHECK(world.answer("GET", "/readyz", world.request({})).status == 200);
  world.commands.is_ready = false;
  CHECK(world.answer("GET", "/readyz", world.request({})).status == 503);
  CHECK(says(world.answer("GET", "/v1/tools", world.request({})), R"("tool":"w")"));
  CHECK(says(world.answer("GET", "/v1/tools", world.request({})), R"("measured":false)"));
  CHECK(world.answer("POST", "/v1/backup", world.request({}, R"({"path":"relative.db"})")).status == 400);
}
