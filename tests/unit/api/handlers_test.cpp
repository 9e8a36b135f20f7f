// The handlers against a ledger and an engine that say what each test wants.
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "world.h"

using namespace holdfast;

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
  REQUIRE_FALSE(world.watched.empty());

  request.resumed = true;  // woken by something else: it goes on waiting and asks nothing twice
  world.watched.clear();
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

TEST_CASE("while the ledger can't be written an open run is shown as waiting for storage") {
  World world;
  const std::string held = R"("waiting":{"for":"storage","until":null})";
  world.commands.has_storage = false;
  for (const auto status : {run::RunStatus::queued, run::RunStatus::running, run::RunStatus::waiting}) {
    world.run().status = status;
    const auto shown = world.answer("GET", "/v1/runs/{id}", world.request());
    CHECK(says(shown, R"("status":"waiting")"));
    CHECK(says(shown, held));
    CHECK(says(shown, R"("settled":false)"));
    const auto step = world.request({{"id", kRun}, {"step", "s"}});
    CHECK(says(world.answer("GET", "/v1/runs/{id}/steps/{step}", step), held));
  }
  for (const auto status : {run::RunStatus::unknown, run::RunStatus::succeeded, run::RunStatus::cancelled}) {
    world.run().status = status;
    CHECK_FALSE(says(world.answer("GET", "/v1/runs/{id}", world.request()), held));
  }
  world.run().status = run::RunStatus::running;
  auto poll = world.request();
  poll.query.emplace("wait", "30s");
  CHECK(std::holds_alternative<http::Park>(world.call("GET", "/v1/runs/{id}", poll)));  // it ends by itself
  world.commands.has_storage = true;
  CHECK_FALSE(says(world.answer("GET", "/v1/runs/{id}", world.request()), held));
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

TEST_CASE("every token reads a run whose id it was given") {
  World world;
  auto request = world.request();
  request.parameters["step"] = "s";
  for (const char* path : {"/v1/runs/{id}", "/v1/runs/{id}/events", "/v1/runs/{id}/attempts", "/v1/runs/{id}/steps/{step}"})
    for (const http::Identity& reader :
         {http::Identity{"other", false}, http::Identity{"nightly", false}, http::Identity{"ops", true}}) {
      request.identity = reader;
      CHECK(world.answer("GET", path, request).status == 200);
    }
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

TEST_CASE("whatever an operator's token changes is in the audit log under its name") {
  const std::string reason = R"({"reason":"a drill"})";
  const std::map<std::string, std::string> bodies = {
      {"/v1/runs/{id}/cancel", reason},
      {"/v1/runs/{id}/steps", R"({"id":"s","server":"api","tool":"w","args":{}})"},
      {"/v1/runs/{id}/finish", R"({"status":"succeeded"})"},
      {"/v1/unknowns/{id}/resolve", R"({"verdict":"landed","note":"seen"})"},
      {"/v1/breakers/{server}/open", reason},
      {"/v1/breakers/{server}/close", reason},
      {"/v1/breakers/{server}/{tool}/open", reason},
      {"/v1/breakers/{server}/{tool}/close", reason},
      {"/v1/backup", R"({"path":"/tmp/copy.db"})"}};
  std::size_t changes = 0;
  const World all;
  for (const auto& [route, handler] : all.server.handlers) {
    const auto& [method, pattern] = route;
    if (method == "GET" || pattern == "/v1/runs") continue;  // a run of one's own is nobody else's
    INFO(method << " " << pattern << " changes something and is not in this table");
    REQUIRE(bodies.contains(pattern));
    World world;
    const std::string id = pattern.starts_with("/v1/unknowns") ? "wr_01M8N30BJBAJEHS3KS1CSNG9W1_0" : kRun;
    auto request = world.request({{"id", id}, {"server", "api"}, {"tool", "w"}}, bodies.at(pattern));
    request.identity = {"ops", true};
    (void)world.answer(method, pattern, request);
    CHECK(world.commands.calls == 1);
    CHECK((world.commands.by == "ops" || world.commands.noted.starts_with("ops ")));
    ++changes;
  }
  CHECK(changes == bodies.size());
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
  world.reader.listed.resize(3);
  world.reader.listed[2].seq = 1;
  const auto last = world.answer("GET", "/v1/runs", request);
  CHECK(says(last, R"("next_cursor":null)"));
  CHECK(json::parse(last.body)->find("items")->items.size() == 1);
  request.query.erase("cursor");
  request.query.emplace("cursor", "rubbish");
  CHECK(says(world.answer("GET", "/v1/runs", request), R"("code":"bad_cursor")"));
}

TEST_CASE("a page of large runs ends early, and the pages together have each run once") {
  World world;
  for (std::int64_t seq = 30; seq > 0; --seq) {
    world.reader.listed.push_back(world.run());
    world.reader.listed.back().seq = seq;
    world.reader.listed.back().name = "n" + std::to_string(seq);
    world.reader.listed.back().result = '"' + std::string(200'000, 'x') + '"';
  }
  std::vector<std::string> names;
  std::size_t pages = 0, longest = 0;
  for (std::string cursor;; ++pages) {
    auto request = world.request({});
    request.query.emplace("limit", "200");
    if (!cursor.empty()) request.query.emplace("cursor", cursor);
    const auto page = world.answer("GET", "/v1/runs", request);
    longest = std::max(longest, page.body.size());
    const auto root = json::parse(page.body);
    for (const json::Value& item : root->find("items")->items) names.push_back(item.find("name")->text());
    if (!root->find("next_cursor")->is(json::Kind::string)) break;
    cursor = root->find("next_cursor")->text();
  }
  CHECK(pages > 2);
  CHECK(longest < (4 << 20));
  REQUIRE(names.size() == 30);
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(names[i] == "n" + std::to_string(30 - i));
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

TEST_CASE("tools show what was measured, what is in force, and a suggestion") {
  World world;
  const auto entry = [&] { return world.answer("GET", "/v1/tools", world.request({})).body; };
  const ToolPolicy policy = world.catalog.find("api", "w")->policy;
  CHECK(entry().find(R"("samples":0,"timeouts":0,"p50_ms":null,"p95_ms":null,"p99_ms":null,"suggested_deadline_ms":null,"measured":false)") !=
        std::string::npos);
  CHECK(entry().find(R"("deadline_ms":3000,"sized":null)") != std::string::npos);
  for (int i = 0; i < 995; ++i)
    world.latencies.add(policy, Sample::answered, Duration{20 + i % 2}, world.clock.now());
  for (int i = 0; i < 5; ++i) world.latencies.add(policy, Sample::gave_up, Duration{3'000}, world.clock.now());
  world.latencies.add(policy, Sample::none, Duration{3'000}, world.clock.now());
  CHECK(entry().find(R"("samples":1000,"timeouts":5,"p50_ms":21,"p95_ms":21,"p99_ms":21,"suggested_deadline_ms":100,"measured":true)") !=
        std::string::npos);

  tools::ToolConfig tool;
  tool.policy = policy;
  tool.policy.sized = AutoDeadline{.percentile = 99.9, .factor = 1.5};
  std::string text;
  json::Writer w(text);
  api::render_tool(w, tool, {}, {Duration{30'000}, false});
  CHECK(text.find(R"("deadline_ms":30000,"sized":{"percentile":99.9,"factor":1.5,"floor_ms":1000,"ceiling_ms":30000,"samples_needed":10000,"from_samples":false})") !=
        std::string::npos);
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

TEST_CASE("the listeners serve what schema/openapi.yaml and docs/api.md name, and nothing else", "[vocabulary]") {
  World world;
  FakeServer client;
  api::add_client_listener(client, world.service);
  const auto unnamed = [](const std::string& path) { return std::regex_replace(path, std::regex(R"(\{[^}]*\})"), "{}"); };

  std::set<std::string> schema_client, schema_admin;
  const YAML::Node document = YAML::LoadFile(HOLDFAST_SOURCE_DIR "/schema/openapi.yaml");
  for (const auto& path : document["paths"]) {
    for (const auto& [method, word] : {std::pair{"get", "GET "}, {"post", "POST "}}) {
      const YAML::Node operation = path.second[method];
      if (!operation) continue;
      const std::string call = word + unnamed(path.first.as<std::string>());
      const auto tag = operation["tags"][0].as<std::string>();
      schema_admin.insert(call);
      if (tag != "operator") schema_client.insert(call);
      INFO(call);
      REQUIRE(world.server.served.contains(call));
      CHECK((world.server.served.at(call) == http::Access::open) == operation["security"].IsDefined());
      CHECK((tag == "operator" || client.served.contains(call)));
    }
  }
  std::set<std::string> docs_client, docs_admin;
  std::ifstream page(HOLDFAST_SOURCE_DIR "/docs/api.md");
  const std::regex row(R"(\| `((?:GET|POST) [^`]+)` \| (both|admin) \|.*)");
  for (std::string line; std::getline(page, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    docs_admin.insert(unnamed(found[1]));
    if (found[2] == "both") docs_client.insert(unnamed(found[1]));
  }
  const auto names = [](const FakeServer& server) {
    std::set<std::string> out;
    for (const auto& [call, access] : server.served) out.insert(call);
    return out;
  };
  CHECK(names(client) == schema_client);
  CHECK(names(client) == docs_client);
  CHECK(names(world.server) == schema_admin);
  CHECK(names(world.server) == docs_admin);
}
