// Circuits that an operator holds open for a time.
#include "unit/engine/gates_support.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

void force(World& w, bool open, std::optional<Duration> span, const std::string& tool = "") {
  bool done = false;
  w.life->engine->force_breaker("api", tool, open, "ops", "a try", span, [&](Result<Breaker> r) { done = r.has_value(); });
  w.turn();
  REQUIRE(done);
}

}  // namespace

TEST_CASE("a circuit that was forced open for a time is closed when that is over, with nobody asking") {
  for (const bool restart : {false, true})
    for (const std::string tool : {"", "read"}) {
      INFO(restart << " " << tool);
      World w;
      force(w, true, Duration{3'000}, tool);
      if (restart) w.begin();
      w.pass(Duration{2'900});
      CHECK(w.breaker("api", tool).forced_open);
      w.pass(Duration{100});
      const Breaker after = w.breaker("api", tool);
      CHECK_FALSE(after.forced_open);
      CHECK(after.state == BreakerState::closed);
      CHECK_FALSE(after.until);
    }
}

TEST_CASE("the end of an earlier word does not end a later one") {
  World w;
  force(w, true, Duration{1'000});
  force(w, true, Duration{5'000});
  w.pass(Duration{2'000});
  CHECK(w.breaker("api").forced_open);
  force(w, true, std::nullopt);
  w.pass(Duration{10'000});
  CHECK(w.breaker("api").forced_open);
  force(w, false, std::nullopt);
  force(w, true, Duration{1'000});
  force(w, false, std::nullopt);
  force(w, true, std::nullopt);
  w.pass(Duration{2'000});
  CHECK(w.breaker("api").forced_open);
}
