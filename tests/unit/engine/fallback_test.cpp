// What answers in place of a read.
#include "unit/engine/engine_support.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::string kFallbacks = R"(
defaults: {max_attempts: 1}
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    breaker: {consecutive_failures: 3, cooldown: 20s}
    tools:
      rates: {effect: read, request: {method: POST, path: /rates}, fallback: {cached: {max_age: 1h}}}
      bare: {effect: read, request: {method: POST, path: /bare}}
      second: {effect: read, request: {method: POST, path: /second}, fallback: {tool: {tool: rates}}}
      value: {effect: read, request: {method: POST, path: /value}, fallback: {static: {x: 1}}}
)";

/// Submits one step with these arguments and answers its call, if one leaves.
std::string ask(Life& life, const std::string& tool, const std::string& args,
                std::optional<Evidence> evidence) {
  std::string id;
  life.engine->submit(life.plan(R"({"steps":[{"id":"a","server":"api","tool":")" + tool + R"(","args":)" + args +
                                "}]}"),
                      [&](Result<engine::Submitted> r) { id = r->run_id; });
  const std::size_t before = life.transport.calls.size();
  (void)life.engine->turn();
  if (evidence) {
    REQUIRE(life.transport.calls.size() == before + 1);
    life.answer(life.transport.calls.back(), *evidence);
  } else {
    CHECK(life.transport.calls.size() == before);
  }
  return id;
}

run::Step step_of(Life& life, const std::string& id) {
  const run::Run run = life.stored(id);
  CHECK(run.settled());
  return run.steps[0];
}

bool says(const run::Step& step, std::string_view words) {
  INFO(step.detail);
  return step.detail.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("the last good answer to equal arguments stands in, after a restart too, and says how old it is") {
  Folder folder;
  HandClock clock;
  {
    Life life(folder.path, clock, 100, kFallbacks);
    const auto first = step_of(life, ask(life, "rates", R"({"a":1,"b":"x"})", good("{\"rate\":1.50}")));
    CHECK_FALSE(first.degraded);
    clock.at = clock.at + Duration{9'500};
    (void)ask(life, "rates", R"({"a":1,"b":"x"})", good("{\"rate\":1.60}"));
    CHECK(life.metrics.fallbacks == 0);
  }
  clock.at = clock.at + Duration{61'500};
  Life life(folder.path, clock, 100, kFallbacks);
  const auto step = step_of(life, ask(life, "rates", R"({ "b":"\u0078", "a":1 })", lost()));
  CHECK(step.status == run::StepStatus::succeeded);
  CHECK(step.degraded);
  CHECK(step.result == "{\"rate\":1.60}");
  CHECK(says(step, "the last good answer of api/rates, 62s old"));
  CHECK(says(step, "1 of 1 attempts made"));
  CHECK(life.metrics.fallbacks == 1);

  const auto other = step_of(life, ask(life, "rates", R"({"a":1.0,"b":"x"})", lost()));
  CHECK(other.status == run::StepStatus::failed);
  CHECK(other.reason == Reason::attempts_exhausted);
  CHECK(says(other, "no answer to these arguments is kept"));
  CHECK(life.metrics.fallbacks == 1);
}

TEST_CASE("an open circuit is answered from what is kept at once; a degraded answer is no newer one") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kFallbacks);
  (void)ask(life, "rates", "{}", good("1"));
  for (int i = 0; i < 3; ++i) {
    clock.at = clock.at + Duration{1'000};
    CHECK(step_of(life, ask(life, "rates", "{}", lost())).result == "1");
  }
  clock.at = clock.at + Duration{1'000};
  const auto step = step_of(life, ask(life, "rates", "{}", std::nullopt));
  CHECK(step.degraded);
  CHECK(step.attempts == 0);
  CHECK(says(step, "4s old"));
  CHECK(says(step, "the circuit of api/rates is open"));
  const auto none = step_of(life, ask(life, "rates", R"({"other":1})", std::nullopt));
  CHECK(none.reason == Reason::circuit_open);
  CHECK(says(none, "no answer to these arguments is kept"));
}

TEST_CASE("an answer over its age, or from after now, fails the step with its own reason") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kFallbacks);
  (void)ask(life, "rates", "{}", good("1"));
  const Instant then = clock.at;
  clock.at = then + Duration{3'600'000};
  CHECK(step_of(life, ask(life, "rates", "{}", lost())).degraded);
  clock.at = then + Duration{3'600'001};
  const auto old = step_of(life, ask(life, "rates", "{}", lost()));
  CHECK(old.reason == Reason::attempts_exhausted);
  CHECK(says(old, "3601s old, over the max_age of 1h"));
  CHECK_FALSE(old.degraded);
  clock.at = then - Duration{1};
  CHECK(says(step_of(life, ask(life, "rates", "{}", lost())), "dated after now"));
}

TEST_CASE("only good answers of a tool with a cached fallback are kept, and none over 1 MiB") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kFallbacks);
  (void)ask(life, "bare", "{}", good("1"));
  Evidence refused = good("2");
  refused.http_status = 404;
  (void)ask(life, "rates", "{}", refused);
  (void)ask(life, "rates", "{}", good("\"" + std::string((1 << 20) - 1, 'x') + "\""));
  CHECK(says(step_of(life, ask(life, "rates", "{}", lost())), "no answer to these arguments is kept"));
  (void)ask(life, "rates", "{}", good("\"" + std::string((1 << 20) - 2, 'x') + "\""));
  CHECK(step_of(life, ask(life, "rates", "{}", lost())).result.size() == (1 << 20));
}

TEST_CASE("an answer kept while the ledger can't be written is stored with the batch that settles its read") {
  Folder folder;
  HandClock clock;
  {
    Life life(folder.path, clock, 100, kFallbacks);
    std::string id;
    life.engine->submit(life.plan(R"({"steps":[{"id":"a","server":"api","tool":"rates"}]})"),
                        [&](Result<engine::Submitted> r) { id = r->run_id; });
    (void)life.engine->turn();
    life.ledger->full = true;
    life.answer(life.transport.calls.at(0), good("7"));
    life.ledger->full = false;
    clock.at = clock.at + Duration{5'000};
    (void)life.engine->turn();
    CHECK(life.stored(id).status == run::RunStatus::succeeded);
  }
  Life life(folder.path, clock, 100, kFallbacks);
  CHECK(step_of(life, ask(life, "rates", "{}", lost())).result == "7");
}

TEST_CASE("a fallback tool's answer degrades the step and is kept for that tool itself") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kFallbacks);
  const std::string id = ask(life, "second", R"({"q":1})", lost());
  CHECK(life.metrics.fallbacks == 0);
  REQUIRE(life.transport.calls.size() == 2);
  CHECK(life.transport.calls[1].kind == AttemptKind::fallback);
  life.answer(life.transport.calls[1], good("5"));
  CHECK(step_of(life, id).degraded);
  CHECK(says(step_of(life, id), "the fallback tool answered: 1 of 1 attempts made"));
  CHECK(life.metrics.fallbacks == 1);
  CHECK(step_of(life, ask(life, "rates", R"({"q":1})", lost())).result == "5");

  const std::string both = ask(life, "second", R"({"q":2})", lost());
  life.answer(life.transport.calls.back(), lost());
  const auto failed = step_of(life, both);
  CHECK(failed.reason == Reason::attempts_exhausted);
  CHECK(says(failed, "the fallback tool did not answer"));
  const auto fixed = step_of(life, ask(life, "value", "{}", std::nullopt));  // the server's circuit is open
  CHECK(fixed.result == "{\"x\":1}");
  CHECK(says(fixed, "the configured value stands in"));
}

TEST_CASE("a fallback tool whose slots are taken is waited for, in turn, also over a restart") {
  const std::string narrow = R"(
defaults: {max_attempts: 1, run_deadline: 1h}
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    tools: {first: {effect: read, request: {method: POST, path: /first}, fallback: {tool: {server: other, tool: second}}}}
  other:
    http: {base_url: "http://127.0.0.1:9"}
    max_in_flight: 1
    tools: {second: {effect: read, request: {method: POST, path: /second}}}
)";
  const bool restart = GENERATE(false, true);
  Folder folder;
  HandClock clock;
  std::optional<Life> life(std::in_place, folder.path, clock, 100, narrow);
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(ask(*life, "first", "{}", lost()));
  REQUIRE(life->transport.calls.size() == 4);
  CHECK(life->transport.calls[1].tool == "second");  // of the first run; the others stand behind it
  for (const auto& id : {ids[1], ids[2]}) {
    const run::Step step = life->stored(id).steps[0];
    CHECK(step.wait.what == run::WaitFor::slot);
    CHECK(step.reason == Reason::attempts_exhausted);
    CHECK_FALSE(step.advice.empty());
  }
  tools::Call out = life->transport.calls[1];
  if (restart) {
    clock.at = clock.at + Duration{1};
    life.reset();
    life.emplace(folder.path, clock, 100, narrow);
    CHECK(step_of(*life, ids[0]).reason == Reason::attempts_exhausted);
    REQUIRE(life->transport.calls.size() == 1);
    out = life->transport.calls[0];
  }
  for (bool more = true; more;) {
    CHECK(out.kind == AttemptKind::fallback);
    const std::size_t before = life->transport.calls.size();
    life->answer(out, good("7"));
    more = life->transport.calls.size() > before;
    out = life->transport.calls.back();
    CHECK(life->transport.calls.size() <= before + 1);
  }
  for (const auto& id : {ids[1], ids[2]}) {
    const run::Step step = step_of(*life, id);
    CHECK(step.degraded);
    CHECK(step.attempts == 1);
    CHECK(step.rows == 2);
  }
}
