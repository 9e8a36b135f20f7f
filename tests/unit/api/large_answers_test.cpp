#include <catch2/catch.hpp>

#include "api/large_answers.h"

using namespace holdfast;
using api::LargeAnswers;

namespace {

LargeAnswers::Text text(std::size_t bytes = 1 << 20) {
  return {.deadline = {}, .before = "{", .after = std::make_shared<const std::string>(bytes, 'x')};
}

}  // namespace

TEST_CASE("a large text is kept until its run changes") {
  LargeAnswers large;
  CHECK(large.find("a").after == nullptr);
  large.keep(large.before_reading("a"), "a", text());
  REQUIRE(large.find("a").after != nullptr);
  CHECK(large.find("b").after == nullptr);
  large.forget("a");
  CHECK(large.find("a").after == nullptr);
}

TEST_CASE("what was read before a change is not kept after it") {
  LargeAnswers large;
  const auto ticket = large.before_reading("a");
  large.forget("a");
  large.keep(ticket, "a", text());
  CHECK(large.find("a").after == nullptr);
  large.keep(large.before_reading("a"), "a", text());
  CHECK(large.find("a").after != nullptr);
}

TEST_CASE("large texts are bounded in number and bytes, oldest first") {
  LargeAnswers large;
  for (const char* id : {"a", "b", "c", "d", "e"}) large.keep(large.before_reading(id), id, text());
  CHECK(large.find("a").after == nullptr);
  CHECK(large.find("b").after != nullptr);
  large.keep(large.before_reading("f"), "f", text(std::size_t{31} << 20));
  CHECK(large.find("d").after == nullptr);
  CHECK(large.find("e").after != nullptr);
  CHECK(large.find("f").after != nullptr);
  large.keep(large.before_reading("g"), "g", text(std::size_t{33} << 20));
  CHECK(large.find("g").after == nullptr);
}

TEST_CASE("only runs that were large wait for one another") {
  LargeAnswers large;
  CHECK_FALSE(large.one_at_a_time("a").owns_lock());
  large.was_large("a");
  CHECK(large.one_at_a_time("a").owns_lock());
  CHECK_FALSE(large.one_at_a_time("b").owns_lock());
}
