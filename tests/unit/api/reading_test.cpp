#include "api/reading.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "api/base64url.h"
#include "api/cursor.h"
#include "api/status.h"

using namespace holdfast;

namespace {

http::Request asking(std::initializer_list<std::pair<const std::string, std::string>> query) {
  http::Request request;
  request.query = query;
  return request;
}

}  // namespace

TEST_CASE("base64url and cursors come back as they went") {
  REQUIRE(rc::check("base64url", [](const std::string& bytes) {
    RC_ASSERT(api::from_base64url(api::base64url(bytes)) == bytes);
  }));
  REQUIRE(rc::check("cursor", [](const std::vector<std::int64_t>& numbers) {
    const auto back = api::read_cursor('r', numbers.size(), api::make_cursor('r', numbers));
    RC_ASSERT(numbers.size() > 4 || (back && *back == numbers));
  }));
}

TEST_CASE("a cursor of another list, cut, longer or made up is refused") {
  const std::string good = api::make_cursor('r', {17});
  CHECK(api::read_cursor('r', 1, good).has_value());
  for (const auto& bad : {std::string{}, good.substr(0, good.size() - 1), good + "A", std::string("!!!!"),
                          std::string(500, 'A'), api::make_cursor('a', {17}), api::make_cursor('r', {17, 18}),
                          api::make_cursor('r', {})}) {
    const auto read = api::read_cursor('r', 1, bad);
    INFO(bad);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == "bad_cursor");
  }
}

TEST_CASE("wait is a duration or milliseconds, clamped, never an endless wait") {
  struct Row {
    std::string text;
    std::optional<std::int64_t> ms;  // empty: refused
  };
  for (const Row& row : {Row{"30s", 30'000}, Row{"250ms", 250}, Row{"1500", 1'500}, Row{"0", 0},
                         Row{"10m", 60'000}, Row{"99999999999999999999", 60'000}, Row{"0s", 0}, Row{"00ms", 0},
                         Row{"99999999d", 60'000}, Row{"99999999999999999999s", 60'000}, Row{"0 s", {}},
                         Row{"99999999w", {}}, Row{"s", {}}, Row{"", {}},
                         Row{"soon", {}}, Row{"-1", {}}, Row{"1.5s", {}}, Row{"30 s", {}}}) {
    INFO(row.text);
    const auto wait = api::read_wait(asking({{"wait", row.text}}));
    REQUIRE(wait.has_value() == row.ms.has_value());
    if (row.ms) CHECK((*wait)->count() == *row.ms);
  }
  CHECK_FALSE(api::read_wait(asking({}))->has_value());
}

TEST_CASE("limits are clamped and must be numbers") {
  CHECK(*api::read_limit(asking({})) == 50);
  CHECK(*api::read_limit(asking({{"limit", "0"}})) == 1);
  CHECK(*api::read_limit(asking({{"limit", "7"}})) == 7);
  CHECK(*api::read_limit(asking({{"limit", "99999999999999"}})) == 200);
  CHECK_FALSE(api::read_limit(asking({{"limit", "-3"}})).has_value());
  CHECK_FALSE(api::read_limit(asking({{"limit", "all"}})).has_value());
}

TEST_CASE("an unknown query parameter names the nearest, a repeated one is refused, labels may repeat") {
  const auto unknown = api::check_query(asking({{"stauts", "failed"}}), {"limit", "status", "label"});
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().code == "unknown_parameter");
  CHECK(unknown.error().message.find("'status'") != std::string::npos);
  CHECK_FALSE(api::check_query(asking({{"limit", "1"}, {"limit", "2"}}), {"limit"}).has_value());
  CHECK(api::check_query(asking({{"label", "a:1"}, {"label", "b:2"}}), {"label"}).has_value());
}

TEST_CASE("bodies are objects without unknown members") {
  http::Request request;
  request.body = R"({"verdict": "landed", "not": 1})";
  const auto body = api::read_body(request, 64);
  REQUIRE(body.has_value());
  const auto members = api::check_members((*body)->root, {"verdict", "note"});
  REQUIRE_FALSE(members.has_value());
  CHECK(members.error().pointer == "/not");
  CHECK(members.error().message.find("'note'") != std::string::npos);
  request.body = "[]";
  CHECK(api::read_body(request, 64).error().code == "bad_request");
  request.body = "";
  CHECK_FALSE(api::read_body(request, 64).has_value());
  CHECK(api::read_body(request, 64, true).has_value());
}

TEST_CASE("deadlines are spans or instants that are still to come") {
  http::Request request;
  request.body =
      R"({"a": "2h", "b": 1500, "c": "2026-11-30T00:00:10Z", "past": "2020-01-01T00:00:00Z", "zero": 0, "none": null})";
  const auto body = api::read_body(request, 64);
  const json::Value& root = (*body)->root;
  const Instant now{1'796'000'000'000};
  CHECK(**api::read_deadline(root, "a", now) == now + Duration{7'200'000});
  CHECK(**api::read_deadline(root, "b", now) == now + Duration{1'500});
  CHECK(**api::read_deadline(root, "c", Instant{0}) == *parse_rfc3339("2026-11-30T00:00:10Z"));
  CHECK_FALSE(api::read_deadline(root, "none", now)->has_value());
  CHECK_FALSE(api::read_deadline(root, "absent", now)->has_value());
  CHECK(api::read_deadline(root, "past", now).error().code == "bad_deadline");
  CHECK(api::read_deadline(root, "zero", now).error().pointer == "/zero");
}

TEST_CASE("codes have their status, and every other is bad input") {
  CHECK(api::status_of("run_not_found") == 404);
  CHECK(api::status_of("already_resolved") == 409);
  CHECK(api::status_of("step_in_flight") == 409);
  CHECK(api::status_of("unknown_write") == 409);
  CHECK(api::status_of("key_reused") == 422);
  CHECK(api::status_of("overloaded") == 503);
  CHECK(api::status_of("storage_full") == 507);
  CHECK(api::status_of("bad_submission") == 400);
}
