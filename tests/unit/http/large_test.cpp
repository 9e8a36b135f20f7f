#include <catch2/catch.hpp>

#include "test_server.h"

namespace holdfast::http {

TEST_CASE("a text that many answers share goes out behind each one's own beginning") {
  TestServer test;
  const auto shared = std::make_shared<const std::string>(std::string(3 << 20, 's') + "end");
  test.server->route("GET", "/shared", Access::open, [&](Request&) -> Outcome {
    Response response{.body = "own,"};
    response.shared_body = shared;
    return response;
  });
  test.server->route("GET", "/large", Access::open,
                     [&](Request&) -> Outcome { return Response{.body = std::string(3 << 20, 'l') + "end"}; });
  test.listen();
  RawClient client(test.address);
  for (int i = 0; i < 3; ++i) {
    client.send("GET /shared HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.answer();
    CHECK(answer.find("Content-Length: " + std::to_string(shared->size() + 4) + "\r\n") != std::string::npos);
    CHECK(body_of(answer) == "own," + *shared);
    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(body_of(client.answer()) == std::string(3 << 20, 'l') + "end");
  }
  client.send("HEAD /shared HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(client.receives("Content-Length: " + std::to_string(shared->size() + 4)));
  CHECK(client.ends());
  CHECK(client.buffer().find('s', client.buffer().find("\r\n\r\n") + 4) == std::string::npos);
  CHECK(eventually([&] { return shared.use_count() == 1; }));
}

TEST_CASE("health is answered while every thread is held up") {
  TestServer test({.threads = 2});
  std::atomic<bool> go_on = false;
  std::atomic<int> held = 0;
  test.server->route("GET", "/held", Access::client, [&](Request&) -> Outcome {
    ++held;
    while (!go_on) ::poll(nullptr, 0, 1);
    return Response{};
  });
  test.listen();
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(test.address).send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(eventually([&] { return held == 2; }));
  for (int i = 0; i < 3; ++i) {
    RawClient good(test.address);
    good.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(status_of(good.answer()) == 200);
  }
  CHECK(held == 2);
  go_on = true;
  for (RawClient& client : clients) CHECK(status_of(client.answer()) == 200);
}

}  // namespace holdfast::http
