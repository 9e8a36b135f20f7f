#include <signal.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "holdfast/core/json.h"
#include "tools/dispatcher.h"
#include "tools/mcp/child.h"
#include "tools/mcp/stdio_session.h"

namespace holdfast::tools::mcp {
namespace {

/// Blocks until something was reported; a minute is the same as never.
class WaitingSink final : public CallSink {
 public:
  void finished(CallId id, Evidence evidence) override { put(done_, id, std::move(evidence)); }
  void late(CallId id, Evidence evidence) override { put(late_, id, std::move(evidence)); }
  Evidence wait(CallId id) { return take(done_, id); }
  Evidence wait_late(CallId id) { return take(late_, id); }
  std::size_t reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }

 private:
  using Reports = std::map<CallId, Evidence>;
  void put(Reports& reports, CallId id, Evidence evidence) {
    const std::lock_guard lock(mutex_);
    ++reports_;
    reports.emplace(id, std::move(evidence));
    changed_.notify_all();
  }
  Evidence take(Reports& reports, CallId id) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::minutes(1), [&] { return reports.contains(id); });
    REQUIRE(came);
    return reports.at(id);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Reports done_, late_;
  std::size_t reports_ = 0;
};

struct Fixture {
  explicit Fixture(std::string mode, bool trusted = false) : catalog(config(std::move(mode), trusted)) {}

  static Config config(std::string mode, bool trusted) {
    Config c;
    c.limits.result_bytes = 100'000;
    ServerConfig& server = c.servers["s"];
    server.name = "s";
    server.transport = ServerConfig::Transport::mcp_stdio;
    server.command = {"python3", "-SE", HOLDFAST_SOURCE_DIR "/tests/support/stdio_tools.py", std::move(mode)};
    server.environment = {{"EXTRA", "yes"}};
    server.trust_annotations = trusted;
    for (const char* name : {"ok", "noise", "hold", "release", "spoil", "spoil_deep", "spoil_big", "exit", "half", "answer_and_exit", "big",
                             "deep", "error", "seen", "environment", "stall", "ask"}) {
      ToolConfig& tool = server.tools[name];
      tool.policy.server = "s";
      tool.policy.tool = name;
    }
    server.tools["ok"].policy.key = KeyRule{KeyRule::Place::meta, "vendor/key", Duration{1000}};
    ServerConfig& none = c.servers["none"];
    none = server;
    none.name = "none";
    none.command = {"/no/such/program"};
    return c;
  }

  CallId send(std::string tool, Duration deadline = Duration{30'000}, std::string arguments = "{}",
              std::string server = "s") {
    Call call;
    call.id = ++last;
    call.server = std::move(server);
    call.tool = tool;
    call.request = {tool, std::move(arguments)};
    call.key = "hf1_k";
    call.key_rule = KeyRule{KeyRule::Place::meta, "vendor/key"};
    call.deadline = clock.now() + deadline;
    transport->start(std::move(call));
    return last;
  }
  Evidence run(std::string tool, Duration deadline = Duration{30'000}, std::string arguments = "{}",
               std::string server = "s") {
    return sink.wait(send(std::move(tool), deadline, std::move(arguments), std::move(server)));
  }
  std::int64_t pid() { return *field(run("ok"), "/structuredContent/pid")->integer(); }
  std::size_t count_seen(std::string_view method) {
    std::size_t count = 0;
    for (const json::Value& v : field(run("seen"), "/structuredContent/methods")->items)
      count += v.text() == method;
    return count;
  }
  const json::Value* field(Evidence evidence, std::string_view pointer) {
    text = std::move(evidence.result);
    root = json::parse(text);
    REQUIRE(root.has_value());
    const json::Value* value = json::at(*root, pointer);
    REQUIRE(value != nullptr);
    return value;
  }

  SystemClock clock;
  WaitingSink sink;
  Catalog catalog;
  std::unique_ptr<McpTransport> transport = make_mcp_stdio(clock, catalog, sink);
  CallId last = 0;
  std::string text;
  Result<json::Value> root;
};

TEST_CASE("stdio servers of each era are greeted in their own way") {
  for (const std::string mode : {"legacy", "modern", "noise", "swallow"}) {
    INFO(mode);
    Fixture f(mode);
    const Evidence e = f.run("ok", Duration{30'000}, R"({"n":1.50})");
    CHECK(e.answer == Answer::result);
    CHECK(e.phase == Phase::parsed);
    CHECK(e.over_mcp);
    CHECK(e.bytes_sent > 0);
    CHECK(e.bytes_received > e.result.size());
    CHECK(f.field(e, "/structuredContent/arguments/n")->raw == "1.5");
    CHECK(f.field(e, "/structuredContent/meta/vendor~1key")->text() == "hf1_k");
    const bool modern = mode == "modern";
    if (!modern) CHECK(f.count_seen("initialize") == 1);  // a modern one that starts slowly may see it too
    CHECK(f.count_seen("notifications/initialized") == (modern ? 0U : 1U));
    CHECK(f.count_seen("server/discover") == 1);
  }
}

TEST_CASE("a stdio server is asked whether it lives, also when that starts it") {
  for (const std::string mode : {"legacy", "modern"}) {
    INFO(mode);
    Fixture f(mode);
    CHECK(f.run("").failure == Failure::none);
    CHECK(f.run("").failure == Failure::none);
    CHECK(f.count_seen("ping") == (mode == "legacy" ? 2 : 0));
    CHECK(f.count_seen("server/discover") == (mode == "legacy" ? 1 : 3));
    CHECK(f.count_seen("tools/list") == 0);
  }
  Fixture f("legacy");
  CHECK(f.run("", Duration{30'000}, "{}", "none").failure == Failure::process_start);
}

TEST_CASE("one process serves many calls, and what is no message is skipped") {
  Fixture f("legacy");
  const std::int64_t pid = f.pid();
  CHECK(f.run("noise").answer == Answer::result);
  std::vector<CallId> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(f.send("ok"));
  for (const CallId id : calls) CHECK(f.sink.wait(id).answer == Answer::result);
  CHECK(f.pid() == pid);
  const Evidence error = f.run("error");
  CHECK(error.answer == Answer::rpc_error);
  CHECK(error.rpc_code == -32602);
}

TEST_CASE("a stdio call that runs out of time is cancelled, not its process, and its late answer is kept") {
  Fixture f("legacy");
  const std::int64_t pid = f.pid();
  const CallId id = f.send("hold", Duration{50});
  const Evidence e = f.sink.wait(id);
  CHECK(e.failure == Failure::timeout);
  CHECK(e.phase == Phase::tx_all);
  CHECK(f.run("release").answer == Answer::result);
  const Evidence late = f.sink.wait_late(id);
  CHECK(late.answer == Answer::result);
  CHECK(late.text == "done");
  CHECK(f.count_seen("notifications/cancelled") == 1);
  CHECK(f.pid() == pid);
}

TEST_CASE("a late stdio answer that can't be used is evidence all the same") {
  for (const char* how : {"spoil", "spoil_deep", "spoil_big"}) {
    INFO(how);
    Fixture f("legacy");
    f.pid();
    const CallId id = f.send("hold", Duration{50});
    CHECK(f.sink.wait(id).failure == Failure::timeout);
    CHECK(f.run(how).answer == Answer::result);
    const Evidence late = f.sink.wait_late(id);
    CHECK(late.failure == (how == std::string("spoil") ? Failure::malformed_rpc : Failure::too_large));
    CHECK_FALSE(late.detail.empty());
  }
}

TEST_CASE("a cancelled stdio call ends at once") {
  Fixture f("legacy");
  f.pid();
  const CallId id = f.send("hold");
  f.pid();  // the frame before this one is out
  f.transport->cancel(id);
  const Evidence e = f.sink.wait(id);
  CHECK(e.failure == Failure::cancelled);
  CHECK(e.phase == Phase::tx_all);
}

TEST_CASE("a stdio process that ends leaves doubt only for what was sent, and a fresh one takes over") {
  for (const char* tool : {"exit", "half"}) {
    INFO(tool);
    Fixture f("legacy");
    const std::int64_t pid = f.pid();
    const Evidence e = f.run(tool);
    CHECK(e.failure == Failure::process_exit);
    CHECK(e.phase == Phase::tx_all);
    CHECK(f.pid() != pid);
  }
  Fixture f("legacy");
  const Evidence answered = f.run("answer_and_exit");
  REQUIRE(answered.answer == Answer::result);
  const std::int64_t pid = *f.field(answered, "/structuredContent/pid")->integer();
  Evidence next = f.run("ok");
  while (next.failure == Failure::process_exit) next = f.run("ok");  // its end may not have been noticed yet
  REQUIRE(next.answer == Answer::result);
  CHECK(*f.field(next, "/structuredContent/pid")->integer() != pid);
}

TEST_CASE("a command that cannot start was never sent") {
  Fixture f("legacy");
  const Evidence e = f.run("ok", Duration{30'000}, "{}", "none");
  CHECK(e.failure == Failure::process_start);
  CHECK(e.phase == Phase::local);
  CHECK(e.bytes_sent == 0);
}

TEST_CASE("a handshake that is refused or hangs is never-sent") {
  Fixture refused("refuse");
  CHECK(refused.run("ok").failure == Failure::handshake);
  Fixture hanging("hang");
  const Evidence e = hanging.run("ok", Duration{300});
  CHECK(e.failure == Failure::handshake);
  CHECK(e.phase == Phase::local);
}

TEST_CASE("answers over the limit end their call, not the process") {
  Fixture f("legacy");
  const std::int64_t pid = f.pid();
  CHECK(f.run("big").failure == Failure::too_large);
  CHECK(f.run("deep").failure == Failure::too_large);
  CHECK(f.pid() == pid);
}

TEST_CASE("a frame is written whole or the process is replaced") {
  Fixture f("legacy");
  const std::int64_t pid = f.pid();
  CHECK(f.run("stall").answer == Answer::result);  // from here on nothing is read
  const CallId out = f.send("ok");                 // fits into the pipe
  const CallId half = f.send("ok", Duration{400}, R"({"x":")" + std::string(1 << 20, 'x') + "\"}");
  const CallId behind = f.send("ok", Duration{200});
  const Evidence never = f.sink.wait(behind);
  CHECK(never.failure == Failure::timeout);
  CHECK(never.phase == Phase::tx0);
  CHECK(never.bytes_sent == 0);
  const Evidence part = f.sink.wait(half);
  CHECK(part.failure == Failure::timeout);
  CHECK(part.phase == Phase::tx_part);
  CHECK(part.bytes_sent > 0);
  CHECK(f.sink.wait(out).failure == Failure::process_exit);
  CHECK(f.pid() != pid);
}

TEST_CASE("a child sees a small safe environment and what the file gives it") {
  setenv("HOLDFAST_TEST_SECRET", "s3cret", 1);
  Fixture f("legacy");
  const Evidence e = f.run("environment");
  CHECK(f.field(e, "/structuredContent/extra")->text() == "yes");
  CHECK(e.result.find("HOLDFAST_TEST_SECRET") == std::string::npos);
  CHECK(e.result.find("PATH") != std::string::npos);
}

TEST_CASE("a server's ping is answered") {
  Fixture f("legacy");
  const Evidence e = f.run("ask");
  CHECK(f.field(e, "/structuredContent/answered/id")->text() == "s-1");
  CHECK(f.field(e, "/structuredContent/answered/result")->members.empty());
}

TEST_CASE("stop ends the children, also those that ignore it, and reports nothing more") {
  for (const std::string mode : {"legacy", "stubborn"}) {
    INFO(mode);
    Fixture f(mode);
    const auto pid = static_cast<pid_t>(f.pid());
    f.send("hold");
    const std::size_t reports = f.sink.reports();
    f.transport->stop();
    CHECK(kill(pid, 0) == -1);
    CHECK(f.sink.reports() == reports);
  }
}

TEST_CASE("a child does not outlive the thread that started it") {
  pid_t pid = 0;
  Descriptor kept_input;
  std::thread starter([&] {
    Result<Child> child = start_child({"sleep", "600"}, {});
    REQUIRE(child.has_value());
    pid = child->pid;
    kept_input = std::move(child->input);
  });
  starter.join();
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
}

TEST_CASE("the dispatcher learns from trusted servers before the first call") {
  SystemClock clock;
  WaitingSink sink;
  Catalog catalog(Fixture::config("legacy", true));
  const std::unique_ptr<HttpClient> client = make_curl_client(clock);
  const std::unique_ptr<Dispatcher> dispatcher = make_dispatcher(clock, catalog, *client, sink);
  dispatcher->discover_trusted(Duration{30'000});
  CHECK(catalog.find("s", "look")->policy.effect == Effect::read);
  Call call;
  call.id = 7;
  call.server = "s";
  call.tool = "look2";
  call.request = {"look2", "{}"};
  call.deadline = clock.now() + Duration{30'000};
  dispatcher->start(call);
  CHECK(sink.wait(7).failure == Failure::not_listed);
  dispatcher->stop();
  client->stop();
}

}  // namespace
}  // namespace holdfast::tools::mcp
