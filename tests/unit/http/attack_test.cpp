// What broken and hostile clients send, and what it costs them: an answer, or the end of the connection, and
// nobody else anything.
#include <catch2/catch.hpp>
#include <fstream>
#include <utility>

#include "support/slack.h"
#include "test_server.h"

namespace holdfast::http {
namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

const std::string kPost = "POST /echo HTTP/1.1\r\nHost: x\r\n";

struct Attack {
  std::string name;
  std::string bytes;
  int status;
};

std::vector<Attack> attacks() {
  return {
      {"endless chunks",
       kPost + "Transfer-Encoding: chunked\r\n\r\n" +
           repeated("10\r\n" + std::string(16, 'x') + "\r\n", 100'000),
       411},
      {"both lengths", kPost + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"two lengths", kPost + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400},
      {"the same length twice", kPost + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
      {"a list of lengths", kPost + "Content-Length: 2, 2\r\n\r\n{}", 400},
      {"a signed length", kPost + "Content-Length: +2\r\n\r\n{}", 400},
      {"a negative length", kPost + "Content-Length: -1\r\n\r\n{}", 400},
      {"a huge length", kPost + "Content-Length: 99999999999999999999\r\n\r\n{}", 400},
      {"a large length", kPost + "Content-Length: 1048577\r\n\r\n{}", 413},
      {"gzip", kPost + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", 415},
      {"multipart", kPost + "Content-Type: Multipart/Form-Data; boundary=x\r\nContent-Length: 4\r\n\r\nabcd",
       415},
      {"a huge header", kPost + "X-A: " + std::string(5'000'000, 'a') + "\r\n\r\n", 431},
      {"many headers", kPost + repeated("X-A: b\r\n", 100'000) + "\r\n", 431},
      {"101 headers", kPost + repeated("X-A: b\r\n", 100) + "\r\n", 431},
      {"a large head of short lines",
       kPost + repeated("X-A: " + std::string(10'000, 'a') + "\r\n", 10) + "\r\n", 431},
      {"a long address", "GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
      {"an endless address", "GET /" + std::string(3'000'000, 'a'), 414},
      {"noise", repeated(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9), 20), 400},
      {"no target", "GET\r\n\r\n", 400},
      {"no version", "GET /healthz\r\n\r\n", 400},
      {"another version", "GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 505},
      {"another method", "BREW /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"a lower-case method", "get /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no host", "GET /healthz HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
      {"bare line feeds", "GET /healthz HTTP/1.1\nHost: x\n\n", 400},
      {"a folded line", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n", 400},
      {"a blank before the colon", "GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"a header without a name", "GET /healthz HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", 400},
      {"NUL in a value", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a" + std::string(1, '\0') + "b\r\n\r\n",
       400},
      {"CR in a value", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\rb\r\n\r\n", 400},
      {"NUL in the path", "GET /healthz%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"a broken escape", "GET /healthz%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"a broken escape in the query", "GET /healthz?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no slash", "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"an unknown expectation", kPost + "Expect: coffee\r\nContent-Length: 2\r\n\r\n{}", 417},
      {"two tokens",
       kPost + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: 2\r\n\r\n{}", 400},
      {"no such path", "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404},
      {"another method of the path", "DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 405},
  };
}

long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return 0;
}

}  // namespace

TEST_CASE("hostile requests are refused with a problem and reach no handler") {
  TestServer test;
  test.listen();
  const long before_kib = peak_kib();
  for (const Attack& attack : attacks()) {
    INFO(attack.name);
    RawClient client(test.address);
    client.send(attack.bytes);
    const std::string answer = client.answer();
    CHECK(status_of(answer) == attack.status);
    CHECK(answer.find("application/problem+json") != std::string::npos);
    CHECK(answer.find("Connection: close") != std::string::npos);
    RawClient good(test.address);
    good.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(status_of(good.answer()) == 200);
  }
  CHECK(test.echoed == 0);
  CHECK(peak_kib() - before_kib < 48 * 1024 * testing::kSlack);
}

TEST_CASE("header values arrive as they were sent") {
  TestServer test;
  test.listen();
  for (const std::string value : {"a%41", "a%0d%0ab", "\xc3\xa4", "a+b", "%", "x\ty"}) {
    RawClient client(test.address);
    client.send("GET /header HTTP/1.1\r\nHost: x\r\nIdempotency-Key:  " + value + " \r\n\r\n");
    CHECK(body_of(client.answer()) == value);
  }
}

TEST_CASE("a slow head ends in 408 and holds no thread") {
  TestServer test({.threads = 1, .header_time = Duration(150)});
  test.listen();
  std::vector<RawClient> slow;
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(test.address);
    slow.back().send("POST /echo HTTP/1.1\r\nHost: x\r\nX-A: aaa");
  }
  RawClient good(test.address);
  good.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(status_of(good.answer()) == 200);
  for (RawClient& client : slow) CHECK(status_of(client.answer()) == 408);
}

TEST_CASE("a slow body ends in 408 and holds no thread") {
  TestServer test({.threads = 1, .body_time = Duration(150)});
  test.listen();
  RawClient slow(test.address);
  slow.send(kPost + "Content-Length: 100\r\n\r\nabc");
  RawClient good(test.address);
  good.send(kPost + "Content-Length: 3\r\n\r\nabc");
  CHECK(body_of(good.answer()) == "abc");
  CHECK(status_of(slow.answer()) == 408);
  CHECK(test.echoed == 1);
}

TEST_CASE("a connection that never says anything is closed") {
  TestServer test({.header_time = Duration(100)});
  test.listen();
  RawClient silent(test.address);
  CHECK(silent.ends());
}

TEST_CASE("a client that sends nothing more is still answered") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(kPost + "Content-Length: 5\r\n\r\nhello");
  client.half_close();
  CHECK(body_of(client.answer()) == "hello");
  CHECK(client.ends());
}

TEST_CASE("a request that breaks off reaches no handler") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(kPost + "Content-Length: 5\r\n\r\nhell");
  client.half_close();
  CHECK(client.ends());
  CHECK(test.echoed == 0);
}

TEST_CASE("what follows a request before its answer is dropped with the connection") {
  TestServer test;
  test.listen();
  RawClient client(test.address);
  client.send(kPost + "Content-Length: 1\r\n\r\na" + kPost + "Content-Length: 1\r\n\r\nb");
  const std::string first = client.answer();
  CHECK(body_of(first) == "a");
  CHECK(first.find("Connection: close") != std::string::npos);
  CHECK(client.ends());
  CHECK(test.echoed == 1);
}

TEST_CASE("one connection over the cap is told so at once") {
  TestServer test({.connections = 3});
  test.listen();
  std::vector<RawClient> held;
  for (int i = 0; i < 3; ++i) {
    held.emplace_back(test.address);
    held.back().send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    REQUIRE(status_of(held.back().answer()) == 200);
  }
  RawClient surplus(test.address);
  surplus.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = surplus.answer();
  CHECK(status_of(answer) == 503);
  CHECK(answer.find("Retry-After: 1") != std::string::npos);
  held.pop_back();
  CHECK(eventually([&] {
    RawClient next(test.address);
    next.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    return status_of(next.answer()) == 200;
  }));
}

TEST_CASE("a client that does not read its answer is cut off and holds no thread") {
  TestServer test({.connections = 1, .threads = 1, .write_time = Duration(200)});
  const std::string large(16 << 20, 'x');
  test.server->route("GET", "/large", Access::open,
                     [&](Request&) -> Outcome { return Response{.body = large}; });
  test.listen();
  RawClient lazy(test.address);
  lazy.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(lazy.receives("HTTP/1.1 200 OK"));
  CHECK(eventually([&] {
    RawClient next(test.address);  // there is room for one
    next.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    return status_of(next.answer()) == 200;
  }));
}

TEST_CASE("a large answer arrives whole beside one that is not read") {
  TestServer test({.threads = 1});
  const std::string large(16 << 20, 'x');
  test.server->route("GET", "/large", Access::open,
                     [&](Request&) -> Outcome { return Response{.body = large}; });
  test.listen();
  RawClient lazy(test.address);
  lazy.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(lazy.receives("HTTP/1.1 200 OK"));
  RawClient eager(test.address);
  eager.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(body_of(eager.answer(20'000)).size() == large.size());
}

}  // namespace holdfast::http
