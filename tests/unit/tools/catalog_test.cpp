#include "holdfast/tools/catalog.h"

#include <catch2/catch.hpp>

#include "config_support.h"

using namespace holdfast;
using namespace holdfast::tools;

namespace {

const Catalog& catalog() {
  static const Catalog made = [] {
    auto config = test::load_text(R"(
servers:
  api:
    http: {base_url: "http://127.0.0.1:1"}
    tools:
      charge: {request: {method: POST, path: "/customers/{customer}/charges"}, key: {header: Idempotency-Key}, target: "cust/${args/customer}"}
      put: {request: {method: PUT, path: "/o/{id}"}, key: {argument: /id}}
      nested: {request: {method: POST, path: /n}, key: {argument: /meta/a~1b}, target: "${args/n}"}
      plain: {request: {method: POST, path: /p}}
      look: {effect: read, request: {method: GET, path: "/look/{id}"}}
      fixed: {effect: read, request: {method: GET, path: "/fixed?v=1"}}
  crm: {mcp: {url: "http://127.0.0.1:1/mcp"}, tools: {add: {key: {argument: /key}}}}
)");
    if (!config) throw std::runtime_error(config.error().message);
    return Catalog(std::move(*config));
  }();
  return made;
}

}  // namespace

TEST_CASE("a step's arguments become the exact request") {
  struct Case {
    const char *server, *tool, *args, *head, *body;
  };
  const Case cases[] = {
      {"api", "charge", R"({"customer": "a/b c?d", "amount": 1.50, "note" : "\u00fc"})",
       "POST /customers/a%2Fb%20c%3Fd/charges", R"({"amount":1.50,"note":"\u00fc"})"},
      {"api", "charge", R"({"a": [1, 2], "customer": 7})", "POST /customers/7/charges", R"({"a":[1, 2]})"},
      {"api", "charge", R"({"customer":"~._-\u00fc%"})", "POST /customers/~._-%C3%BC%25/charges", "{}"},
      {"api", "charge", R"({"customer":1e3,"n\"\u0061":1})", "POST /customers/1e3/charges",
       R"({"n\"\u0061":1})"},
      {"api", "plain", R"( {"b": 1.0,  "a": null} )", "POST /p", R"({"b": 1.0,  "a": null})"},
      {"api", "put", R"({"x":1})", "PUT /o/K", R"({"x":1})"},
      {"api", "put", R"({"id":"old","x":1})", "PUT /o/K", R"({"x":1})"},
      {"api", "nested", R"({"n": 1})", "POST /n", R"({"n":1,"meta":{"a/b":"K"}})"},
      {"api", "nested", R"({"meta": {"x": 1e2, "a/b": 3}, "n":2})", "POST /n",
       R"({"meta":{"x":1e2,"a/b":"K"},"n":2})"},
      {"api", "look", R"({"id": 7, "q": "x&y=z", "l": ["a", 2], "none": null, "t": true})",
       "GET /look/7?q=x%26y%3Dz&l=a&l=2&t=true", ""},
      {"api", "look", R"({"id": "x"})", "GET /look/x", ""},
      {"api", "fixed", R"({"a": 1})", "GET /fixed?v=1&a=1", ""},
      {"crm", "add", R"({"n": 10000000000000000000001})", "add",
       R"({"n":10000000000000000000001,"key":"K"})"},
      {"crm", "other", R"({ "n": 1.0 })", "other", R"({ "n": 1.0 })"},
  };
  for (const auto& c : cases) {
    const auto request = catalog().freeze(c.server, c.tool, c.args, "K");
    INFO(c.tool << " " << c.args << " " << (request ? "" : request.error().message));
    REQUIRE(request.has_value());
    CHECK(request->head == c.head);
    CHECK(request->body == c.body);
  }
}

TEST_CASE("arguments that make no request are refused with their place") {
  struct Case {
    const char *tool, *args, *pointer;
  };
  const Case cases[] = {
      {"charge", R"({"amount": 1})", "/customer"},
      {"charge", R"({"customer": {}})", "/customer"},
      {"charge", R"({"customer": null})", "/customer"},
      {"charge", R"({"customer": ".."})", "/customer"},
      {"charge", R"({"customer": ""})", "/customer"},
      {"nested", R"({"meta": 1})", "/meta"},
      {"look", R"({"id": 1, "q": {"a": 1}})", "/q"},
      {"look", R"({"id": 1, "q": [[1]]})", "/q"},
      {"plain", "[1]", ""},
      {"plain", R"({"a":1,"a":2})", "/a"},
  };
  for (const auto& c : cases) {
    const auto request = catalog().freeze("api", c.tool, c.args, "K");
    INFO(c.tool << " " << c.args);
    REQUIRE_FALSE(request.has_value());
    CHECK(request.error().code == "bad_arguments");
    CHECK(request.error().pointer == c.pointer);
  }
  CHECK(catalog().freeze("api", "none", "{}", "").error().code == "tool_not_found");
}

TEST_CASE("no key, no member") {
  CHECK(catalog().freeze("crm", "add", R"({"n":1})", "")->body == R"({"n":1})");
}

TEST_CASE("the target is the step's, the tool's template, or server and tool") {
  CHECK(catalog().target("api", "charge", "named", "{}") == "named");
  CHECK(catalog().target("api", "charge", "", R"({"customer":"c 7"})") == "cust/c 7");
  CHECK(catalog().target("api", "nested", "", R"({"n":1.50})") == "1.50");
  CHECK(catalog().target("api", "plain", "", "{}") == "api/plain");
  CHECK(catalog().target("crm", "anything", "", "{}") == "crm/anything");
  CHECK(catalog().target("api", "charge", "", "{}").error().pointer == "/customer");
  CHECK(catalog().target("api", "nested", "", R"({"n":{}})").error().code == "bad_arguments");
  CHECK(catalog().target("api", "nested", "", R"({"n":"a\nb"})").error().code == "bad_arguments");
}

TEST_CASE("an unnamed tool is a plain write unless a trusted server says that it only reads") {
  auto config = test::load_text(R"(
servers:
  files: {mcp: {command: [x]}, trust_annotations: true, deadline: 7s, tools: {said: {effect: write}, open: {deadline: 1s}}}
  other: {mcp: {command: [x]}, tools: {open: {}}}
  api: {http: {base_url: "http://127.0.0.1:1"}}
)");
  REQUIRE(config.has_value());
  Catalog made(std::move(*config));
  const auto* before = made.find("files", "list");
  REQUIRE(before);
  CHECK(before->policy.effect == Effect::write);
  CHECK(before->policy.tool == "list");
  CHECK(before->policy.deadline == Duration{7000});
  for (const char* tool : {"list", "said", "open"}) {
    made.learn(*made.server("files"), tool, true);
    made.learn(*made.server("other"), tool, true);
  }
  CHECK(made.find("files", "list")->policy.effect == Effect::read);
  CHECK(before->policy.effect == Effect::write);
  CHECK(made.find("files", "said")->policy.effect == Effect::write);
  CHECK(made.find("files", "open")->policy.effect == Effect::read);
  CHECK(made.find("files", "open")->policy.deadline == Duration{1000});
  CHECK(made.find("other", "list")->policy.effect == Effect::write);
  CHECK(made.find("other", "open")->policy.effect == Effect::write);
  made.learn(*made.server("files"), "list", false);
  CHECK(made.find("files", "list") == before);
  CHECK(made.find("api", "none") == nullptr);
  CHECK(made.find("none", "x") == nullptr);
  CHECK(made.find("files", "no such/name") == nullptr);
}

TEST_CASE("an exchanged configuration is in force at once, and what was handed out before stays good", "[reload]") {
  const std::string before = R"(
servers:
  files: {mcp: {command: [x]}, trust_annotations: true}
  moved: {mcp: {command: [y]}, trust_annotations: true}
  gone: {http: {base_url: "http://127.0.0.1:1"}, headers: {Authorization: "${env:OLD_SECRET}"}, tools: {ask: {effect: read, request: {method: GET, path: /a}}}}
)";
  const std::string after = R"(
servers:
  files: {mcp: {command: [x]}, trust_annotations: true, deadline: 9s}
  moved: {mcp: {command: [z]}, trust_annotations: true}
  fresh: {http: {base_url: "http://127.0.0.1:2"}, headers: {Authorization: "${env:NEW_SECRET_LONG}"}, tools: {ask: {effect: read, request: {method: GET, path: /b}}}}
)";
  const std::map<std::string, std::string> env{{"OLD_SECRET", "old-secret"}, {"NEW_SECRET_LONG", "the-newer-secret"}};
  auto first = test::load_text(before, env), second = test::load_text(after, env);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  Catalog catalog(std::move(*first));
  for (const char* server : {"files", "moved"}) catalog.learn(*catalog.server(server), "list", true);
  const ToolConfig* listed = catalog.find("files", "list");
  const ToolConfig* ask = catalog.find("gone", "ask");
  const ServerConfig* moved = catalog.server("moved");
  REQUIRE(catalog.replace(std::move(*second)).has_value());

  CHECK(listed->policy.effect == Effect::read);
  CHECK(ask->request.path == "/a");
  CHECK(catalog.find("gone", "ask") == nullptr);
  CHECK(catalog.find("fresh", "ask")->request.path == "/b");
  CHECK(catalog.find("files", "list")->policy.effect == Effect::read);  // reached as before: what it said counts
  CHECK(catalog.find("files", "list")->policy.deadline == Duration{9'000});
  CHECK(catalog.find("moved", "list")->policy.effect == Effect::write);  // another process: nothing is known of it
  catalog.learn(*moved, "list", true);                                   // said by the one that is gone
  CHECK(catalog.find("moved", "list")->policy.effect == Effect::write);
  CHECK(catalog.config().secrets == std::vector<std::string>{"the-newer-secret", "old-secret"});
}
