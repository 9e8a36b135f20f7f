#include <catch2/catch.hpp>

#include "config_support.h"

using namespace holdfast;
using holdfast::test::load_text;

namespace {

struct Case {
  const char* name;
  const char* text;
  const char* pointer;
  std::vector<const char*> words;  // all of them in the message
};

/// A file with one server `api` whose tool `w` holds `fields`.
std::string with_tool(const std::string& fields) {
  return "servers: {api: {http: {base_url: \"http://127.0.0.1:1\"}, tools: {r: {effect: read, request: "
         "{method: GET, path: /r}}, w: {" +
         (fields.find("request") == std::string::npos ? "request: {method: POST, path: /w}, "
                                                      : std::string()) +
         fields + "}}}}\n";
}

void check(const Case& c, const std::string& text) {
  INFO(c.name << ": " << text);
  const auto config = load_text(text);
  REQUIRE_FALSE(config.has_value());
  INFO(config.error().message);
  CHECK(config.error().pointer == c.pointer);
  CHECK(config.error().message.find("holdfast.yaml: ") != std::string::npos);
  CHECK(config.error().message.find("; ") != std::string::npos);
  for (const char* word : c.words) {
    INFO(word);
    CHECK(config.error().message.find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a mistake at the top names its place and what would be right") {
  const std::string too_long = "listen: unix:/" + std::string(107, 'x');
  const Case cases[] = {
      {"unknown", "lisen: 127.0.0.1:0", "/lisen", {"lisen", "`listen`"}},
      {"twice", "listen: 127.0.0.1:0\nlisten: 127.0.0.1:0", "/listen", {"twice"}},
      {"zero deadline", "defaults: {deadline: 0}", "/defaults/deadline", {"zero", "3s"}},
      {"zero run deadline", "defaults: {run_deadline: 0ms}", "/defaults/run_deadline", {"zero"}},
      {"zero attempts", "defaults: {max_attempts: 0}", "/defaults/max_attempts", {"1 to 1000"}},
      {"text as a number", "defaults: {max_attempts: \"3\"}", "/defaults/max_attempts", {"string"}},
      {"fraction", "defaults: {max_attempts: 1.5}", "/defaults/max_attempts", {"1.5"}},
      {"zero limit", "limits: {connections: 0}", "/limits/connections", {"connections"}},
      {"size", "limits: {body_bytes: 1XB}", "/limits/body_bytes", {"1XB", "MiB"}},
      {"size that overflows", "limits: {body_bytes: 99999999999GiB}", "/limits/body_bytes", {"1GiB"}},
      {"port", "listen: 127.0.0.1:70000", "/listen", {"65535"}},
      {"no port", "listen: 127.0.0.1", "/listen", {"port"}},
      {"address", "listen: 127.0.0.1.5:80", "/listen", {"host"}},
      {"open", "listen: 0.0.0.0:0", "/listen", {"listen", "token"}},
      {"open by name", "listen: example.org:0", "/listen", {"token"}},
      {"socket without a path", "listen: \"unix:\"", "/listen", {"absolute"}},
      {"socket beside the file", "listen: \"unix:client.sock\"", "/listen", {"absolute", "unix:/run"}},
      {"socket too long", too_long.c_str(), "/listen", {"107"}},
      {"mode of a socket", "socket_mode: 0666", "/socket_mode", {"0600", "0660"}},
      {"nobody per address", "limits: {connections_per_address: 0}", "/limits/connections_per_address", {"connections_per_address"}},
      {"admin open", "admin_listen: \"[::]:0\"", "/admin_listen", {"admin_listen", "token"}},
      {"scope",
       "auth: {tokens: [{name: a, scope: admin, sha256: 00}]}",
       "/auth/tokens/0/scope",
       {"admin", "operator"}},
      {"digest", "auth: {tokens: [{name: a, scope: client, sha256: xyz}]}", "/auth/tokens/0/sha256", {"64"}},
      {"list of servers", "servers: [api]", "/servers", {"list", "map"}},
      {"backoff", "defaults: {backoff: {base: 2s, cap: 1s}}", "/defaults/backoff/cap", {"base"}},
      {"server name", "servers: {\"a b\": {http: {base_url: \"http://a\"}}}", "/servers/a b", {"name"}},
      {"no transport", "servers: {api: {tools: {}}}", "/servers/api", {"api", "transport"}},
      {"two transports",
       "servers: {api: {http: {base_url: \"http://a\"}, mcp: {url: \"http://a\"}}}",
       "/servers/api",
       {"http", "mcp"}},
      {"url and command",
       "servers: {api: {mcp: {url: \"http://a\", command: [x]}}}",
       "/servers/api/mcp",
       {"exactly one"}},
      {"scheme",
       "servers: {api: {http: {base_url: \"ftp://a\"}}}",
       "/servers/api/http/base_url",
       {"http://"}},
      {"user in the URL",
       "servers: {api: {http: {base_url: \"http://u:p@a\"}}}",
       "/servers/api/http/base_url",
       {"headers"}},
      {"missing variable",
       "servers: {api: {mcp: {url: \"http://a\"}, headers: {A: \"B ${env:NOT_SET}\"}}}",
       "/servers/api/headers/A",
       {"NOT_SET"}},
      {"half a variable",
       "servers: {api: {mcp: {url: \"http://a\"}, headers: {A: \"${env:X\"}}}",
       "/servers/api/headers/A",
       {"${env:NAME}"}},
      {"header name",
       "servers: {api: {mcp: {url: \"http://a\"}, headers: {\"A B\": x}}}",
       "/servers/api/headers",
       {"A B"}},
      {"header value",
       "servers: {api: {mcp: {url: \"http://a\"}, headers: {A: \"x\\r\\nB: y\"}}}",
       "/servers/api/headers",
       {"control"}},
      {"in flight",
       "servers: {api: {mcp: {url: \"http://a\"}, max_in_flight: 0}}",
       "/servers/api/max_in_flight",
       {"0"}},
      {"breaker field",
       "servers: {api: {mcp: {url: \"http://a\"}, breaker: {cool_down: 3s}}}",
       "/servers/api/breaker/cool_down",
       {"`cooldown`"}},
      {"rate",
       "servers: {api: {mcp: {url: \"http://a\"}, breaker: {failure_rate: 1.5}}}",
       "/servers/api/breaker/failure_rate",
       {"1.5"}},
      {"rate that is no number",
       "servers: {api: {mcp: {url: \"http://a\"}, breaker: {failure_rate: nan}}}",
       "/servers/api/breaker/failure_rate",
       {"nan"}},
      {"threshold",
       "servers: {api: {mcp: {url: \"http://a\"}, breaker: {consecutive_failures: 0}}}",
       "/servers/api/breaker/consecutive_failures",
       {"0"}},
      {"flag",
       "servers: {api: {mcp: {url: \"http://a\"}, allow_private: maybe}}",
       "/servers/api/allow_private",
       {"true or false"}},
      {"request on MCP",
       "servers: {api: {mcp: {url: \"http://a\"}, tools: {t: {request: {method: GET, path: /}}}}}",
       "/servers/api/tools/t/request",
       {"request"}},
      {"header key over stdio",
       "servers: {api: {mcp: {command: [x]}, tools: {t: {key: {header: K}}}}}",
       "/servers/api/tools/t/key/header",
       {"stdio"}},
      {"probe",
       "servers: {api: {http: {base_url: \"http://a\"}, probe: {tool: r}}}",
       "/servers/api/probe/tool",
       {"probe", "`r`"}},
      {"a list", "- 1", "", {"list"}},
  };
  for (const auto& c : cases) check(c, std::string(c.text) + "\n");
}

TEST_CASE("each known field is named once, also where it was asked for twice") {
  const auto config = load_text(with_tool("colour: red"));
  REQUIRE_FALSE(config.has_value());
  const std::string& message = config.error().message;
  INFO(message);
  CHECK(message.find(", fallback") == message.rfind(", fallback"));
  CHECK(message.find(", key") == message.rfind(", key"));
}

TEST_CASE("a mistake at a tool names its place and what would be right") {
  const Case cases[] = {
      {"unknown", "deadlin: 3s", "/servers/api/tools/w/deadlin", {"deadlin", "`deadline`"}},
      {"far from any", "colour: red", "/servers/api/tools/w/colour", {"colour", "known here"}},
      {"zero", "deadline: 0s", "/servers/api/tools/w/deadline", {"zero"}},
      {"negative", "deadline: -3s", "/servers/api/tools/w/deadline", {"-3s"}},
      {"unit", "deadline: 3 parsecs", "/servers/api/tools/w/deadline", {"3 parsecs", "15m"}},
      {"nothing", "deadline:", "/servers/api/tools/w/deadline", {"nothing"}},
      {"auto as a word", "deadline: auto", "/servers/api/tools/w/deadline", {"auto", "percentile"}},
      {"a map without auto", "deadline: {}", "/servers/api/tools/w/deadline/auto", {"missing", "duration"}},
      {"misspelt auto", "deadline: {aut: {}}", "/servers/api/tools/w/deadline/aut", {"`auto`"}},
      {"more than auto", "deadline: {auto: {}, max: 3s}", "/servers/api/tools/w/deadline/max", {"max"}},
      {"no map", "deadline: {auto: 99}", "/servers/api/tools/w/deadline/auto", {"map"}},
      {"unknown in auto",
       "deadline: {auto: {percentil: 99}}",
       "/servers/api/tools/w/deadline/auto/percentil",
       {"`percentile`"}},
      {"percentile of all",
       "deadline: {auto: {percentile: 100}}",
       "/servers/api/tools/w/deadline/auto/percentile",
       {"100", "50 to 99.9"}},
      {"percentile as a share",
       "deadline: {auto: {percentile: 0.99}}",
       "/servers/api/tools/w/deadline/auto/percentile",
       {"0.99", "50 to 99.9"}},
      {"percentile as text",
       "deadline: {auto: {percentile: \"99\"}}",
       "/servers/api/tools/w/deadline/auto/percentile",
       {"string"}},
      {"percentile that is none",
       "deadline: {auto: {percentile: nan}}",
       "/servers/api/tools/w/deadline/auto/percentile",
       {"nan"}},
      {"factor", "deadline: {auto: {factor: 0.5}}", "/servers/api/tools/w/deadline/auto/factor", {"1 to 100"}},
      {"zero floor", "deadline: {auto: {floor: 0s}}", "/servers/api/tools/w/deadline/auto/floor", {"zero"}},
      {"ceiling", "deadline: {auto: {ceiling: never}}", "/servers/api/tools/w/deadline/auto/ceiling", {"never"}},
      {"floor above the ceiling",
       "deadline: {auto: {floor: 40s}}",
       "/servers/api/tools/w/deadline/auto/floor",
       {"30s", "ceiling"}},
      {"effect", "effect: writes", "/servers/api/tools/w/effect", {"writes", "read or write"}},
      {"refusal", "refusals: [42]", "/servers/api/tools/w/refusals/0", {"42"}},
      {"refusal that is a success", "refusals: [200]", "/servers/api/tools/w/refusals/0", {"200"}},
      {"method",
       "request: {method: FETCH IT, path: /}",
       "/servers/api/tools/w/request/method",
       {"FETCH IT", "POST"}},
      {"path", "request: {method: GET, path: w}", "/servers/api/tools/w/request/path", {"/"}},
      {"braces", "request: {method: GET, path: \"/{a\"}", "/servers/api/tools/w/request/path", {"{"}},
      {"pointer",
       "success: {pointer: ok, equals: true}",
       "/servers/api/tools/w/success/pointer",
       {"pointer"}},
      {"nothing to compare", "success: {pointer: /ok}", "/servers/api/tools/w/success", {"equals"}},
      {"retention", "key: {header: K, retention: 0s}", "/servers/api/tools/w/key/retention", {"retention"}},
      {"no place", "key: {retention: 1s}", "/servers/api/tools/w/key", {"exactly one"}},
      {"reserved header",
       "key: {header: Content-Length}",
       "/servers/api/tools/w/key/header",
       {"Idempotency-Key"}},
      {"meta on HTTP", "key: {meta: a/b}", "/servers/api/tools/w/key/meta", {"plain HTTP"}},
      {"check of no tool",
       "check: {tool: nowhere, args: {}, found: {pointer: /a, not: 0}}",
       "/servers/api/tools/w/check/tool",
       {"check", "nowhere"}},
      {"check by a write",
       "check: {tool: w, found: {pointer: /a, not: 0}}",
       "/servers/api/tools/w/check/tool",
       {"write"}},
      {"check of no server",
       "check: {server: apy, tool: r, found: {pointer: /a, not: 0}}",
       "/servers/api/tools/w/check/server",
       {"apy", "`api`"}},
      {"check without proof", "check: {tool: r}", "/servers/api/tools/w/check/found", {"found"}},
      {"check of an odd reference",
       "check: {tool: r, args: {a: \"${find/x}\"}, found: {pointer: /a, not: 0}}",
       "/servers/api/tools/w/check/args",
       {"${key}"}},
      {"fallback of a write", "fallback: {static: 1}", "/servers/api/tools/w/fallback", {"write"}},
      {"kept answer at a write", "fallback: {cached: {max_age: 1h}}", "/servers/api/tools/w/fallback", {"write"}},
      {"fallback of no server",
       "effect: read, fallback: {tool: {server: nowhere, tool: x}}",
       "/servers/api/tools/w/fallback/tool/server",
       {"fallback", "nowhere"}},
      {"fallback to itself",
       "effect: read, fallback: {tool: {tool: w}}",
       "/servers/api/tools/w/fallback/tool/tool",
       {"itself"}},
      {"two fallbacks",
       "effect: read, fallback: {static: 1, cached: {max_age: 1s}}",
       "/servers/api/tools/w/fallback",
       {"exactly one"}},
      {"target", "target: \"${find/x}\"", "/servers/api/tools/w/target", {"${args/name}"}},
      {"pattern", "errors: {business: [\"\"]}", "/servers/api/tools/w/errors/business/0", {"empty"}},
  };
  for (const auto& c : cases) check(c, with_tool(c.text));
}

TEST_CASE("a tool of an HTTP server needs a request") {
  const auto c = load_text("servers: {api: {http: {base_url: \"http://a\"}, tools: {t: {effect: read}}}}\n");
  REQUIRE_FALSE(c.has_value());
  CHECK(c.error().pointer == "/servers/api/tools/t/request");
}

TEST_CASE("a file that can't be read is named") {
  const test::Folder folder;
  const auto none = [](const std::string&) -> const char* { return nullptr; };
  const std::pair<const char*, const char*> files[] = {{"a.yaml", "listen: [\n"},
                                                       {"b.json", "{"},
                                                       {"c.yaml", "- 1\n"},
                                                       {"d.yaml", "listen: \"\xff\"\n"},
                                                       {"e.yaml", "a: 1\n---\na: 1\n"},
                                                       {"f.yaml", "a: &a [*a]\n"},
                                                       {"g.json", "{\"listen\": 1, \"listen\": 2}"}};
  for (const auto& [name, text] : files) {
    const auto c = tools::load_config(folder.write(name, text), none);
    INFO(name);
    REQUIRE_FALSE(c.has_value());
    INFO(c.error().message);
    CHECK(c.error().message.find(name) != std::string::npos);
  }
  for (const std::string& path : {folder.file("missing.yaml"), folder.file("")}) {
    const auto c = tools::load_config(path, none);
    REQUIRE_FALSE(c.has_value());
    CHECK(c.error().message.find(path) == 0);
  }
}

TEST_CASE("a small file can't become a large one") {
  std::string laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) laughs += (k ? ",*a" : "*a") + std::to_string(i - 1);
    laughs += "]\n";
  }
  const auto bomb = load_text(laughs);
  REQUIRE_FALSE(bomb.has_value());
  CHECK(bomb.error().message.find("too many values") != std::string::npos);
  CHECK_FALSE(load_text("a: " + std::string(300, '[') + std::string(300, ']') + "\n").has_value());
  CHECK_FALSE(load_text("a: " + std::string(20'000, '[')).has_value());
  const auto large = load_text("# " + std::string(2 << 20, 'x') + "\n");
  REQUIRE_FALSE(large.has_value());
  CHECK(large.error().message.find("1 MiB") != std::string::npos);
}

TEST_CASE("text after the end of a flow is an error, and is not read for ever") {
  for (const char* text : {"{a},", "{a}, b", "[a],", "{database: x.db}, listen"}) {
    INFO(text);
    const auto read = load_text(text);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().message.find("one per file") != std::string::npos);
  }
}

TEST_CASE("an empty file is the defaults") {
  const auto c = load_text("");
  REQUIRE(c.has_value());
  CHECK(c->listen == "127.0.0.1:4653");
  CHECK(c->servers.empty());
}
