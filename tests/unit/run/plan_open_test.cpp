#include <catch2/catch.hpp>

#include "unit/run/plan_support.h"

using namespace holdfast;
using namespace holdfast::run;

namespace {

Result<PostedStep> posted(const std::string& text, const Run& run, std::size_t max_steps = 10'000) {
  const auto value = json::parse(text);
  REQUIRE(value);
  auto with = context();
  with.max_steps = max_steps;
  return plan_step(*value, run, with);
}

}  // namespace

TEST_CASE("an open run starts with no steps or with some") {
  CHECK(planned(R"({"mode":"open","steps":[]})").mode == Mode::open);
  CHECK(planned(R"({"mode":"open"})").steps.empty());
  const Run run = planned(
      R"({"mode":"open","steps":[{"id":"a","server":"api","tool":"w"},{"id":"b","server":"api","tool":"w"}]})");
  CHECK(run.steps[1].spec.after == std::vector<std::uint32_t>{0});
  CHECK(run.steps[0].spec.on_circuit_open == OnCircuitOpen::fail);
  CHECK(run.steps[0].spec.digest == step_digest(*json::parse(R"({"tool":"w","server":"api","id":"a"})")));
}

TEST_CASE("a posted step waits for what it names and refers to, and for nothing else") {
  const Run run = planned(
      R"({"mode":"open","steps":[{"id":"a","server":"api","tool":"w"},{"id":"b","server":"api","tool":"w"}]})");
  const auto free = posted(R"({"id":"c","server":"api","tool":"w"})", run);
  REQUIRE(free);
  CHECK(free->step.spec.after.empty());
  CHECK(free->step.spec.on_circuit_open == OnCircuitOpen::fail);
  const auto bound = posted(
      R"({"id":"c","server":"api","tool":"look","after":["b"],"args":{"x":"${a/v}"},"on_circuit_open":"wait"})",
      run);
  REQUIRE(bound);
  CHECK(bound->step.spec.after == std::vector<std::uint32_t>{0, 1});
  CHECK(bound->step.spec.on_circuit_open == OnCircuitOpen::wait);
  CHECK(bound->step.effect == Effect::read);
}

TEST_CASE("the digest of a posted step tells another body, not another spelling") {
  const Run run = planned(R"({"mode":"open"})");
  const auto digest = [&](const std::string& text) { return posted(text, run)->step.spec.digest; };
  const std::string base = digest(R"({"id":"a","server":"api","tool":"w","args":{"m":"x","n":1}})");
  CHECK(base.size() == 64);
  CHECK(base == digest(R"({ "tool":"w", "args":{"n":1,"\u006d":"x"}, "server":"api","id":"a"})"));
  CHECK(base != digest(R"({"id":"a","server":"api","tool":"w","args":{"m":"x","n":1.0}})"));
}

TEST_CASE("a posted step that cannot be added is refused") {
  const Run run = planned(R"({"mode":"open","steps":[{"id":"a","server":"api","tool":"w"}]})");
  CHECK(posted(R"({"id":"a","server":"api","tool":"w"})", run).error().pointer == "/id");
  CHECK(posted(R"({"id":"b","server":"api","tool":"w","after":["c"]})", run).error().pointer == "/after/0");
  CHECK(posted(R"({"id":"b","server":"api","tool":"w","args":{"x":"${c}"}})", run).error().pointer ==
        "/args/x");
  CHECK(posted(R"({"id":"b","server":"api","tool":"charge"})", run).error().code == "bad_arguments");
  CHECK(posted("[]", run).error().pointer.empty());
  CHECK(posted(R"({"id":"b","server":"api","tool":"w"})", run, 1).error().code == "bad_submission");
}

TEST_CASE("what is cut from a posted step is told in the run's warnings, and found again by the step") {
  Run run = planned(R"({"mode":"open","deadline":"5s"})");
  const std::string l = "step \"l\": its deadline of 20s is longer than the run's and is cut to 5s";
  const std::string ll = "step \"l.l\": its max_attempts is higher than the tool's and is cut to 5";
  add(*posted(R"({"id":"l","server":"api","tool":"look","deadline":"20s"})", run), run);
  CHECK(run.steps.back().spec.deadline == Duration{5'000});
  CHECK(run.warnings == "[" + json::quote(l) + "]");
  add(*posted(R"({"id":"a","server":"api","tool":"look"})", run), run);
  add(*posted(R"({"id":"l.l","server":"api","tool":"look","max_attempts":9})", run), run);
  CHECK(run.warnings == "[" + json::quote(l) + "," + json::quote(ll) + "]");
  CHECK(warnings_of(run, "l") == "[" + json::quote(l) + "]");
  CHECK(warnings_of(run, "l.l") == "[" + json::quote(ll) + "]");
  CHECK(warnings_of(run, "a") == "[]");
  CHECK(run.steps.size() == 3);
}

TEST_CASE("an open run that goes on and on keeps 64 KiB of warnings") {
  Run run = planned(R"({"mode":"open"})");
  for (int i = 0; i < 1'000; ++i)
    add(*posted(R"({"id":"s)" + std::to_string(i) + R"(","server":"api","tool":"look","max_attempts":9})", run), run);
  CHECK(run.steps.size() == 1'000);
  CHECK(run.warnings.size() <= 64 * 1024);
  CHECK(json::parse(run.warnings)->items.size() > 800);
}
