#include "cli/reload.h"

#include <catch2/catch.hpp>

using namespace holdfast;
using namespace holdfast::cli;

TEST_CASE("what can't be exchanged in a running process stays, and is named", "[reload]") {
  tools::Config running, next;
  next.listen = "127.0.0.1:1";
  next.admin_listen = "127.0.0.1:2";
  next.database = "other.db";
  next.shutdown_grace = Duration{1};
  next.limits.body_bytes = 1;
  next.limits.connections = 1;
  next.limits.result_bytes = 77;
  next.retention = Duration{5'000};
  next.tokens = {{"ops", tools::Token::Scope::operate, std::string(64, 'a')}};
  const Reloaded result = reloaded(running, next);
  CHECK(result.unchanged == std::vector<std::string>{"listen", "admin_listen", "database", "shutdown_grace", "limits.body_bytes",
                                                     "limits.connections", "auth.tokens"});
  CHECK(result.config.listen == running.listen);
  CHECK(result.config.database == running.database);
  CHECK(result.config.limits.connections == running.limits.connections);
  CHECK(result.config.tokens.empty());
  CHECK(result.config.limits.result_bytes == 77);
  CHECK(result.config.retention == Duration{5'000});

  running.tokens = {{"old", tools::Token::Scope::client, std::string(64, 'b')}};
  CHECK(reloaded(running, next).config.tokens.front().name == "ops");
  CHECK(reloaded(running, running).unchanged.empty());
}

TEST_CASE("what a reload changed is told by name and without values", "[reload]") {
  tools::Config running;
  tools::ServerConfig server;
  server.name = "crm";
  server.headers = {{"Authorization", "planted-old"}, {"X-Kept", "same"}};
  server.tools["search"].policy.tool = "search";
  server.tools["gone"].policy.tool = "gone";
  tools::ServerConfig other = server;
  other.name = "old";
  running.servers = {{"crm", server}, {"old", other}};
  running.tokens = {{"ops", tools::Token::Scope::operate, std::string(64, 'a')}, {"out", tools::Token::Scope::client, std::string(64, 'b')}};
  tools::Config next = running;
  next.database = "other.db";
  next.retention = Duration{86'400'000};
  next.defaults.retry_budget = 7;
  next.servers.erase("old");
  other.name = "new";
  next.servers["new"] = other;
  next.servers["crm"].headers[0].second = "planted-new";
  next.servers["crm"].tools.erase("gone");
  next.servers["crm"].tools["search"].policy.deadline = Duration{2'000};
  next.tokens = {{"ops", tools::Token::Scope::operate, std::string(64, 'c')}, {"in", tools::Token::Scope::client, std::string(64, 'b')}};
  const Reloaded result = reloaded(running, next);
  CHECK(what_changed(running, result) ==
        R"({"changed":["crm.gone removed","crm.search.deadline","defaults.retry_budget","retention","old removed","old.gone removed",)"
        R"("old.search removed","new added","new.gone added","new.search added","auth.tokens.ops","auth.tokens.out removed",)"
        R"("auth.tokens.in added","crm.headers.Authorization"],"needs_restart":["database"]})");
  CHECK(what_changed(running, reloaded(running, running)) == R"({"changed":[],"needs_restart":[]})");
  CHECK(refused_reload("a \"mistake\"") == R"({"refused":"a \"mistake\""})");
}
