// What is answered on the listener's own thread, and what never is.
#include <pthread.h>

#include <catch2/catch.hpp>

#include "test_server.h"

namespace holdfast::http {
namespace {

/// "test listener" or "test worker".
std::string this_thread() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

Outcome name_thread(Request& request) {
  return Response{.body = this_thread() + (request.body.empty() ? "" : " body")};
}

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

std::string post(const std::string& path, std::size_t bytes) {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x');
}

std::string ask(const std::string& address, const std::string& request) {
  RawClient client(address);
  client.send(request);
  return body_of(client.answer());
}

}  // namespace

TEST_CASE("what a glance answers is answered on the listener's thread, and its handler does not run") {
  TestServer test;
  std::atomic<int> handled = 0;
  test.server->route(
      "GET", "/glance", Access::client,
      [&](Request&) -> Outcome {
        ++handled;
        return Response{.body = "handled " + this_thread()};
      },
      [](Request& r) -> std::optional<Outcome> {
        if (r.query_value("more")) return std::nullopt;
        return name_thread(r);
      });
  test.listen();
  CHECK(ask(test.address, get("/glance")) == "test listener");
  CHECK(handled == 0);
  CHECK(ask(test.address, get("/glance?more=1")) == "handled test worker");
  CHECK(handled == 1);
}

TEST_CASE("a request parked by a glance is answered by one when it is woken, and waits out like any other") {
  TestServer test;
  std::atomic<int> parked = 0;
  const auto park = [&](Request& r) -> Outcome {
    if (r.waited_out) return Response{.body = "waited out"};
    if (r.resumed) return name_thread(r);
    r.watch("glance");
    *r.state = 1;
    ++parked;
    return Park{test.clock.now() + Duration(std::stoi(*r.query_value("ms")))};
  };
  test.server->route("GET", "/park-glance", Access::client, park, park);
  test.listen();
  CHECK(ask(test.address, get("/park-glance?ms=30")) == "waited out");
  std::vector<RawClient> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(test.address).send(get("/park-glance?ms=60000"));
  REQUIRE(eventually([&] { return parked == 21; }));
  test.server->wake("glance");
  std::size_t by_listener = 0;
  for (RawClient& client : clients) by_listener += body_of(client.answer()) == "test listener" ? 1 : 0;
  CHECK(by_listener > 0);  // a turn of the listener that is over its time gives the others to the workers
}

TEST_CASE("a long body is not read at a glance") {
  TestServer test;
  test.server->route("POST", "/read", Access::client, name_thread, name_thread);
  test.listen();
  CHECK(ask(test.address, post("/read", 1'000)) == "test listener body");
  CHECK(ask(test.address, post("/read", 20'000)) == "test worker body");
}

TEST_CASE("one turn of the listener holds only so many glances, the others go to the workers") {
  TestServer test;
  std::atomic<int> at_glance = 0, handled = 0;
  test.server->route(
      "GET", "/long", Access::client,
      [&](Request&) -> Outcome {
        ++handled;
        return Response{};
      },
      [&](Request& r) -> std::optional<Outcome> {
        ++at_glance;
        if (r.resumed) {  // as long as a turn may be
          for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2); std::chrono::steady_clock::now() < until;) {
          }
          return Response{};
        }
        r.watch("all");
        return Park{test.clock.now() + Duration(60'000)};
      });
  test.listen();
  std::vector<RawClient> clients;
  for (int i = 0; i < 10; ++i) {
    clients.emplace_back(test.address).send(get("/long"));
    REQUIRE(eventually([&] { return at_glance + handled == i + 1; }));
  }
  test.server->wake("all");  // one message, so one turn
  for (RawClient& client : clients) CHECK(status_of(client.answer()) == 200);
  CHECK(at_glance == 11);
  CHECK(handled == 9);
}

TEST_CASE("a client that asks again at once is served turn by turn, and a hang-up in between is nobody's harm") {
  TestServer test;
  test.server->route("POST", "/read", Access::client, name_thread, name_thread);
  test.listen();
  RawClient client(test.address);
  for (int i = 0; i < 200; ++i) {
    client.send("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n");  // the body after the head
    client.send("x");
    REQUIRE(body_of(client.answer()).ends_with(" body"));
  }
  client.hang_up();
  CHECK(ask(test.address, get("/healthz")) == "\"alive\"");
}

TEST_CASE("one listener that hangs, threads and all, is nothing to another one of the same process") {
  std::atomic<bool> go_on = false;
  std::atomic<int> held = 0;
  const auto hang = [&](Request&) -> Outcome {
    ++held;
    while (!go_on) ::poll(nullptr, 0, 1);
    return Response{};
  };
  TestServer client({.threads = 2}), admin({.threads = 2});
  client.server->route("GET", "/hang", Access::client, hang);
  client.server->route("GET", "/hang-listener", Access::client, hang, hang);
  admin.server->route("GET", "/work", Access::client, name_thread);
  client.listen();
  admin.listen();
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) clients.emplace_back(client.address).send(get("/hang"));
  REQUIRE(eventually([&] { return held == 2; }));
  clients.emplace_back(client.address).send(get("/hang-listener"));
  REQUIRE(eventually([&] { return held == 3; }));
  CHECK(ask(admin.address, get("/healthz")) == "\"alive\"");
  CHECK(ask(admin.address, get("/work")) == "test worker");
  CHECK(held == 3);
  go_on = true;
  for (RawClient& waiting : clients) CHECK(status_of(waiting.answer()) == 200);
}

TEST_CASE("what a glance throws is not told") {
  TestServer test;
  const auto fail = [](Request&) -> Outcome { throw std::runtime_error("a secret"); };
  test.server->route("GET", "/fail", Access::client, fail, fail);
  test.listen();
  const std::string answer = ask(test.address, get("/fail"));
  CHECK(answer.find("\"code\":\"internal\"") != std::string::npos);
  CHECK(answer.find("secret") == std::string::npos);
}

}  // namespace holdfast::http
