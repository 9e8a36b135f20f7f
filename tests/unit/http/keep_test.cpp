// A worker that has answered a request waits a moment for the client's next one.
#include <pthread.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <thread>

#include "test_server.h"

namespace holdfast::http {
namespace {

constexpr std::chrono::seconds kLong{20};  // longer than a client waits: a test that needs its end fails

Outcome name_thread(Request&) {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return Response{.body = name};
}

const std::string kWork = "GET /work HTTP/1.1\r\nHost: x\r\n\r\n";  // has no glance
const std::string kWho = "GET /who HTTP/1.1\r\nHost: x\r\n\r\n";    // has one: whoever has the connection answers

struct KeepingServer : TestServer {
  explicit KeepingServer(Options options = {.keep_time = kLong}) : TestServer(std::move(options)) {
    server->route("GET", "/work", Access::open, name_thread);
    server->route("GET", "/who", Access::open, name_thread, name_thread);
    server->route("GET", "/hang", Access::open, [this](Request&) -> Outcome {
      hangs = true;
      while (!go_on) ::poll(nullptr, 0, 1);
      return Response{};
    });
    listen();
  }
  std::string ask(RawClient& client, const std::string& request) {
    client.send(request);
    return body_of(client.answer());
  }
  /// A worker has the client's connection. The first ones may find a second thread still starting.
  void keep(RawClient& client) {
    REQUIRE(eventually([&] { return ask(client, kWork) == "test worker" && ask(client, kWho) == "test worker"; }));
  }
  std::atomic<bool> hangs = false, go_on = false;
};

}  // namespace

TEST_CASE("a lone client's next requests are answered by the worker that has answered the one before") {
  KeepingServer test;
  RawClient client(test.address);
  CHECK(test.ask(client, kWho) == "test listener");
  test.keep(client);
  for (int i = 0; i < 3; ++i) CHECK(test.ask(client, kWho) == "test worker");
  CHECK(test.ask(client, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc") == "abc");
  CHECK(test.ask(client, kWho) == "test worker");
}

TEST_CASE("without a time to keep it, a connection goes back to the listener at once") {
  KeepingServer test({.keep_time = std::chrono::microseconds{0}});
  RawClient client(test.address);
  CHECK(test.ask(client, kWork) == "test worker");
  CHECK(test.ask(client, kWho) == "test listener");
}

TEST_CASE("a connection goes back when its client is silent for a moment, and is ended like any other idle one") {
  KeepingServer test({.idle_time = Duration{300}, .keep_time = std::chrono::milliseconds{20}});
  RawClient client(test.address);
  test.keep(client);
  CHECK(client.ends());
}

TEST_CASE("whoever comes while connections are kept is answered at once: the last thread keeps none") {
  KeepingServer test({.threads = 3, .keep_time = kLong});
  RawClient first(test.address), second(test.address), third(test.address), late(test.address);
  test.keep(first);
  test.keep(second);
  for (int i = 0; i < 5; ++i) {
    for (RawClient* client : {&third, &late, &first, &second}) CHECK(test.ask(*client, kWork) == "test worker");
  }
}

TEST_CASE("a connection goes back when another request waits for a thread") {
  KeepingServer test({.threads = 2, .keep_time = kLong});
  RawClient kept(test.address), hanging(test.address), waiting(test.address);
  test.keep(kept);
  hanging.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(eventually([&] { return test.hangs.load(); }));
  waiting.send(kWork);
  CHECK(test.ask(kept, kWork) == "test worker");  // its worker looks at the others after each answer
  CHECK(status_of(waiting.answer()) == 200);
  CHECK(test.ask(kept, kWho) == "test listener");
  test.go_on = true;
  CHECK(status_of(hanging.answer()) == 200);
}

TEST_CASE("a client that is gone while its worker is at work costs the listener nothing") {
  KeepingServer test;
  RawClient client(test.address);
  test.keep(client);
  client.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(eventually([&] { return test.hangs.load(); }));
  client.reset();
  const std::clock_t before = std::clock();
  constexpr int kLookMs = 300;
  ::poll(nullptr, 0, kLookMs);
  CHECK((std::clock() - before) * 1'000 / CLOCKS_PER_SEC < kLookMs / 3);  // of processor time, all threads
  test.go_on = true;
}

TEST_CASE("what is not one whole and admissible request goes back to the listener, which sees every byte of it") {
  const bool is_first = GENERATE(true, false);  // its socket is quiet from the second one on
  KeepingServer test({.body_bytes = 10, .header_time = Duration{200}, .keep_time = kLong, .authenticate = [](std::string_view) { return std::nullopt; }});
  RawClient client(test.address);
  if (!is_first) test.keep(client);
  CHECK(test.ask(client, kWork) == "test worker");

  SECTION("half a head") {
    client.send(kWho.substr(0, 7));
    CHECK(test.ask(client, kWho.substr(7)) == "test listener");
  }
  SECTION("half a head, and no more") {
    client.send(kWho.substr(0, 7));
    CHECK(status_of(client.answer()) == 408);
  }
  SECTION("a head whose body comes later") {
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    CHECK(client.receives("HTTP/1.1 100 Continue"));
    CHECK(test.ask(client, "abc") == "abc");
  }
  SECTION("more than one request") {
    CHECK(test.ask(client, kWho + kWho) == "test listener");
    CHECK(client.ends());
  }
  SECTION("what is refused") {
    const auto [request, status] = GENERATE(table<std::string, int>({
        {"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 501},
        {"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", 404},
        {"POST /client HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer no\r\n\r\n", 401},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", 413},
    }));
    client.send(request);
    CHECK(status_of(client.answer()) == status);
    CHECK(client.ends());
  }
  SECTION("the end") {
    client.half_close();
    CHECK(client.ends());
  }
}

TEST_CASE("a request that parks leaves its worker, and is woken like any other") {
  KeepingServer test;
  RawClient client(test.address);
  for (int i = 0; i < 3; ++i) {
    test.keep(client);
    client.send("GET /park HTTP/1.1\r\nHost: x\r\n\r\n");
    REQUIRE(eventually([&] { return test.parked == i + 1; }));
    test.server->wake("topic");
    CHECK(body_of(client.answer()) == "woken");
  }
}

TEST_CASE("a client that never stops asking does not keep a server from stopping") {
  KeepingServer test;
  std::atomic<int> answers = 0;
  std::thread asking([&] {
    RawClient client(test.address);
    while (test.ask(client, kWork) == "test worker") ++answers;
  });
  REQUIRE(eventually([&] { return answers > 100; }));
  test.server->stop_accepting();
  asking.join();
  test.server->stop();
  CHECK(answers > 100);
}

}  // namespace holdfast::http
