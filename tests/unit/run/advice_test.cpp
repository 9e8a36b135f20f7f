// Each way in which a step can end or wait says what to do, and when.
#include "unit/run/machine_support.h"

using namespace holdfast;

namespace {

Driven one(Effect effect) {
  Driven d;
  d.policy.server = "api";
  d.policy.tool = "w";
  d.policy.effect = effect;
  d.run.id = "run_00000000000000000000000000";
  d.run.deadline = d.now + Duration{60'000};
  d.run.retry_limit = 20;
  d.run.steps.push_back(Driven::make_step("s", effect));
  d.run.steps[0].max_attempts = 3;
  return d;
}

Evidence limited(const char* retry_after) {
  Evidence e = answered(429);
  e.retry_after = retry_after;
  return e;
}

void answer(Driven& d, const Evidence& evidence) {
  auto begun = d.go();
  REQUIRE(begun.size() == 1);
  CHECK(d.run.steps[0].advice.empty());  // while it is out there is nothing to say
  d.absorb(begun[0], evidence);
  (void)d.go();
}

/// What every sentence has in common, and that the instant stands in it.
void says(const Driven& d, Reason reason, std::optional<Instant> when = std::nullopt) {
  const run::Step& step = d.run.steps[0];
  CAPTURE(step.advice, step.detail, word(step.reason));
  CHECK(step.reason == reason);
  CHECK(step.advice.find("api/w") != std::string::npos);
  CHECK(step.advice.ends_with('.'));
  CHECK(step.advice == advice(reason, "api/w", when ? format_rfc3339(*when) : std::string{}));
  if (when) CHECK(step.advice.find(format_rfc3339(*when)) != std::string::npos);
}

}  // namespace

TEST_CASE("every failure and every doubt that a step can end with has its advice") {
  for (int i = static_cast<int>(Reason::tool_refused); i <= static_cast<int>(Reason::deadline_in_flight); ++i) {
    const auto reason = static_cast<Reason>(i);
    CAPTURE(word(reason));
    Driven failed = one(Effect::read), doubted = one(Effect::write);
    auto t = failed.turn();
    run::fail(t, 0, reason, "why");
    says(failed, reason);
    auto u = doubted.turn();
    run::doubt(u, 0, reason, "why");
    says(doubted, reason);
  }
}

TEST_CASE("a wait says until when, a call that is out says nothing, and success needs no advice") {
  Driven d = one(Effect::read);
  answer(d, limited("7"));
  REQUIRE(d.run.steps[0].status == run::StepStatus::waiting);
  says(d, Reason::none, d.now + Duration{7'000});
  REQUIRE(d.sleep());
  answer(d, answered(200));
  CHECK(d.run.steps[0].status == run::StepStatus::succeeded);
  CHECK(d.run.steps[0].advice.empty());
}

TEST_CASE("a limit beyond the deadline gives the instant") {
  Driven d = one(Effect::read);
  answer(d, limited("600"));
  says(d, Reason::rate_limited, d.now + Duration{600'000});
}

TEST_CASE("a second limit gives the instant that came with it") {
  for (const char* second : {"9", ""}) {
    Driven d = one(Effect::read);
    answer(d, limited("1"));
    REQUIRE(d.sleep());
    answer(d, limited(second));
    says(d, Reason::rate_limited, *second ? std::optional(d.now + Duration{9'000}) : std::nullopt);
  }
}

TEST_CASE("what a read gave up with keeps its instant when its fallback fails too") {
  Driven d = one(Effect::read);
  d.policy.fallback = FallbackRule{};
  const Instant until = d.now + Duration{5'000};
  auto t = d.turn();
  run::give_up(t, 0, d.policy, Reason::circuit_open, "open", until);
  REQUIRE(run::next(d.run, d.now).front().kind == run::MoveKind::fallback);
  auto attempt = run::begin(t, 0, AttemptKind::fallback, nest_deadline(Duration{100}, {}, d.run.deadline, d.now));
  const Evidence bad = broke(Failure::connect, Phase::tcp);
  run::absorb_fallback(t, 0, attempt, bad, classify(bad, d.policy, Kind::read, false));
  says(d, Reason::circuit_open, until);
}

TEST_CASE("attempts, budget, time, cancel and an earlier failure each say what to do") {
  Driven attempts = one(Effect::read);
  attempts.run.steps[0].max_attempts = 1;
  answer(attempts, answered(500));
  says(attempts, Reason::attempts_exhausted);

  Driven budget = one(Effect::read);
  budget.run.retry_limit = 0;
  answer(budget, answered(500));
  says(budget, Reason::retry_budget_exhausted);
  CHECK(budget.changes.over_budget == 1);

  Driven backoff = one(Effect::read);
  backoff.run.deadline = backoff.now + Duration{1};
  backoff.policy.backoff = {Duration{1'000'000}, Duration{1'000'000}};
  answer(backoff, answered(500));
  says(backoff, Reason::no_time_left);

  Driven plain = one(Effect::write);
  plain.run.deadline = plain.now + Duration{1'000};
  (void)plain.go();
  says(plain, Reason::no_time_left);

  Driven late = one(Effect::read);
  late.now = late.run.deadline;
  (void)late.go();
  says(late, Reason::deadline_exceeded);

  Driven cancelled = one(Effect::read);
  auto t = cancelled.turn();
  run::request_cancel(t, "why");
  (void)cancelled.go();
  says(cancelled, Reason::cancelled);

  Driven skipped = one(Effect::read);
  skipped.run.steps[0].spec.after = {1};
  skipped.run.steps.push_back(Driven::make_step("first", Effect::read));
  auto u = skipped.turn();
  run::fail(u, 1, Reason::tool_error, "why");
  (void)skipped.go();
  says(skipped, Reason::step_failed);
}
