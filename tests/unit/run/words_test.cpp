#include <catch2/catch.hpp>
#include <set>
#include <type_traits>

#include "holdfast/run/run.h"

using namespace holdfast;
using namespace holdfast::run;

namespace {

/// Every word of the enumeration up to `last`, each read back.
template <class E>
std::vector<std::string> words(E last) {
  std::vector<std::string> out;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<E>(i);
    out.emplace_back(word(value));
    CHECK(holdfast::run::from_word<E>(out.back()) == value);
  }
  CHECK_FALSE(holdfast::run::from_word<E>("no such word"));
  CHECK(std::set<std::string>(out.begin(), out.end()).size() == out.size());
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("the run's words are spelled as the contract spells them") {
  CHECK(words(Mode::open) == Words{"plan", "open"});
  CHECK(words(RunStatus::cancelled) ==
        Words{"queued", "running", "waiting", "unknown", "succeeded", "failed", "cancelled"});
  CHECK(words(StepStatus::cancelled) ==
        Words{"pending", "running", "waiting", "succeeded", "failed", "unknown", "skipped", "cancelled"});
  CHECK(words(WriteState::unknown) == Words{"intended", "dispatched", "landed", "not_landed", "unknown"});
  CHECK(words(WaitFor::client) ==
        Words{"", "backoff", "retry_after", "circuit", "rate_gate", "slot", "storage", "human", "client"});
  CHECK(words(OnFailure::proceed) == Words{"stop", "continue"});
  CHECK(words(OnCircuitOpen::fail) == Words{"wait", "fail"});
  CHECK(words(Resolution::evidence) == Words{"", "landed", "not_landed", "abandon", "evidence"});
}

TEST_CASE("an empty word is only a word where there is none") {
  CHECK_FALSE(holdfast::run::from_word<Mode>(""));
  CHECK_FALSE(holdfast::run::from_word<RunStatus>(""));
  CHECK(holdfast::run::from_word<WaitFor>("") == WaitFor::none);
}
