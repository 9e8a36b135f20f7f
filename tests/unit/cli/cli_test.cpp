// The command line against a server that answers what each test wants.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/client.h"
#include "cli/command_line.h"
#include "cli/run_view.h"
#include "cli/table.h"
#include "holdfast/core/intent_key.h"
#include "http/server.h"

using namespace holdfast;

namespace {

const std::string kRun = "run_01M8N30BJBAJEHS3KS1CSNG9W1";

struct Ran {
  int code = 0;
  std::string out, err;
};

Ran run(std::vector<std::string> arguments, std::map<std::string, std::string> env = {}) {
  arguments.insert(arguments.begin(), "holdfast");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  Ran ran;
  ran.code = cli::run_command_line(static_cast<int>(argv.size()), argv.data(),
                                   {out, err, [&env](const std::string& name) -> const char* {
                                      const auto found = env.find(name);
                                      return found == env.end() ? nullptr : found->second.c_str();
                                    }});
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

std::string run_of(const std::string& status) {
  const bool settled = status == "succeeded" || status == "failed" || status == "cancelled";
  return R"({"id":")" + kRun + R"(","name":"n","status":")" + status + R"(","settled":)" +
         (settled ? "true" : "false") + R"(,"remaining_ms":60000,"steps":[],"warnings":[],"result":null})";
}

/// Answers by the path's last part, which names a status: /v1/runs/failed is a failed run,
/// /v1/unknowns/409/resolve a refusal.
class FakeServer {
 public:
  FakeServer() : server_(http::make_server(clock_, options())) {
    const auto answer = [](std::string text, int status = 200) {
      http::Response response;
      response.status = status;
      response.body = std::move(text);
      return response;
    };
    using http::Access, http::Outcome, http::Request;
    server_->route("POST", "/v1/runs", Access::open, [this, answer](Request& r) -> Outcome {
      key = r.header("idempotency-key").value_or("");
      authorization = r.header("authorization").value_or("");
      return r.body == "{}" ? http::problem(400, Error{"bad_submission", "steps are missing", "/steps"})
                            : answer(run_of("queued"), 201);
    });
    server_->route("GET", "/v1/runs/{id}", Access::open, [answer](Request& r) -> Outcome {
      const std::string& id = r.parameters.at("id");
      if (id == "nope") return http::problem(404, Error{"run_not_found", "there is no run nope", ""});
      return answer(run_of(id == kRun ? "succeeded" : id));
    });
    server_->route("GET", "/v1/runs/{id}/attempts", Access::open,
                   [answer](Request&) -> Outcome { return answer(R"({"items":[],"next_cursor":null})"); });
    server_->route("GET", "/v1/runs/{id}/events", Access::open, [answer](Request& r) -> Outcome {
      if (r.query_value("after") == "0") {
        return answer(
            R"({"events":[{"seq":1,"at":"2026-11-30T00:00:00.000Z","type":"step.settled","step":"s","data":{"status":"failed"}}],"next":1})");
      }
      return answer(R"({"events":[],"next":1})");
    });
    server_->route("GET", "/v1/runs", Access::open, [answer](Request& r) -> Outcome {
      return r.query_value("cursor") ? answer(R"({"items":[{"id":"b"}],"next_cursor":null})")
                                     : answer(R"({"items":[{"id":"a"}],"next_cursor":"next"})");
    });
    server_->route("POST", "/v1/unknowns/{id}/resolve", Access::open, [this, answer](Request& r) -> Outcome {
      body = r.body;
      if (r.parameters.at("id") == "409")
        return http::problem(409, Error{"already_resolved", "it is settled otherwise", ""});
      return answer(R"({"id":"w","run":"r","resolution":{"verdict":"landed"}})");
    });
    address = "http://" + *server_->listen();
  }
  ~FakeServer() { server_->stop(); }

  std::string address, key, authorization, body;

 private:
  static http::Options options() {
    http::Options out;
    out.listen = "127.0.0.1:0";
    out.threads = 2;
    return out;
  }
  SystemClock clock_;
  std::unique_ptr<http::Server> server_;
};

std::string file_with(const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / ("cli_test_" + std::to_string(getpid()) + ".json")).string();
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("mistakes in the command line are 2 and say what is wrong") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"submit"},
                                             {"frobnicate"},
                                             {"get"},
                                             {"get", "x", "--no-such-flag"},
                                             {"list", "-o", "xml"},
                                             {"list", "-o", "1"},
                                             {"resolve", "w", "--landed"},
                                             {"resolve", "w", "--note", "x"},
                                             {"resolve", "w", "--landed", "--abandon", "--note", "x"},
                                             {"token", "create", "--scope", "admin", "--name", "n"},
                                             {"submit", "missing.json"},
                                             {"resolve", "w", "--landed", "--note", "x", "--result", "{"},
                                             {"watch", "x", "--timeout", "soon"},
                                             {"check", "missing.yaml"}}) {
    const Ran ran = run(arguments);
    INFO((arguments.empty() ? "nothing" : arguments.front()));
    CHECK(ran.code == 2);
    CHECK_FALSE(ran.err.empty());
  }
  CHECK(run({"--help"}).code == 0);
}

TEST_CASE("get and watch end with the run's status") {
  FakeServer server;
  for (const auto& [status, code] :
       {std::pair{"succeeded", 0}, {"failed", 1}, {"unknown", 3}, {"cancelled", 4}}) {
    CHECK(run({"get", status, "--url", server.address}).code == code);
    const Ran watched = run({"watch", status, "--url", server.address});
    CHECK(watched.code == code);
    CHECK(watched.out.find("settled") != std::string::npos);
  }
  CHECK(run({"get", "running", "--url", server.address}).code == 5);
  CHECK(run({"watch", "running", "--timeout", "50ms", "--url", server.address}).code == 5);
  const Ran missing = run({"get", "nope", "--url", server.address});
  CHECK(missing.code == 2);
  CHECK(missing.err.find("there is no run nope") != std::string::npos);
}

TEST_CASE("submit hands on the file, the key and the token") {
  FakeServer server;
  const std::string file = file_with(R"({"name":"x"})");
  const std::map<std::string, std::string> env{{"HOLDFAST_URL", server.address},
                                               {"HOLDFAST_TOKEN", "hf_t.1"}};
  const Ran ids = run({"submit", file, "--key", "k1", "-o", "ids"}, env);
  CHECK(ids.code == 0);
  CHECK(ids.out == kRun + "\n");
  CHECK(server.key == "k1");
  CHECK(server.authorization == "Bearer hf_t.1");
  const Ran waited = run({"submit", file, "--wait", "-o", "json"}, env);
  CHECK(waited.code == 0);
  CHECK(waited.out.find(R"("status":"succeeded")") != std::string::npos);
  CHECK_FALSE(server.key.empty());
  CHECK(run({"submit", file_with("{"), "--wait"}, env).code == 2);
  const Ran bad = run({"submit", file_with("{}")}, env);
  CHECK(bad.code == 2);
  CHECK(bad.err.find("/steps") != std::string::npos);
}

TEST_CASE("a submit key that is empty or can't be one submits nothing: an unset variable must not become a run of its own") {
  FakeServer server;
  const std::string file = file_with(R"({"name":"x"})");
  for (const std::string& key : {std::string{}, std::string("   "), std::string(256, 'k'), std::string("a\nX: 1")}) {
    const Ran ran = run({"submit", file, "--key", key, "--url", server.address});
    INFO(key);
    CHECK(ran.code == 2);
    CHECK(ran.err.find("--key") != std::string::npos);
    CHECK(server.key.empty());
  }
}

TEST_CASE("a server that is not there is 5") {
  const std::map<std::string, std::string> env{{"HOLDFAST_URL", "http://127.0.0.1:9"}};
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"get", kRun},
                                             {"list"},
                                             {"unknowns"},
                                             {"watch", kRun},
                                             {"cancel", kRun},
                                             {"submit", file_with(R"({"name":"x"})")}}) {
    const Ran ran = run(arguments, env);
    INFO(arguments.front());
    CHECK(ran.code == 5);
    CHECK(ran.err.find("127.0.0.1:9") != std::string::npos);
  }
}

TEST_CASE("operator commands prefer their own address, and a refusal is 1") {
  FakeServer server;
  const std::map<std::string, std::string> env{{"HOLDFAST_ADMIN_URL", server.address},
                                               {"HOLDFAST_URL", "http://127.0.0.1:9"}};
  CHECK(run({"resolve", "w", "--landed", "--note", "seen", "--result", R"({"n": 1.0})"}, env).code == 0);
  CHECK(server.body == R"({"verdict":"landed","note":"seen","result":{"n": 1.0}})");
  CHECK(run({"resolve", "409", "--not-landed", "--note", "gone"}, env).code == 1);
  CHECK(run({"resolve", "w", "--abandon", "--note", "x"}, {{"HOLDFAST_URL", server.address}}).code == 0);
}

TEST_CASE("lists follow their cursors") {
  FakeServer server;
  CHECK(run({"list", "-o", "ids", "--url", server.address}).out == "a\nb\n");
  CHECK(run({"list", "-o", "ids", "--limit", "1", "--url", server.address}).out == "a\n");
  CHECK(json::parse(run({"list", "-o", "json", "--url", server.address}).out)->items.size() == 2);
}

TEST_CASE("a token is shown once, with the line that lets it in") {
  const Ran ran = run({"token", "create", "--scope", "operator", "--name", "ops"});
  REQUIRE(ran.code == 0);
  const auto begin = ran.out.find("hf_ops.");
  REQUIRE(begin != std::string::npos);
  const std::string token = ran.out.substr(begin, ran.out.find('\n', begin) - begin);
  CHECK(token.size() == 7 + 43);
  CHECK(ran.out.find("{name: ops, scope: operator, sha256: " + sha256_hex(token) + "}") != std::string::npos);
  CHECK(run({"token", "create", "--scope", "operator", "--name", "ops"}).out != ran.out);
}

TEST_CASE("what tools say cannot write to the terminal") {
  CHECK(cli::shown("a\x1b[31m\nb") == "a?[31m?b");
  CHECK(cli::shown("äöü", 2) == "äö…");
  CHECK(cli::spoken(950) == "950ms");
  CHECK(cli::spoken(90'000) == "90s");
  CHECK(cli::spoken(3'600'000LL * 50) == "2d");
  cli::Table table({"A", "LONG"});
  table.row({"äöü", ""});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "A    LONG\näöü  -\n");
}

TEST_CASE("a kill point is refused without the flag that allows it, and when it names no place") {
  const Ran refused = run({"serve", "--config", "/nowhere.yaml"}, {{"HOLDFAST_CRASH_AT", "committed:1"}});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("--allow-crash-points") != std::string::npos);
  const Ran unknown = run({"serve", "--config", "/nowhere.yaml", "--allow-crash-points"}, {{"HOLDFAST_CRASH_AT", "lunch:1"}});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("before_absorb") != std::string::npos);
}
