#include "holdfast/policy/words.h"

#include <catch2/catch.hpp>
#include <set>

#include "holdfast/policy/breaker.h"
#include "holdfast/policy/classify.h"

using namespace holdfast;

namespace {

template <class E>
void goes_both_ways(E first, E last) {
  for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<E>(i);
    CAPTURE(i, word(value));
    CHECK(from_word<E>(word(value)) == value);
  }
  CHECK(word(static_cast<E>(static_cast<int>(last) + 1)).empty());
  CHECK_FALSE(from_word<E>("no such word"));
}

}  // namespace

TEST_CASE("every word leads back to its value") {
  goes_both_ways(Effect::read, Effect::write);
  goes_both_ways(Kind::read, Kind::plain);
  goes_both_ways(Phase::local, Phase::parsed);
  goes_both_ways(AttemptKind::call, AttemptKind::probe);
  goes_both_ways(Delivery::in_flight, Delivery::answered);
  goes_both_ways(Verdict::none, Verdict::landed);
  goes_both_ways(AttemptClass::none, AttemptClass::crashed);
  goes_both_ways(Reason::none, Reason::deadline_in_flight);
}

TEST_CASE("words are the contract's") {
  CHECK(word(Phase::tx_part) == "tx_part");
  CHECK(word(Phase::rx_part_head) == "rx_part_head");
  CHECK(word(Verdict::none).empty());
  CHECK(word(Verdict::not_sent) == "not_sent");
  CHECK(word(AttemptClass::http_429) == "http_429");
  CHECK(word(Reason::none).empty());
  CHECK(word(Reason::cancelled_in_flight) == "cancelled_in_flight");
  CHECK(word(Delivery::maybe_sent) == "maybe_sent");
  CHECK(from_word<Verdict>("") == Verdict::none);
  CHECK_FALSE(from_word<Kind>(""));
  CHECK_FALSE(from_word<Kind>("Read"));
  CHECK_FALSE(from_word<Kind>("read "));
}

TEST_CASE("breaker states have words") {
  for (const auto state : {BreakerState::closed, BreakerState::open, BreakerState::half_open}) {
    CHECK(breaker_state_from_word(word(state)) == state);
  }
  CHECK(word(BreakerState::half_open) == "half_open");
  CHECK_FALSE(breaker_state_from_word(""));
}

TEST_CASE("every action has a word of its own") {
  std::set<std::string_view> seen;
  for (int i = 0; i <= static_cast<int>(Action::repair_session); ++i) {
    const auto w = word(static_cast<Action>(i));
    CAPTURE(i, w);
    CHECK_FALSE(w.empty());
    CHECK(seen.insert(w).second);
  }
}
