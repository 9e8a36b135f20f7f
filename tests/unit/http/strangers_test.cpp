#include <catch2/catch.hpp>

#include "http/strangers.h"

namespace holdfast::http {

TEST_CASE("an address may be wrong fifty times in a row and once a second after that") {
  Strangers strangers;
  Instant now{1'000'000};
  for (int i = 0; i < 50; ++i) REQUIRE(strangers.wrong("a", now) == 0);
  CHECK(strangers.wrong("a", now) == 1);
  CHECK(strangers.wrong("b", now) == 0);
  CHECK(strangers.wrong("a", now + Duration{500}) == 1);
  CHECK(strangers.wrong("a", now + Duration{1'000}) == 0);
  CHECK(strangers.wrong("a", now + Duration{1'000}) > 0);
  for (int i = 0; i < 50; ++i) REQUIRE(strangers.wrong("a", now + Duration{100'000}) == 0);
  CHECK(strangers.wrong("a", now + Duration{100'000}) > 0);
}

TEST_CASE("more addresses than can be told apart share one account") {
  Strangers strangers;
  const Instant now{1'000'000};
  for (int i = 0; i < 4'096; ++i) REQUIRE(strangers.wrong("a" + std::to_string(i), now) == 0);
  for (int i = 0; i < 50; ++i) REQUIRE(strangers.wrong("b" + std::to_string(i), now) == 0);
  CHECK(strangers.wrong("c", now) > 0);
  CHECK(strangers.wrong("c", now + Duration{120'000}) == 0);
}

}  // namespace holdfast::http
