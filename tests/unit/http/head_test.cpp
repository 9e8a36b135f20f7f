#include "http/head.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "http/router.h"

namespace holdfast::http {

TEST_CASE("the scanner finds the same end however the head is cut") {
  REQUIRE(rc::check([](std::uint8_t cut) {
    const std::string head = "\r\nGET /a?b=c HTTP/1.1\r\nHost: x\r\nX: y\r\n\r\n";
    const std::string all = head + "body";
    HeadScanner scanner;
    for (std::size_t size = 1 + cut % 7; size < head.size(); size += 1 + cut % 5) {
      RC_ASSERT(scanner.scan(std::string_view(all).substr(0, size)).value_or(99) == 0U);
    }
    RC_ASSERT(scanner.scan(all).value_or(0) == head.size());
    RC_ASSERT(scanner.start() == 2U);
  }));
}

TEST_CASE("no bytes break the parser") {
  REQUIRE(rc::check([](const std::string& noise) {
    const auto head = parse_head("GET / HTTP/1.1\r\nHost: x\r\n" + noise + "\r\n\r\n");
    if (head) RC_ASSERT(head->request.headers.contains("host"));
    HeadScanner scanner;
    [[maybe_unused]] const auto length = scanner.scan(noise);
    [[maybe_unused]] const auto whole = parse_head(noise);
  }));
}

TEST_CASE("percent decoding") {
  CHECK(percent_decode("a%41+", false) == "aA+");
  CHECK(percent_decode("a%41+", true) == "aA ");
  CHECK(percent_decode("%", false) == std::nullopt);
  CHECK(percent_decode("%4", false) == std::nullopt);
  CHECK(percent_decode("%4g", false) == std::nullopt);
  CHECK(percent_decode("%41", false) == "A");
}

TEST_CASE("the most literal route wins") {
  Router router;
  router.add("GET", "/v1/{kind}/{id}", Access::open, nullptr);
  router.add("GET", "/v1/runs/{id}", Access::open, nullptr);
  router.add("POST", "/v1/runs/{id}", Access::open, nullptr);
  router.add("GET", "/", Access::open, nullptr);
  CHECK(router.match("GET", {"v1", "runs", "7"}).route->pattern == "/v1/runs/{id}");
  CHECK(router.match("HEAD", {"v1", "runs", "7"}).parameters.at("id") == "7");
  CHECK(router.match("GET", {"v1", "tools", "7"}).parameters.at("kind") == "tools");
  CHECK(router.match("GET", {""}).route->pattern == "/");
  CHECK(router.match("PUT", {"v1", "runs", "7"}).allow == "GET, POST");
  CHECK(router.match("GET", {"v1", "runs", ""}).route == nullptr);
  CHECK(router.match("GET", {"v2"}).allow.empty());
}

TEST_CASE("problem+json") {
  const Response response = problem(422, {"key_reused", "The key \"a\" belongs to run_1.", "/steps/0"}, 2);
  CHECK(response.content_type == "application/problem+json");
  CHECK(
      response.body ==
      R"({"type":"/errors/key_reused","title":"Key reused","status":422,"detail":"The key \"a\" belongs to run_1.","code":"key_reused","pointer":"/steps/0"})");
  REQUIRE(response.headers.size() == 1);
  CHECK(response.headers[0] == std::pair<std::string, std::string>{"Retry-After", "2"});
}

}  // namespace holdfast::http
