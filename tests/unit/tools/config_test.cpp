#include <algorithm>
#include <catch2/catch.hpp>

#include "config_support.h"

using namespace holdfast;
using namespace holdfast::tools;
using holdfast::test::load_text;

namespace {

const std::string kWhole = R"(
listen: 127.0.0.1:0
admin_listen: "[::1]:4654"
database: other.db
shutdown_grace: 5s
auth:
  tokens:
    - {name: nightly, scope: client, sha256: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}
    - {name: ops, scope: operator, sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb}
limits: {body_bytes: 2MiB, result_bytes: 65536, json_depth: 32, connections: 10, concurrent_calls: 4}
defaults: {deadline: 2s, max_attempts: 4, backoff: {base: 100ms, cap: 1s}, run_deadline: 1m, retry_budget: 0}
servers:
  crm:
    mcp: {url: "http://127.0.0.1:9001/mcp"}
    headers: {Authorization: "Bearer ${env:CRM_TOKEN}"}
    max_in_flight: 8
    deadline: 9s
    tools:
      search: {effect: read, deadline: 2s}
      create_ticket:
        effect: write
        target: "${args/project}"
        key: {argument: /idempotency_key}
        max_attempts: 2
      post_note:
        check: {tool: find_notes, args: {marker: "${key}", n: 1.50}, found: {pointer: /structuredContent/total, not: 0}, settle: 2s, for: 12h}
      meta: {key: {meta: vendor/key, retention: 1h}}
  files:
    mcp: {command: [npx, -y, server, /data], env: {NODE_ENV: production}}
    trust_annotations: true
  billing:
    http: {base_url: "http://localhost:9002/"}
    allow_private: true
    probe: {tool: rates}
    breaker: {consecutive_failures: 7, cooldown: 10m}
    tools:
      charge:
        request: {method: POST, path: "/customers/{customer}/charges"}
        key: {header: Idempotency-Key, retention: 48h}
        success: {pointer: /ok, equals: true}
        refusals: [503, 301]
        errors: {business: ["no such"], rate_limit: ["quota"], ambiguous: []}
        single_step: true
        linger: 30s
        breaker: {enabled: false}
        backoff: {base: 3s}
      rates: {effect: read, request: {method: GET, path: /rates}, fallback: {cached: {max_age: 24h}}}
      fixed: {effect: read, request: {method: GET, path: /x}, fallback: {static: {rate: 1.10, tags: [a, null, "true", yes]}}}
      other: {effect: read, request: {method: GET, path: /y}, fallback: {tool: {server: crm, tool: search}}}
)";

Config whole() {
  auto config = load_text(kWhole, {{"CRM_TOKEN", "s3cret"}});
  INFO((config ? "" : config.error().message));
  REQUIRE(config.has_value());
  return *config;
}

}  // namespace

TEST_CASE("every field of the file arrives") {
  const Config c = whole();
  CHECK(c.listen == "127.0.0.1:0");
  CHECK(c.admin_listen == "[::1]:4654");
  CHECK(c.database == "other.db");
  CHECK(c.shutdown_grace == Duration{5000});
  REQUIRE(c.tokens.size() == 2);
  CHECK(c.tokens[0].sha256 == std::string(64, 'a'));
  CHECK(c.tokens[1].scope == Token::Scope::operate);
  CHECK(c.limits.body_bytes == 2u << 20);
  CHECK(c.limits.result_bytes == 65536);
  CHECK(c.limits.json_depth == 32);
  CHECK(c.limits.concurrent_calls == 4);
  CHECK(c.defaults.run_deadline == Duration{60'000});
  CHECK(c.defaults.retry_budget == 0);
  const auto& crm = c.servers.at("crm");
  CHECK(crm.transport == ServerConfig::Transport::mcp_http);
  CHECK(crm.headers == std::vector<std::pair<std::string, std::string>>{{"Authorization", "Bearer s3cret"}});
  CHECK(crm.max_in_flight == 8);
  const auto& files = c.servers.at("files");
  CHECK(files.transport == ServerConfig::Transport::mcp_stdio);
  CHECK(files.command == std::vector<std::string>{"npx", "-y", "server", "/data"});
  CHECK(files.environment.front().second == "production");
  CHECK(files.trust_annotations);
  const auto& billing = c.servers.at("billing");
  CHECK(billing.url == "http://localhost:9002");
  CHECK(billing.allow_private);
  CHECK(billing.probe_tool == "rates");
  CHECK(billing.breaker.consecutive_failures == 7);
  CHECK(billing.breaker.max_cooldown == Duration{600'000});
}

TEST_CASE("the rules of a tool are its own, its server's or the defaults, and say which") {
  const Config c = whole();
  const auto& crm = c.servers.at("crm");
  const auto& search = crm.tools.at("search");
  CHECK(search.policy.deadline == Duration{2000});
  CHECK(search.sources.at("deadline") == Source::tool);
  CHECK(search.policy.max_attempts == 4);
  CHECK(search.sources.at("max_attempts") == Source::defaults);
  const auto& ticket = crm.tools.at("create_ticket");
  CHECK(ticket.policy.deadline == Duration{9000});
  CHECK(ticket.sources.at("deadline") == Source::server);
  CHECK(ticket.policy.max_attempts == 2);
  CHECK(ticket.policy.key->place == KeyRule::Place::argument);
  CHECK(ticket.policy.key->retention == Duration{24 * 3600'000});
  CHECK(crm.fallback_tool.policy.deadline == Duration{9000});
  CHECK(crm.fallback_tool.policy.effect == Effect::write);
  const auto& charge = c.servers.at("billing").tools.at("charge").policy;
  CHECK_FALSE(charge.breaker.enabled);
  CHECK(charge.breaker.consecutive_failures == 7);
  CHECK(charge.backoff.base == Duration{3000});
  CHECK(charge.backoff.cap == Duration{3000});
}

TEST_CASE("a deadline may be sized; its fields come from the tool, its server, the defaults") {
  const auto c = load_text(R"(
defaults: {deadline: {auto: {percentile: 95}}}
servers:
  api:
    http: {base_url: "http://127.0.0.1:1"}
    deadline: {auto: {factor: 2, floor: 100ms, ceiling: 500ms}}
    tools:
      own: {effect: read, deadline: {auto: {ceiling: 90s}}, request: {method: GET, path: /a}}
      fixed: {effect: read, deadline: 4s, request: {method: GET, path: /b}}
      servers: {effect: read, request: {method: GET, path: /c}}
      plain: {request: {method: POST, path: /d}}
  other: {mcp: {url: "http://127.0.0.1:1/mcp"}, tools: {t: {}, low: {deadline: {auto: {ceiling: 200ms}}}}}
)");
  INFO((c ? "" : c.error().message));
  REQUIRE(c);
  const auto& tools = c->servers.at("api").tools;
  const auto& own = tools.at("own").policy;
  REQUIRE(own.sized);
  CHECK(own.sized->percentile == 95);
  CHECK(own.sized->factor == 2);
  CHECK(own.sized->floor == Duration{100});
  CHECK(own.sized->ceiling == Duration{90'000});
  CHECK(own.deadline == Duration{90'000});
  CHECK_FALSE(tools.at("fixed").policy.sized);
  CHECK(tools.at("fixed").policy.deadline == Duration{4'000});
  CHECK(tools.at("servers").policy.deadline == Duration{500});
  CHECK(c->servers.at("other").fallback_tool.policy.sized->factor == 1.5);
  CHECK(c->servers.at("other").tools.at("low").policy.sized->floor == Duration{200});
  const std::string text = describe(*c);
  for (const char* line :
       {"api.own  deadline  auto: p95 times 2, from 100ms to 90s; 90s until 200 calls are measured  (tool)\n",
        "api.servers  deadline  auto: p95 times 2, from 100ms to 500ms; 500ms until 200 calls are measured  "
        "(server)\n",
        "api.plain  deadline  auto: p95 times 2, from 100ms to 500ms; 500ms until 1000 calls are measured; a "
        "plain write, so twice that and p99 at least  (server)\n",
        "api.fixed  deadline  4s  (tool)\n",
        "defaults  deadline  auto: p95 times 1.5, from 1s to 30s; 30s until 200 calls are measured\n"}) {
    INFO(line << "\nin\n" << text);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("what a tool's file says about proof arrives as JSON text") {
  const Config c = whole();
  const auto& note = c.servers.at("crm").tools.at("post_note").policy;
  CHECK(note.effect == Effect::write);
  REQUIRE(note.check.has_value());
  CHECK(note.check->server == "crm");
  CHECK(note.check->args == R"({"marker":"${key}","n":1.50})");
  CHECK(note.check->found.value == "0");
  CHECK(note.check->found.negate);
  CHECK(note.check->ask_for == Duration{12 * 3600'000});
  const auto& charge = c.servers.at("billing").tools.at("charge").policy;
  CHECK(charge.path_arguments == std::vector<std::string>{"customer"});
  CHECK(charge.success->value == "true");
  CHECK(charge.refusals == std::vector<int>{503, 301});
  CHECK(charge.errors.business == std::vector<std::string>{"no such"});
  CHECK(charge.errors.ambiguous.empty());
  CHECK(charge.single_step);
  CHECK(charge.linger == Duration{30'000});
  const auto& fixed = c.servers.at("billing").tools.at("fixed").policy;
  CHECK(fixed.fallback->value == R"({"rate":1.10,"tags":["a",null,"true","yes"]})");
  CHECK(c.servers.at("billing").tools.at("other").policy.fallback->server == "crm");
}

TEST_CASE("JSON is read like YAML, with its own escapes") {
  const auto c = load_text(R"({"servers": {"a": {"http": {"base_url": "http://127.0.0.1:1"},
    "tools": {"t": {"effect": "read", "request": {"method": "GET", "path": "/t"}, "fallback": {"static": "\ud83d\ude00"}}}}}})",
                           {}, "c.json");
  REQUIRE(c.has_value());
  CHECK(c->servers.at("a").tools.at("t").policy.fallback->value == "\"\xF0\x9F\x98\x80\"");
}

TEST_CASE("values of the environment are secrets, and nothing prints them") {
  const Config c = whole();
  CHECK(c.secrets == std::vector<std::string>{"Bearer s3cret", "s3cret"});
  CHECK(describe(c).find("s3cret") == std::string::npos);
  CHECK(redact("a s3cret, twice: s3cret; Bearer s3cret", c.secrets) == "a ***, twice: ***; ***");
  CHECK(redact("aaa", {"aaa"}) == "aaa");
  const auto bad = load_text("listen: \"${env:WHERE}\"\n", {{"WHERE", "nowhere-to-be-told"}});
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().message.find("nowhere-to-be-told") == std::string::npos);
}

TEST_CASE("a unix socket needs no token") {
  const auto config = load_text("listen: unix:/run/a.sock\nadmin_listen: unix:/run/b.sock\nsocket_mode: 0660\nlimits: {connections_per_address: 7}");
  REQUIRE(config.has_value());
  CHECK(config->listen == "unix:/run/a.sock");
  CHECK(config->socket_mode == 0660);
  CHECK(config->limits.connections_per_address == 7);
}

TEST_CASE("check prints each value with its source") {
  const std::string text = describe(whole());
  for (const char* line :
       {"crm.search  deadline  2s  (tool)\n", "crm.create_ticket  deadline  9s  (server)\n",
        "crm.search  max_attempts  4  (defaults)\n", "billing.charge  breaker.enabled  false  (tool)\n",
        "billing.charge  breaker.consecutive_failures  7  (server)\n",
        "billing.charge  breaker.window  1m  (defaults)\n", "crm  headers.Authorization  ***\n",
        "defaults  run_deadline  1m\n"}) {
    INFO(line << "\nin\n" << text);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("servers_from takes an MCP client's servers; tools may be described beside it") {
  const test::Folder folder;
  folder.write(
      "mcp.json",
      R"({"mcpServers": {"tmp": {"command": "x", "args": ["-y", ""], "env": {"A": "b"}, "type": "stdio", "autoApprove": []},
    "web": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-K": "v"}}, "off": {"command": "y", "disabled": true}}, "theme": "dark"})");
  const auto path =
      folder.write("holdfast.yaml", "servers_from: mcp.json\nservers: {tmp: {tools: {r: {effect: read}}}}\n");
  const auto c = load_config(path, [](const std::string&) -> const char* { return nullptr; });
  INFO((c ? "" : c.error().message));
  REQUIRE(c.has_value());
  CHECK(c->servers.size() == 2);
  CHECK(c->servers.at("tmp").command == std::vector<std::string>{"x", "-y", ""});
  CHECK(c->servers.at("tmp").environment == std::vector<std::pair<std::string, std::string>>{{"A", "b"}});
  CHECK(c->servers.at("tmp").tools.at("r").policy.effect == Effect::read);
  CHECK(c->servers.at("web").url == "http://127.0.0.1:1/mcp");
  CHECK(c->servers.at("web").headers.front().second == "v");
}
