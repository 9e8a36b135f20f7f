#include <catch2/catch.hpp>

#include "test_server.h"

namespace holdfast::http {
namespace {

std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

std::string post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("many requests are served on one connection") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  for (int i = 0; i < 500; ++i) {
    const std::string body = std::to_string(i);
    client.send(post("/echo", body));
    const std::string answer = client.answer();
    REQUIRE(status_of(answer) == 200);
    REQUIRE(body_of(answer) == body);
  }
}

TEST_CASE("bodies arrive byte for byte however they are cut") {
  TestServer test;
  test.listen();
  std::string body(300'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7);
  const std::string request = post("/echo", body);
  for (const std::size_t piece : {std::size_t{1'000}, std::size_t{65'536}, request.size()}) {
    RawClient client(test.address);
    for (std::size_t at = 0; at < request.size(); at += piece)
      client.send(std::string_view(request).substr(at, piece));
    CHECK(body_of(client.answer()) == body);
  }
  RawClient drip(test.address);
  for (const char c : post("/echo", "abc")) drip.send(std::string_view(&c, 1));
  CHECK(body_of(drip.answer()) == "abc");
}

TEST_CASE("the connection ends when the client asks for it") {
  TestServer test;
  test.listen();
  for (const std::string head :
       {"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /healthz HTTP/1.0\r\n\r\n"}) {
    RawClient client(test.address);
    client.send(head);
    CHECK(status_of(client.answer()) == 200);
    CHECK(client.ends());
  }
}

TEST_CASE("an idle connection is closed after its time") {
  TestServer test({.idle_time = Duration(100)});
  test.listen();
  RawClient client(test.address);
  client.send(get("/healthz"));
  CHECK(status_of(client.answer()) == 200);
  CHECK(client.ends());
}

TEST_CASE("routes take parameters and decode path and query once") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(get("/v1/runs/a%2Fb/steps/c%2541?q=x+y%26z"));
  CHECK(body_of(client.answer()) == "a/b|c%41|x y&z");
  client.send(get("http://x/v1/runs/a/steps/b"));
  CHECK(body_of(client.answer()) == "a|b|-");
}

TEST_CASE("HEAD is answered like GET without the body") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  REQUIRE(client.receives("\r\n\r\n"));
  CHECK(client.buffer().find("Content-Length: 7\r\n") != std::string::npos);
  CHECK(client.buffer().ends_with("\r\n\r\n"));
}

TEST_CASE("Expect: 100-continue is answered before the body, and not when the request is refused") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  REQUIRE(client.receives("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send("abc");
  CHECK(body_of(client.answer()) == "abc");
  RawClient large(test.address);
  large.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3000000\r\n\r\n");
  CHECK(status_of(large.answer()) == 413);
  CHECK_FALSE(large.saw_continue());
}

TEST_CASE("what a handler throws is not told") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(get("/throw"));
  const std::string answer = client.answer();
  CHECK(status_of(answer) == 500);
  CHECK(answer.find("\"code\":\"internal\"") != std::string::npos);
  CHECK(answer.find("secret") == std::string::npos);
}

TEST_CASE("tokens are checked before the body is read") {
  TestServer test({.authenticate = [](std::string_view token) -> std::optional<Identity> {
    if (token == "c") return Identity{"client", false};
    if (token == "o") return Identity{"ops", true};
    return std::nullopt;
  }});
  test.listen();
  struct Case {
    std::string path, header;
    int status;
  };
  const std::vector<Case> cases = {
      {"/client", "", 401},
      {"/client", "Authorization: Basic c\r\n", 401},
      {"/client", "Authorization: Bearer \r\n", 401},
      {"/client", "Authorization: Bearer x\r\n", 401},
      {"/operate", "Authorization: Bearer c\r\n", 403},
      {"/nowhere", "", 404},
      {"/healthz", "", 405},
  };
  for (const Case& c : cases) {
    INFO(c.path << " " << c.header);
    RawClient client(test.address);  // only the head is sent
    client.send("POST " + c.path + " HTTP/1.1\r\nHost: x\r\n" + c.header + "Content-Length: 900000\r\n\r\n");
    const std::string answer = client.answer();
    CHECK(status_of(answer) == c.status);
    CHECK((answer.find("WWW-Authenticate: Bearer") != std::string::npos) == (c.status == 401));
  }
  RawClient client(test.address);
  client.send(post("/client", "x", "Authorization: bearer c\r\n"));
  CHECK(body_of(client.answer()) == "client");
  client.send(post("/operate", "x", "Authorization: Bearer o\r\n"));
  CHECK(body_of(client.answer()) == "ops");
  client.send(post("/client", "x", "Authorization: Bearer o\r\n"));
  CHECK(body_of(client.answer()) == "ops");
}

TEST_CASE("a refusal reaches a client that is still sending its body") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" +
              std::string(4'000'000, 'x'));
  CHECK(status_of(client.answer()) == 413);
}

TEST_CASE("no new connection is served after stop_accepting, and what is in hand goes on") {
  TestServer test;
  test.listen();
  RawClient waiting(test.address);
  waiting.send(get("/park"));
  REQUIRE(eventually([&] { return test.parked == 1; }));
  RawClient idle(test.address);
  idle.send(get("/healthz"));
  REQUIRE(status_of(idle.answer()) == 200);
  test.server->stop_accepting();
  CHECK(idle.ends());
  CHECK_FALSE(RawClient(test.address).connected());
  test.server->wake("topic");
  const std::string answer = waiting.answer();
  CHECK(body_of(answer) == "woken");
  CHECK(answer.find("Connection: close") != std::string::npos);
}

TEST_CASE("IPv6 literals and addresses that cannot be bound") {
  SystemClock clock;
  const auto six = make_server(clock, {.listen = "[::1]:0"});
  const auto bound = six->listen();
  if (bound) CHECK(bound->starts_with("[::1]:"));  // a machine without IPv6 may refuse it
  const auto none = make_server(clock, {.listen = "127.0.0.1"})->listen();
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == "listen_failed");
}

}  // namespace holdfast::http
