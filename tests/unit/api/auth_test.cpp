#include "api/auth.h"

#include <catch2/catch.hpp>

#include "holdfast/core/intent_key.h"

using namespace holdfast;

TEST_CASE("a token is who its digest says, and nothing else is let in") {
  CHECK_FALSE(static_cast<bool>(api::authenticator({})));
  const auto authenticate =
      api::authenticator({{"nightly", tools::Token::Scope::client, sha256_hex("secret-1")},
                          {"ops", tools::Token::Scope::operate, sha256_hex("secret-2")}});
  REQUIRE(authenticate("secret-1").has_value());
  CHECK(authenticate("secret-1")->name == "nightly");
  CHECK_FALSE(authenticate("secret-1")->operate);
  CHECK(authenticate("secret-2")->operate);
  CHECK_FALSE(authenticate("").has_value());
  CHECK_FALSE(authenticate("secret-3").has_value());
  CHECK_FALSE(authenticate(sha256_hex("secret-1")).has_value());
  CHECK_FALSE(authenticate(std::string(5000, 'x')).has_value());
}
