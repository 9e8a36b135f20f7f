#include <catch2/catch.hpp>

#include "holdfast/core/json.h"
#include "support/fake_http.h"
#include "tools/mcp/codec.h"
#include "tools/mcp/http_session.h"

namespace holdfast::tools::mcp {
namespace {

using test::FakeHttp;
using Exchange = FakeHttp::Exchange;

std::string id_of(const Exchange& x) {
  const Result<json::Value> root = json::parse(x.request.body);
  const json::Value* id = root ? root->find("id") : nullptr;
  return id == nullptr ? "null" : std::string(id->raw);
}
std::string result_for(const Exchange& x, std::string_view result) {
  return R"({"jsonrpc":"2.0","id":)" + id_of(x) + R"(,"result":)" + std::string(result) + "}";
}
std::string error_for(const Exchange& x, int code, std::string_view message) {
  return R"({"jsonrpc":"2.0","id":)" + id_of(x) + R"(,"error":{"code":)" + std::to_string(code) +
         R"(,"message":")" + std::string(message) + "\"}}";
}

constexpr std::string_view kDone =
    R"({"content":[{"type":"text","text":"done"}],"structuredContent":{"n":1.0},"isError":false})";

/// A server `crm` with a configured tool `w`, and a script that plays it.
struct Fixture {
  explicit Fixture(Era era_of_server = Era::legacy, bool trusted = false)
      : era(era_of_server), catalog(config(trusted)) {
    http.script = [this](Exchange& x) { play(x); };
  }

  static Config config(bool trusted) {
    Config c;
    ServerConfig& server = c.servers["crm"];
    server.name = "crm";
    server.transport = ServerConfig::Transport::mcp_http;
    server.url = "http://127.0.0.1:1/mcp";
    server.trust_annotations = trusted;
    server.headers = {{"Authorization", "Bearer top-secret"}, {"Accept", "text/plain"}};
    c.secrets = {"top-secret"};
    ToolConfig& tool = server.tools["w"];
    tool.policy.server = "crm";
    tool.policy.tool = "w";
    tool.policy.key = KeyRule{KeyRule::Place::meta, "vendor/key", Duration{1000}};
    server.fallback_tool.policy.server = "crm";
    return c;
  }

  void play(Exchange& x) {
    if (before && before(x)) return;
    if (x.says("\"server/discover\""))
      return era == Era::modern ? say(x, R"({"resultType":"complete","supportedVersions":["2026-07-28"]})")
                                : http.answer(x, 400, error_for(x, -32000, "Server not initialized"));
    if (x.says("\"initialize\"")) {
      session = "s-" + std::to_string(++sessions);
      return http.answer(x, 200, result_for(x, R"({"protocolVersion":"2025-11-25","capabilities":{}})"),
                         "application/json", {{"mcp-session-id", session}});
    }
    if (x.says("\"tools/list\""))
      return say(x, R"({"tools":[{"name":"w"},{"name":"look","annotations":{"readOnlyHint":true}}]})");
    if (x.says("\"tools/call\"")) return call ? call(x) : say(x, kDone);
    if (x.request.method == "GET") return http.answer(x, 405, "");
    http.answer(x, 202, "");
  }
  void say(Exchange& x, std::string_view result) { http.answer(x, 200, result_for(x, result)); }

  CallId send(Duration deadline = Duration{1000}, std::string tool = "w") {
    Call c;
    c.id = ++last;
    c.server = "crm";
    c.tool = tool;
    c.request = {tool, R"({"m":1.0})"};
    c.key = "hf1_k";
    c.key_rule = KeyRule{KeyRule::Place::meta, "vendor/key"};
    c.deadline = clock.now() + deadline;
    transport->start(std::move(c));
    return last;
  }
  const Evidence& only(CallId id) {
    REQUIRE(sink.done[id].size() == 1);
    return sink.done[id].front();
  }
  Evidence run(Duration deadline = Duration{1000}, std::string tool = "w") {
    const CallId id = send(deadline, std::move(tool));
    http.advance(deadline);
    return only(id);
  }

  Era era;
  test::ManualClock clock;
  FakeHttp http{clock};
  test::RecordingSink sink;
  Catalog catalog;
  std::unique_ptr<McpTransport> transport = make_mcp_http(clock, catalog, http, sink);
  std::function<bool(Exchange&)> before;
  std::function<void(Exchange&)> call;
  std::string session;
  int sessions = 0;
  CallId last = 0;
};

TEST_CASE("a legacy server is greeted once for all waiting calls, in order, and never with a call") {
  Fixture f;
  std::vector<CallId> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(f.send());
  f.http.pump();
  for (const CallId id : calls) {
    CHECK(f.only(id).answer == Answer::result);
    CHECK(f.only(id).result == kDone);
    CHECK(f.only(id).http_status == 200);
  }
  REQUIRE(f.http.of("server/discover").size() == 1);
  REQUIRE(f.http.of("initialize").size() == 1);
  REQUIRE(f.http.of("notifications/initialized").size() == 1);
  REQUIRE(f.http.exchanges[1].says("\"initialize\""));
  REQUIRE(f.http.exchanges[2].says("notifications/initialized"));
  REQUIRE(f.http.exchanges[1].header("mcp-session-id").empty());
  for (Exchange* x : f.http.of("tools/call")) {
    CHECK(x->header("mcp-session-id") == "s-1");
    CHECK(x->header("mcp-protocol-version") == "2025-11-25");
    CHECK(x->header("accept") == "application/json, text/event-stream");
    CHECK(x->header("authorization") == "Bearer top-secret");
    CHECK(x->header("mcp-method").empty());
    CHECK(x->says(R"("_meta":{"vendor/key":"hf1_k"})"));
    CHECK(x->request.fresh_connection);
    CHECK_FALSE(x->request.follow_redirects);
  }
}

TEST_CASE("a session outlives a new configuration unless the server is reached differently; a call keeps its own", "[reload]") {
  Fixture f;
  const auto exchange = [&](Config next) {
    REQUIRE(f.catalog.replace(std::move(next)).has_value());
    f.transport->reconfigure(f.catalog.config());
  };
  CHECK(f.run().answer == Answer::result);

  Config same_server = Fixture::config(false);
  same_server.servers["crm"].max_in_flight = 3;
  same_server.servers["crm"].tools["w"].policy.key.reset();
  exchange(std::move(same_server));
  CHECK(f.run().answer == Answer::result);
  CHECK(f.http.of("initialize").size() == 1);
  CHECK(f.http.of("tools/call").back()->says(R"("_meta":{"vendor/key":"hf1_k"})"));  // decided with a key, sent with it

  std::vector<Exchange*> held;
  f.call = [&](Exchange& x) { held.push_back(&x); };
  const CallId out = f.send(Duration{5'000});
  f.http.pump();
  REQUIRE(held.size() == 1);
  Config moved = Fixture::config(false);
  moved.servers["crm"].url = "http://127.0.0.1:2/mcp";
  exchange(std::move(moved));
  f.call = nullptr;
  CHECK(f.run(Duration{100}).answer == Answer::result);
  CHECK(f.http.of("initialize").size() == 2);
  CHECK(f.http.of("tools/call").back()->request.url == "http://127.0.0.1:2/mcp");
  f.say(*held.front(), kDone);
  f.http.pump();
  CHECK(f.only(out).answer == Answer::result);

  exchange(Config{});
  CHECK(f.run().failure == Failure::process_start);
}

TEST_CASE("a modern server is discovered once and gets matching headers and _meta, no session") {
  Fixture f(Era::modern);
  CHECK(f.run().answer == Answer::result);
  CHECK(f.run().answer == Answer::result);
  REQUIRE(f.http.of("server/discover").size() == 1);
  REQUIRE(f.http.of("initialize").empty());
  for (Exchange* x : f.http.of("tools/call")) {
    CHECK(x->header("mcp-protocol-version") == "2026-07-28");
    CHECK(x->header("mcp-method") == "tools/call");
    CHECK(x->header("mcp-name") == "w");
    CHECK(x->header("mcp-session-id").empty());
    CHECK(x->says("io.modelcontextprotocol/clientCapabilities"));
  }
}

TEST_CASE("the answer to server/discover decides the era") {
  struct Row {
    int status;
    int code;
    std::string_view message;
    bool modern;
  };
  const std::vector<Row> rows = {{400, -32020, "header", true},        {400, -32022, "version", true},
                                 {400, -32602, "_meta lacks x", true}, {400, -32602, "params", false},
                                 {200, -32601, "no", false},           {404, -32601, "no", false},
                                 {400, -32000, "init", false},         {500, -32603, "boom", false}};
  for (const Row& row : rows) {
    INFO(row.status << " " << row.code << " " << row.message);
    Fixture f;
    f.before = [&](Exchange& x) {
      if (!x.says("\"server/discover\"")) return false;
      f.http.answer(x, row.status, error_for(x, row.code, row.message));
      return true;
    };
    CHECK(f.run().answer == Answer::result);
    CHECK(f.http.of("initialize").empty() == row.modern);
  }
}

TEST_CASE("a server that swallows server/discover still has time for initialize") {
  Fixture f;
  f.before = [](Exchange& x) { return x.says("\"server/discover\""); };
  CHECK(f.run().answer == Answer::result);
}

TEST_CASE("a connect over a stream that stays open is understood") {
  Fixture f;
  f.before = [&](Exchange& x) {
    if (!x.says("\"initialize\"")) return false;
    f.http.open_stream(x);
    f.http.piece(x, "data: " + result_for(x, R"({"protocolVersion":"2025-06-18"})") + "\n\n");
    return true;
  };
  CHECK(f.run().answer == Answer::result);
  CHECK(f.http.of("tools/call").front()->header("mcp-protocol-version") == "2025-06-18");
}

TEST_CASE("handshake failures are never-sent, within the deadline, and the next call connects again") {
  struct Row {
    std::function<void(FakeHttp&, Exchange&)> initialize;
    Failure failure;
  };
  const std::vector<Row> rows = {
      {[](FakeHttp&, Exchange&) {}, Failure::handshake},
      {[](FakeHttp& h, Exchange& x) { h.answer(x, 500, ""); }, Failure::handshake},
      {[](FakeHttp& h, Exchange& x) { h.fail(x, Failure::connect, Phase::tcp); }, Failure::connect},
      {[](FakeHttp& h, Exchange& x) { h.fail(x, Failure::connection_lost, Phase::tx_all); },
       Failure::handshake},
      {[](FakeHttp& h, Exchange& x) {
         h.answer(x, 200, result_for(x, R"({"protocolVersion":"1999-01-01"})"));
       },
       Failure::handshake},
      {[](FakeHttp& h, Exchange& x) {
         h.answer(x, 200, result_for(x, R"({"protocolVersion":"2025-11-25"})"), "application/json",
                  {{"mcp-session-id",
                    "a\x01"
                    "b\x7F"}});
       },
       Failure::bad_session},
  };
  for (const Row& row : rows) {
    Fixture f;
    bool broken = true;
    f.before = [&](Exchange& x) {
      if (!broken || !x.says("\"initialize\"")) return false;
      row.initialize(f.http, x);
      return true;
    };
    const CallId first = f.send();
    f.http.advance(Duration{1000});
    CHECK(f.only(first).failure == row.failure);
    CHECK(f.only(first).phase < Phase::tx_part);
    CHECK(f.only(first).bytes_sent == 0);
    CHECK(f.http.of("tools/call").empty());
    for (const Exchange& x : f.http.exchanges)
      CHECK(x.header("mcp-session-id").find('\x01') == std::string::npos);
    broken = false;
    CHECK(f.run().answer == Answer::result);
  }
}

TEST_CASE("whether a server lives is asked in the words of its era, without a tool and without its list") {
  for (const Era era : {Era::legacy, Era::modern}) {
    INFO(static_cast<int>(era));
    Fixture f(era);
    f.before = [&](Exchange& x) {
      if (!x.says("\"ping\"")) return false;
      CHECK(x.header("mcp-session-id") == "s-1");
      f.say(x, "{}");
      return true;
    };
    for (int i = 0; i < 2; ++i) {
      const Evidence e = f.run(Duration{1000}, "");
      CHECK(e.failure == Failure::none);
      CHECK(e.answer == Answer::result);
    }
    CHECK(f.http.of("ping").size() == (era == Era::legacy ? 2 : 0));
    CHECK(f.http.of("server/discover").size() == (era == Era::legacy ? 1 : 3));
    CHECK(f.http.of("tools/list").empty());
    CHECK(f.http.of("tools/call").empty());
  }
}

TEST_CASE("a server that does not answer whether it lives is not listened to any longer") {
  Fixture f;
  f.before = [](Exchange& x) { return x.says("\"ping\""); };
  CHECK(f.run(Duration{1000}, "").failure == Failure::timeout);
  f.http.advance(Duration{60'000});
  CHECK(f.sink.late_answers.empty());
  CHECK(f.run().answer == Answer::result);
}

TEST_CASE("a connect that is refused for its credentials or its rate is the call's own refusal") {
  for (const int status : {401, 403, 429}) {
    INFO(status);
    Fixture f;
    f.before = [&](Exchange& x) {
      if (!x.says("\"initialize\"")) return false;
      f.http.answer(x, status, "", "", {{"retry-after", "5"}});
      return true;
    };
    const Evidence e = f.run();
    CHECK(e.failure == Failure::none);
    CHECK(e.answer == Answer::http);
    CHECK(e.http_status == status);
    CHECK(e.retry_after == "5");
    CHECK(e.bytes_sent == 0);
    CHECK(f.http.of("tools/call").empty());
  }
}

TEST_CASE("a waiting call that is cancelled was never sent, and the others go on") {
  Fixture f;
  Exchange* greeting = nullptr;
  f.before = [&](Exchange& x) {
    if (!x.says("\"initialize\"")) return false;
    greeting = &x;
    return true;
  };
  const CallId one = f.send(), two = f.send();
  f.http.pump();
  f.transport->cancel(one);
  f.http.pump();
  CHECK(f.only(one).failure == Failure::cancelled);
  CHECK(f.only(one).phase == Phase::local);
  f.http.answer(*greeting, 200, result_for(*greeting, R"({"protocolVersion":"2025-11-25"})"));
  f.http.pump();
  CHECK(f.only(two).answer == Answer::result);
}

TEST_CASE("twenty calls at a dead session make one new one") {
  Fixture f;
  f.run();
  f.call = [&](Exchange& x) {
    if (x.header("mcp-session-id") == "s-1") return;  // answered below, all together
    f.say(x, kDone);
  };
  std::vector<CallId> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(f.send());
  f.http.pump();
  for (Exchange* x : f.http.of("tools/call")) {
    if (x->open) f.http.answer(*x, 404, error_for(*x, -32001, "Session not found"));
    f.http.pump();
  }
  for (const CallId id : calls) CHECK(f.only(id).failure == Failure::session_lost);
  for (int i = 0; i < 20; ++i) CHECK(f.run().answer == Answer::result);
  REQUIRE(f.http.of("initialize").size() == 2);
  REQUIRE(f.http.of("server/discover").size() == 1);
}

TEST_CASE("what is a dead session, and what is only a refusal") {
  struct Row {
    int status;
    std::string body;
    Failure failure;
    bool new_session;
  };
  const auto error = [](int code, std::string_view message) {
    return R"({"jsonrpc":"2.0","id":null,"error":{"code":)" + std::to_string(code) + R"(,"message":")" +
           std::string(message) + "\"}}";
  };
  const std::vector<Row> rows = {
      {404, "", Failure::session_lost, true},
      {404, error(-32001, "gone"), Failure::session_lost, true},
      {404, error(-32601, "no such method"), Failure::none, false},
      {404, error(-32602, "unknown tool"), Failure::none, false},
      {400, error(-32000, "Bad Request: No valid Session ID provided"), Failure::session_lost, true},
      {400, R"({"error":"go away"})", Failure::none, true},
      {400, error(-32602, "bad arguments"), Failure::none, false},
      {403, "", Failure::none, false},
      {503, "session gone", Failure::none, true},  // proves nothing about its call, which is not repaired
      {500, R"({"error":"Server not initialized"})", Failure::none, true},
      {410, "", Failure::none, true},
      {503, "busy", Failure::none, false},
  };
  for (const Row& row : rows) {
    INFO(row.status << " " << row.body);
    Fixture f;
    f.call = [&](Exchange& x) { f.http.answer(x, row.status, row.body); };
    const Evidence e = f.run();
    CHECK(e.failure == row.failure);
    CHECK(e.http_status == row.status);
    f.call = nullptr;
    CHECK(f.run().answer == Answer::result);
    CHECK((f.sessions == 2) == row.new_session);
  }
}

TEST_CASE("complete answers and refusals carry status, code, text and headers") {
  Fixture f;
  f.call = [&](Exchange& x) {
    f.http.answer(x, 500, error_for(x, -32600, "top-secret no"), "application/json", {{"retry-after", "7"}});
  };
  const Evidence e = f.run();
  CHECK(e.answer == Answer::rpc_error);
  CHECK(e.http_status == 500);
  CHECK(e.rpc_code == -32600);
  CHECK(e.text == "*** no");
  CHECK(e.retry_after == "7");
}

TEST_CASE("answers that are none") {
  struct Row {
    int status;
    std::string body;
    std::string type;
    Failure failure;
  };
  const std::vector<Row> rows = {
      {202, "", "", Failure::malformed_rpc},
      {204, "", "", Failure::malformed_rpc},
      {200, "", "application/json", Failure::malformed_rpc},
      {200, "<html>log in</html>", "text/html; charset=utf-8", Failure::foreign},
      {200, R"({"jsonrpc":"2.0","id":9999,"result":{}})", "application/json", Failure::bad_framing},
      {200, R"({"jsonrpc":"2.0","id":"1","result":{}})", "application/json", Failure::bad_framing},
      {200, R"({"jsonrpc":"2.0","result":{}})", "application/json", Failure::malformed_rpc},
      {200, "{", "application/json", Failure::malformed_rpc}};
  for (const Row& row : rows) {
    INFO(row.status << " " << row.body);
    Fixture f;
    f.call = [&](Exchange& x) { f.http.answer(x, row.status, row.body, row.type); };
    const Evidence e = f.run();
    CHECK(e.failure == row.failure);
    CHECK(e.answer == Answer::none);
    CHECK(e.over_mcp);
  }
}

TEST_CASE("the result of a stream is taken at its blank line, and other messages are not it") {
  Fixture f;
  f.call = [&](Exchange& x) {
    f.http.open_stream(x);
    f.http.piece(
        x, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n");
    f.http.piece(x, R"(data: {"jsonrpc":"2.0","id":4711,"result":{"isError":false}})"
                    "\n\n");
    f.http.piece(x, "data: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"ping\"}\n\n");
    f.http.piece(x, "data: " + result_for(x, kDone) + "\n");
    CHECK(f.sink.done.empty());
    f.http.piece(x, "\n");
  };
  const Evidence e = f.run();
  CHECK(e.result == kDone);
  CHECK(e.phase == Phase::parsed);
  CHECK(e.http_status == 200);
  const Exchange& reply = f.http.exchanges.back();
  CHECK(reply.request.body == R"({"jsonrpc":"2.0","id":"s1","result":{}})");
}

TEST_CASE("a stream that ends without the result ends the call at once, with one POST") {
  const std::vector<std::string> streams = {"", ": hi\n\n", "data: {\"half", "id: x\ndata: unfinished"};
  for (const std::string& stream : streams) {
    INFO(stream);
    Fixture f;
    f.call = [&](Exchange& x) {
      f.http.open_stream(x);
      if (!stream.empty()) f.http.piece(x, stream);
      f.http.end_stream(x);
    };
    const CallId id = f.send();
    f.http.pump();
    CHECK(f.only(id).failure == Failure::stream_ended);
    CHECK(f.only(id).phase == Phase::rx_part_body);
    CHECK(f.http.of("tools/call").size() == 1);
    CHECK(f.http.of("GET").empty());
  }
}

TEST_CASE("an interrupted legacy stream is resumed by its event id") {
  Fixture f;
  f.call = [&](Exchange& x) {
    f.http.open_stream(x);
    f.http.piece(x, "id: ev-9\nretry: 100\ndata: \n\ndata: half");
    f.http.end_stream(x, Failure::body_cut);
  };
  Exchange* get = nullptr;
  f.before = [&](Exchange& x) {
    if (x.request.method != "GET") return false;
    get = &x;
    return true;
  };
  const CallId id = f.send();
  f.http.advance(Duration{99});
  REQUIRE(get == nullptr);
  f.http.advance(Duration{1});
  REQUIRE(get != nullptr);
  CHECK(get->header("last-event-id") == "ev-9");
  CHECK(get->header("mcp-session-id") == "s-1");
  f.http.open_stream(*get);
  f.http.piece(*get, "id: ev-10\ndata: " + result_for(*f.http.of("tools/call").front(), kDone) + "\n\n");
  CHECK(f.only(id).result == kDone);
  CHECK(f.http.of("tools/call").size() == 1);
}

TEST_CASE("resuming ends after three tries, at a refusal, and at the deadline") {
  Fixture f;
  f.call = [&](Exchange& x) {
    f.http.open_stream(x);
    f.http.piece(x, "id: ev-1\ndata: \n\n");
    f.http.end_stream(x);
  };
  SECTION("refused") {
    const CallId id = f.send(Duration{5000});
    f.http.advance(Duration{300});
    CHECK(f.only(id).failure == Failure::stream_ended);
    CHECK(f.http.of("GET").size() == 1);
  }
  SECTION("the connection is lost every time") {
    f.before = [&](Exchange& x) {
      if (x.request.method == "GET") f.http.fail(x, Failure::connect, Phase::tcp);
      return x.request.method == "GET";
    };
    const CallId id = f.send(Duration{5000});
    f.http.advance(Duration{2000});
    CHECK(f.only(id).failure == Failure::stream_ended);
    CHECK(f.only(id).phase == Phase::rx_part_body);
    CHECK(f.http.of("GET").size() == 3);
  }
  SECTION("the stream stays silent") {
    f.before = [&](Exchange& x) {
      if (x.request.method == "GET") f.http.open_stream(x);
      return x.request.method == "GET";
    };
    const CallId id = f.send(Duration{1000});
    f.http.advance(Duration{999});
    CHECK(f.sink.done.empty());
    f.http.advance(Duration{1});
    CHECK(f.only(id).failure == Failure::timeout);
    CHECK(f.only(id).phase == Phase::rx_part_body);
  }
  SECTION("no time is left for the pause") {
    const CallId id = f.send(Duration{200});
    f.http.pump();
    CHECK(f.only(id).failure == Failure::stream_ended);
    CHECK(f.http.of("GET").empty());
  }
}

TEST_CASE("a modern stream is never resumed, and is closed at the deadline") {
  Fixture f(Era::modern);
  f.call = [&](Exchange& x) {
    f.http.open_stream(x);
    f.http.piece(x, "id: ev-1\ndata: \n\n");
  };
  const CallId one = f.send();
  f.http.advance(Duration{1000});
  CHECK(f.only(one).failure == Failure::timeout);
  CHECK(f.http.of("notifications/cancelled").empty());
  CHECK_FALSE(f.http.of("tools/call").front()->lingering);
  const CallId two = f.send();
  f.http.pump();
  f.http.end_stream(*f.http.of("tools/call").back());
  CHECK(f.only(two).failure == Failure::stream_ended);
  CHECK(f.http.of("GET").empty());
}

TEST_CASE("progress does not move the deadline, and a late answer is kept as one") {
  for (const bool streamed : {true, false}) {
    INFO("streamed " << streamed);
    Fixture f;
    f.call = [&](Exchange& x) {
      if (streamed) f.http.open_stream(x);
    };
    const CallId id = f.send();
    f.http.pump();
    Exchange& x = *f.http.of("tools/call").front();
    for (int i = 0; i < 9; ++i) {
      f.http.advance(Duration{100});
      if (streamed) f.http.piece(x, ": still here\n\n");
    }
    CHECK(f.sink.done.empty());
    f.http.advance(Duration{100});
    CHECK(f.only(id).failure == Failure::timeout);
    REQUIRE(f.http.of("notifications/cancelled").size() == 1);
    f.http.advance(Duration{1000});
    if (!streamed) f.say(x, kDone);
    if (streamed) f.http.piece(x, "data: " + result_for(x, kDone) + "\n\n");
    REQUIRE(f.sink.late_answers[id].size() == 1);
    CHECK(f.sink.late_answers[id].front().result == kDone);
    CHECK(f.sink.late_answers[id].front().answer == Answer::result);
    CHECK(f.sink.done[id].size() == 1);
  }
}

TEST_CASE("a late answer is not awaited for ever") {
  Fixture f;
  f.call = [](Exchange&) {};
  const CallId id = f.send();
  f.http.advance(Duration{32'000});
  CHECK_FALSE(f.http.of("tools/call").front()->lingering);
  f.say(*f.http.of("tools/call").front(), kDone);
  CHECK(f.sink.late_answers[id].empty());
}

TEST_CASE("a cancelled call tells the server and says how far it had come") {
  Fixture f;
  f.call = [](Exchange&) {};
  const CallId id = f.send();
  f.http.pump();
  f.transport->cancel(id);
  f.http.pump();
  CHECK(f.only(id).failure == Failure::cancelled);
  CHECK(f.only(id).phase == Phase::tx_all);
  CHECK(f.http.of("notifications/cancelled").size() == 1);
}

TEST_CASE("an event over the limit is too large") {
  Fixture f;
  f.call = [&](Exchange& x) {
    f.http.open_stream(x);
    const std::string piece(1 << 20, 'x');
    f.http.piece(x, "data: ");
    for (int i = 0; i < 9 && x.open; ++i) f.http.piece(x, piece);
  };
  CHECK(f.run().failure == Failure::too_large);
}

TEST_CASE("a tool that the file does not name must be on the server's list") {
  Fixture f;
  CHECK(f.run(Duration{1000}, "look").answer == Answer::result);
  const Evidence e = f.run(Duration{1000}, "nope");
  CHECK(e.failure == Failure::not_listed);
  CHECK(e.phase < Phase::tx_part);
  CHECK(f.http.of("tools/call").size() == 1);
  CHECK(f.http.of("tools/list").size() == 1);
  f.http.advance(Duration{11'000});
  CHECK(f.run(Duration{1000}, "nope").failure == Failure::not_listed);
  CHECK(f.http.of("tools/list").size() == 2);
}

TEST_CASE("a tool list that cannot be had refuses nothing") {
  Fixture f;
  f.before = [&](Exchange& x) {
    if (x.says("\"tools/list\"")) f.http.answer(x, 500, "");
    return x.says("\"tools/list\"");
  };
  CHECK(f.run(Duration{1000}, "nope").answer == Answer::result);
}

TEST_CASE("the hints of a trusted server reach the catalog, page by page") {
  Fixture f(Era::legacy, true);
  f.before = [&](Exchange& x) {
    if (!x.says("\"tools/list\"")) return false;
    const bool second = x.says("\"cursor\":\"\"");
    f.say(x, second ? R"({"tools":[{"name":"look","annotations":{"readOnlyHint":true}}]})"
                    : R"({"tools":[{"name":"bare"}],"nextCursor":""})");
    return true;
  };
  int done = 0;
  f.transport->discover("crm", Duration{1000}, [&] { ++done; });
  f.http.pump();
  CHECK(done == 1);
  CHECK(f.catalog.find("crm", "look")->policy.effect == Effect::read);
  CHECK(f.catalog.find("crm", "bare")->policy.effect == Effect::write);
  CHECK(f.http.of("tools/call").empty());
}

TEST_CASE("discovery gives up in time") {
  Fixture f(Era::legacy, true);
  f.before = [](Exchange&) { return true; };
  int done = 0;
  f.transport->discover("crm", Duration{500}, [&] { ++done; });
  f.http.advance(Duration{500});
  CHECK(done == 1);
}

TEST_CASE("nothing is reported after stop") {
  Fixture f;
  f.call = [](Exchange&) {};
  const CallId id = f.send();
  f.http.pump();
  f.transport->stop();
  f.http.pump();
  f.http.advance(Duration{2000});
  CHECK(f.sink.done[id].empty());
}

}  // namespace
}  // namespace holdfast::tools::mcp
