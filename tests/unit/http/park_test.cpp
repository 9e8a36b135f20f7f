#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "test_server.h"

namespace holdfast::http {
namespace {

const std::string kPark = "GET /park HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace

TEST_CASE("a parked request runs again when its topic is woken") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(kPark);
  REQUIRE(eventually([&] { return test.parked == 1; }));
  test.server->wake("another topic");
  test.server->wake("topic");
  CHECK(body_of(client.answer()) == "woken");
  client.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(status_of(client.answer()) == 200);
}

TEST_CASE("a parked request runs again when its time is over") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send("GET /park?ms=80 HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(body_of(client.answer()) == "waited out");
}

TEST_CASE("parked requests hold no thread") {
  TestServer test({.connections = 2'000, .threads = 2});
  test.listen();
  std::vector<RawClient> parked;
  for (int i = 0; i < 1'000; ++i) {
    parked.emplace_back(test.address);
    parked.back().send(kPark);
  }
  REQUIRE(eventually([&] { return test.parked == 1'000; }));
  RawClient good(test.address);
  good.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(status_of(good.answer()) == 200);
  test.server->wake("topic");
  for (RawClient& client : parked) REQUIRE(body_of(client.answer()) == "woken");
}

TEST_CASE("a parked client that hangs up is forgotten") {
  TestServer test({.connections = 1});
  test.listen();
  {
    RawClient client(test.address);
    client.send(kPark);
    REQUIRE(eventually([&] { return test.parked == 1; }));
  }
  CHECK(eventually([&] {
    RawClient next(test.address);  // there is room for one
    next.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    return status_of(next.answer()) == 200;
  }));
}

TEST_CASE("the handler's state lives while the request is parked") {
  TestServer test;
  test.server->route("GET", "/count", Access::open, [&](Request& r) -> Outcome {
    const int runs = r.state->has_value() ? std::any_cast<int>(*r.state) + 1 : 1;
    *r.state = runs;
    if (runs == 3) return Response{.body = "three"};
    return Park{test.clock.now() + Duration(10)};
  });
  test.listen();
  RawClient client(test.address);
  client.send("GET /count HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(body_of(client.answer()) == "three");
}

TEST_CASE("no wake is lost between the look and the park") {
  TestServer test;
  std::atomic<int> version{0};
  test.server->route("GET", "/after", Access::open, [&](Request& r) -> Outcome {
    const int seen = std::stoi(r.query_value("v").value_or("0"));
    r.watch("version");
    if (version > seen) return Response{.body = std::to_string(version)};
    if (r.waited_out) return Response{.status = 500};
    return Park{test.clock.now() + Duration(20'000)};
  });
  test.listen();
  constexpr int kClients = 8;
  constexpr int kRounds = 300;
  std::atomic<int> lost{0};
  std::atomic<int> running{kClients};
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      RawClient client(test.address);
      int seen = 0;
      for (int round = 0; round < kRounds && lost == 0; ++round) {
        client.send("GET /after?v=" + std::to_string(seen) + " HTTP/1.1\r\nHost: x\r\n\r\n");
        const std::string answer = client.answer(10'000);
        if (status_of(answer) != 200) {
          ++lost;
          break;
        }
        seen = std::stoi(body_of(answer));
      }
      --running;
    });
  }
  std::minstd_rand random(1);
  while (running > 0) {
    ++version;
    test.server->wake("version");
    // Not a wait for anything: it varies where in the other threads' work the wake falls.
    for (unsigned spin = random() % 20'000; spin > 0; --spin)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    if (random() % 8 == 0) ::poll(nullptr, 0, 1);
  }
  for (std::thread& thread : clients) thread.join();
  CHECK(lost == 0);
}

TEST_CASE("a stream is sent piece by piece and ended") {
  TestServer test;
  std::atomic<int> pieces{0};
  test.server->route("GET", "/events", Access::open, [&](Request& r) -> Outcome {
    r.watch("events");
    const int n = r.state->has_value() ? std::any_cast<int>(*r.state) + 1 : 1;
    *r.state = n;
    pieces = n;
    return Stream{.data = "data: " + std::to_string(n) + "\n\n",
                  .until = test.clock.now() + Duration(60'000),
                  .end = n == 3};
  });
  test.listen();
  RawClient client(test.address);
  client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(client.receives("data: 1\n\n\r\n"));
  CHECK(client.buffer().find("Content-Type: text/event-stream\r\n") != std::string::npos);
  CHECK(client.buffer().find("\r\n\r\n9\r\ndata: 1\n\n\r\n") != std::string::npos);
  test.server->wake("events");
  REQUIRE(client.receives("data: 2\n\n\r\n"));
  test.server->wake("events");
  REQUIRE(client.receives("data: 3\n\n\r\n0\r\n\r\n"));

  RawClient old(test.address);
  old.send("GET /events HTTP/1.0\r\n\r\n");
  REQUIRE(old.receives("\r\n\r\ndata: 1\n\n"));
  CHECK(old.buffer().find("chunked") == std::string::npos);
}

TEST_CASE("stop answers what is parked by a last run") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(kPark);
  REQUIRE(eventually([&] { return test.parked == 1; }));
  test.server->stop();
  CHECK(body_of(client.answer()) == "waited out");
  CHECK(client.ends());
}

TEST_CASE("stop turns away what parks again") {
  TestServer test;
  test.server->route("GET", "/forever", Access::open, [&](Request&) -> Outcome {
    ++test.parked;
    return Park{test.clock.now() + Duration(60'000)};
  });
  test.listen();
  RawClient client(test.address);
  client.send("GET /forever HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(eventually([&] { return test.parked == 1; }));
  test.server->stop();
  CHECK(status_of(client.answer()) == 503);
}

}  // namespace holdfast::http
