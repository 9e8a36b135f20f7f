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
