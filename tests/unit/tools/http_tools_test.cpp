#include "tools/http_tools.h"

#include <catch2/catch.hpp>

#include "http_client_fixture.h"

using namespace holdfast;
using namespace holdfast::tools;
using namespace holdfast::tools::testing;

namespace {

HttpOutcome answered(int status, std::string body, const std::string& type = "application/json",
                     std::vector<std::pair<std::string, std::string>> more = {}) {
  HttpOutcome outcome;
  outcome.phase = Phase::rx_all;
  outcome.status = status;
  outcome.body = std::move(body);
  if (!type.empty()) outcome.headers.list.emplace_back("content-type", type);
  for (auto& field : more) outcome.headers.list.push_back(std::move(field));
  return outcome;
}

struct Sink final : CallSink {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<CallId, Evidence> done, lately;
  void finished(CallId id, Evidence evidence) override { put(done, id, std::move(evidence)); }
  void late(CallId id, Evidence evidence) override { put(lately, id, std::move(evidence)); }
  void put(std::map<CallId, Evidence>& where, CallId id, Evidence evidence) {
    const std::lock_guard lock(mutex);
    REQUIRE(where.emplace(id, std::move(evidence)).second);
    changed.notify_all();
  }
  Evidence wait(std::map<CallId, Evidence>& where, CallId id) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(5), [&] { return where.contains(id); }));
    return where.at(id);
  }
};

/// One server `api` with a keyed write `pay`, a plain write `note` and a read `look`.
struct Bench {
  SystemClock clock;
  Catalog catalog;
  Sink sink;
  std::unique_ptr<HttpClient> client = make_curl_client(clock);
  std::unique_ptr<Transport> tools = make_http_tools(clock, catalog, *client, sink);
  CallId next = 1;

  explicit Bench(const std::string& url, Limits limits = {}) : catalog(config(url, limits)) {}

  static Config config(const std::string& url, Limits limits) {
    ServerConfig api;
    api.name = "api";
    api.url = url;
    api.headers = {{"Authorization", "Bearer s3cr3t-t0ken"}, {"X-Team", "a b"}};
    for (const char* name : {"pay", "note", "look"}) {
      ToolConfig tool;
      tool.policy.server = "api";
      tool.policy.tool = name;
      api.tools[name] = tool;
    }
    api.tools["pay"].policy.key = KeyRule{KeyRule::Place::header, "Idempotency-Key"};
    api.tools["look"].policy.effect = Effect::read;
    Config out;
    out.limits = limits;
    out.secrets = {"s3cr3t-t0ken"};
    out.servers["api"] = api;
    return out;
  }
  Call call(const std::string& tool, const std::string& head, const std::string& body = "",
            Duration within = Duration{3000}) {
    Call out;
    out.id = next++;
    out.server = "api";
    out.tool = tool;
    out.repeat = tool == "pay" ? Kind::keyed : tool == "look" ? Kind::read : Kind::plain;
    out.request = {head, body};
    out.deadline = clock.now() + within;
    return out;
  }
  Evidence run(Call made) {
    const CallId id = made.id;
    tools->start(std::move(made));
    return sink.wait(sink.done, id);
  }
};

}  // namespace

TEST_CASE("what a complete answer becomes") {
  struct Row {
    const char* name;
    HttpOutcome outcome;
    Failure failure;
    Answer answer;
    std::string result, text;
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::vector<Row> rows{
      {"JSON as received", answered(200, " {\"n\": 1.50, \"n2\":1e400}\n"), Failure::none, Answer::http,
       "{\"n\": 1.50, \"n2\":1e400}", ""},
      {"nothing", answered(200, ""), Failure::none, Answer::http, "null", ""},
      {"no content", answered(204, "", ""), Failure::none, Answer::http, "null", ""},
      {"text", answered(200, "it is \"done\"\n", "text/plain"), Failure::none, Answer::http,
       "\"it is \\\"done\\\"\\n\"", ""},
      {"JSON without a type", answered(201, "[1]", ""), Failure::none, Answer::http, "[1]", ""},
      {"problem type", answered(202, "[1]", "application/vnd.x+json; charset=utf-8"), Failure::none,
       Answer::http, "[1]", ""},
      {"bad JSON", answered(200, "{\"a\":"), Failure::body_unreadable, Answer::none, "", ""},
      {"duplicate names", answered(200, "{\"a\":1,\"a\":2}"), Failure::body_unreadable, Answer::none, "", ""},
      {"bad UTF-8", answered(200, "\"\xff\""), Failure::body_unreadable, Answer::none, "", ""},
      {"bad UTF-8 text", answered(200, "\xff", "text/plain"), Failure::body_unreadable, Answer::none, "", ""},
      {"too deep", answered(200, deep), Failure::too_large, Answer::none, "", ""},
      {"too deep without a type", answered(200, deep, ""), Failure::too_large, Answer::none, "", ""},
      {"a web page", answered(200, "<html>", "text/html; charset=utf-8"), Failure::foreign, Answer::none, "",
       ""},
      {"a web page called JSON", answered(200, "\n<!doctype html>"), Failure::foreign, Answer::none, "", ""},
      {"a web page with a 502", answered(502, "<html>bad</html>", "text/html"), Failure::none, Answer::http,
       "", "<html>bad</html>"},
      {"error member", answered(422, "{\"error\":\"because so\"}"), Failure::none, Answer::http, "",
       "because so"},
      {"error object", answered(400, "{\"error\":{\"code\":7,\"message\":\"no\"}}"), Failure::none,
       Answer::http, "", "no"},
      {"problem", answered(400, "{\"title\":\"t\",\"detail\":\"d\"}", "application/problem+json"),
       Failure::none, Answer::http, "", "d"},
      {"see other", answered(303, "", "", {{"location", "/t/done"}}), Failure::none, Answer::http,
       "{\"location\":\"/t/done\"}", ""},
      {"moved", answered(301, "", "", {{"location", "/t/x"}}), Failure::none, Answer::http, "", ""},
      {"a Location with control bytes", answered(301, "", "", {{"location", "/t\x01x"}}),
       Failure::bad_framing, Answer::none, "", ""},
  };
  for (const Row& row : rows) {
    const Evidence evidence = read_http_answer(row.outcome, {}, {});
    INFO(row.name << ": " << evidence.detail);
    CHECK(evidence.failure == row.failure);
    CHECK(evidence.answer == row.answer);
    CHECK(evidence.result == row.result);
    CHECK(evidence.text == row.text);
    CHECK(evidence.http_status == row.outcome.status);
    CHECK(evidence.phase == Phase::parsed);
    CHECK_FALSE(evidence.over_mcp);
  }
  CHECK(read_http_answer(answered(307, "", "", {{"location", "/t/x"}}), {}, {}).detail ==
        "status 307, Location: /t/x");
}

TEST_CASE("hints for waiting are kept as they came") {
  const Evidence evidence = read_http_answer(
      answered(429, "", "",
               {{"retry-after", "10"}, {"date", "Wed, 09 Sep 2026 12:00:30 GMT"}, {"retry-after", "60"}}),
      {}, {});
  CHECK(evidence.retry_after == "10, 60");
  CHECK(evidence.date == "Wed, 09 Sep 2026 12:00:30 GMT");
}

TEST_CASE("the tool's own words are cut at 4 KiB, at a character") {
  std::string body(4095, 'a');
  for (int i = 0; i < 100; ++i) body += "\xc3\xbc";
  const Evidence evidence = read_http_answer(answered(400, body, "text/plain"), {}, {});
  CHECK(evidence.text == std::string(4095, 'a'));
}

TEST_CASE("an error whose body was cut keeps its words") {
  HttpOutcome outcome = answered(409, "half a sen", "text/plain");
  outcome.failure = Failure::body_cut;
  outcome.phase = Phase::rx_part_body;
  const Evidence evidence = read_http_answer(outcome, {}, {});
  CHECK(evidence.failure == Failure::body_cut);
  CHECK(evidence.text == "half a sen");
}

TEST_CASE("no secret comes back, whatever shape it has") {
  const std::vector<std::string> secrets{"se\"cret/token", "12345678"};
  const auto all = [](const Evidence& e) {
    return e.result + e.text + e.detail + e.location + e.retry_after;
  };
  for (const HttpOutcome& outcome :
       {answered(200, "{\"t\":\"se\\\"cret/token\"}"), answered(200, "{\"t\":12345678}"),
        answered(200, "se\"cret/token", "text/plain"),
        answered(401, "{\"seen\":\"Bearer se\\\"cret/token\"}"),
        answered(400, "{\"error\":\"bad se\\\"cret/token\"}"),
        answered(400, std::string(4090, 'a') + "12345678", "text/plain"),
        answered(302, "", "", {{"location", "/x?t=12345678"}}),
        answered(429, "", "", {{"retry-after", "12345678"}})}) {
    const std::string seen = all(read_http_answer(outcome, {}, secrets));
    INFO(seen);
    CHECK(seen.find("cret") == std::string::npos);
    CHECK(seen.find("1234") == std::string::npos);
  }
  const Evidence number = read_http_answer(answered(200, "{\"t\":12345678}"), {}, secrets);
  CHECK(json::parse(number.result).has_value());
}

TEST_CASE("the request of a plain HTTP tool has its key, headers and body, and nothing twice") {
  std::mutex mutex;
  std::vector<std::string> seen;
  RawServer server([&](Peer& peer, int) {
    for (std::string r; !(r = peer.request()).empty();) {
      {
        const std::lock_guard lock(mutex);
        seen.push_back(r);
      }
      peer.write(ok("{\"ok\":true}"));
    }
  });
  Bench bench(server.url("/base/"));
  Call pay = bench.call("pay", "POST /customers/a%2Fb/charges", "{\"amount\":1.50}");
  pay.key = "hf1_key";
  pay.key_rule = KeyRule{KeyRule::Place::header, "Idempotency-Key"};
  const Evidence evidence = bench.run(pay);
  CHECK(evidence.answer == Answer::http);
  CHECK(evidence.result == "{\"ok\":true}");
  CHECK(evidence.bytes_sent == seen[0].size());
  CHECK(bench.run(bench.call("look", "GET /rates?q=x%26y")).failure == Failure::none);
  REQUIRE(seen.size() == 2);
  const auto count = [](const std::string& in, const std::string& what) {
    int n = 0;
    for (std::size_t at = 0; (at = in.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(seen[0].starts_with("POST /base/customers/a%2Fb/charges HTTP/1.1\r\n"));
  for (const char* line :
       {"Idempotency-Key: hf1_key\r\n", "Content-Type: application/json\r\n", "Accept: application/json\r\n",
        "Content-Length: 15\r\n", "Authorization: Bearer s3cr3t-t0ken\r\n", "X-Team: a b\r\n"})
    CHECK(count(seen[0], line) == 1);
  CHECK(count(seen[0], "Expect") + count(seen[0], "Transfer-Encoding") + count(seen[0], "TE:") == 0);
  CHECK(seen[0].ends_with("\r\n\r\n{\"amount\":1.50}"));
  CHECK(seen[1].starts_with("GET /base/rates?q=x%26y HTTP/1.1\r\n"));
  CHECK(count(seen[1], "Idempotency-Key") + count(seen[1], "Content-") == 0);
}

TEST_CASE("only keyed writes and reads share connections") {
  RawServer server([&](Peer& peer, int) {
    while (!peer.request().empty()) peer.write(ok("{}"));
  });
  Bench bench(server.url(""));
  bench.run(bench.call("look", "GET /a"));
  CHECK(bench.run(bench.call("pay", "POST /a", "{}")).reused_connection);
  CHECK(server.accepted == 1);
  CHECK_FALSE(bench.run(bench.call("note", "POST /a", "{}")).reused_connection);
  CHECK(server.accepted == 2);
}

TEST_CASE("a call ends by its deadline or by a cancel, once") {
  std::promise<void> got;
  RawServer server([&](Peer& peer, int nth) {
    peer.request();
    if (nth == 1) got.set_value();
    peer.client_gone();
  });
  Bench bench(server.url(""));
  CHECK(bench.run(bench.call("note", "POST /a", "{}", Duration{100})).failure == Failure::timeout);
  Call call = bench.call("note", "POST /a", "{}");
  const CallId id = call.id;
  bench.tools->start(call);
  got.get_future().wait();
  bench.tools->cancel(id);
  CHECK(bench.sink.wait(bench.sink.done, id).failure == Failure::cancelled);
  bench.tools->cancel(id);
  bench.tools->cancel(4711);
}

TEST_CASE("a late answer is evidence of its own") {
  RawServer server([&](Peer& peer, int) {
    peer.request(), peer.pause(250), peer.write(ok("{\"token\":\"s3cr3t-t0ken\"}")), peer.client_gone();
  });
  Bench bench(server.url(""));
  Call call = bench.call("note", "POST /a", "{}", Duration{100});
  call.linger = Duration{5000};
  const CallId id = call.id;
  CHECK(bench.run(call).failure == Failure::timeout);
  const Evidence late = bench.sink.wait(bench.sink.lately, id);
  CHECK(late.answer == Answer::http);
  CHECK(late.result == "{\"token\":\"***\"}");
}

TEST_CASE("the configured limits hold") {
  RawServer server([&](Peer& peer, int) {
    while (!peer.request().empty()) peer.write(ok("[[[[\"aaaaaaaaaaaaaaaaaaaa\"]]]]"));
  });
  Bench narrow(server.url(""), Limits{.result_bytes = 10});
  CHECK(narrow.run(narrow.call("look", "GET /a")).failure == Failure::too_large);
  Bench shallow(server.url(""), Limits{.json_depth = 3});
  CHECK(shallow.run(shallow.call("look", "GET /a")).failure == Failure::too_large);
}

TEST_CASE("an unknown server is refused here, and nothing comes after stop") {
  RawServer server([&](Peer& peer, int) { peer.request(), peer.client_gone(); });
  Bench bench(server.url(""));
  Call call = bench.call("note", "POST /a", "{}");
  call.server = "nobody";
  const Evidence evidence = bench.run(call);
  CHECK(evidence.failure == Failure::address_refused);
  CHECK(evidence.phase == Phase::local);
  for (int i = 0; i < 10; ++i) bench.tools->start(bench.call("note", "POST /a", "{}"));
  bench.tools->stop();
  CHECK(bench.sink.done.size() == 1);
}
