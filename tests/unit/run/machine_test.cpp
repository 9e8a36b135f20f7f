#include "unit/run/machine_support.h"

using namespace holdfast;

namespace {

Driven write_run(bool keyed, std::size_t steps = 1) {
  Driven d;
  d.policy.server = "api";
  d.policy.tool = "w";
  if (keyed) d.policy.key = KeyRule{};
  d.run.id = "run_00000000000000000000000000";
  d.run.deadline = d.now + Duration{60'000};
  for (std::size_t i = 0; i < steps; ++i)
    d.run.steps.push_back(
        Driven::make_step("s" + std::to_string(i), Effect::write,
                          i == 0 ? std::vector<std::uint32_t>{}
                                 : std::vector<std::uint32_t>{static_cast<std::uint32_t>(i - 1)}));
  return d;
}

void lose_answer(Driven& d) {
  auto begun = d.go();
  REQUIRE(begun.size() == 1);
  d.absorb(begun[0], broke(Failure::connection_lost, Phase::tx_all));
  (void)d.go();
}

Result<void> rule(Driven& d, run::Resolution verdict, std::optional<Instant> deadline = std::nullopt,
                  std::string result = {}) {
  auto t = d.turn();
  return run::resolve(t, 0, {verdict, std::move(result), "seen at the tool", "ops", deadline});
}

}  // namespace

TEST_CASE("a plain write whose answer is lost is unknown and is not sent again") {
  Driven d = write_run(false, 2);
  lose_answer(d);
  CHECK(d.run.status == run::RunStatus::unknown);
  CHECK(d.run.steps[0].reason == Reason::connection_lost);
  CHECK(d.run.steps[0].write->open);
  CHECK(d.run.steps[1].status == run::StepStatus::pending);
  d.now = d.now + Duration{3'600'000};
  CHECK(d.go().empty());
  CHECK(d.run.status == run::RunStatus::unknown);
}

TEST_CASE("landed hands its result to the next step") {
  Driven d = write_run(false, 2);
  lose_answer(d);
  REQUIRE(rule(d, run::Resolution::landed, std::nullopt, "{\"id\":7}"));
  CHECK(d.run.steps[0].result == "{\"id\":7}");
  CHECK(d.go().size() == 1);
  REQUIRE(rule(d, run::Resolution::landed));
  const auto other = rule(d, run::Resolution::abandon);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == "already_resolved");
}

TEST_CASE("not_landed is sent once more per verdict and counts against nothing") {
  Driven d = write_run(false);
  d.run.steps[0].max_attempts = 1;
  d.run.retry_limit = 0;
  lose_answer(d);
  for (int verdict = 0; verdict < 3; ++verdict) {
    REQUIRE(rule(d, run::Resolution::not_landed));
    REQUIRE(rule(d, run::Resolution::not_landed));
    auto again = d.go();
    REQUIRE(again.size() == 1);
    CHECK_FALSE(again[0].counted);
    d.absorb(again[0], broke(Failure::timeout, Phase::tx_all));
    CHECK(d.go().empty());
    CHECK(d.run.status == run::RunStatus::unknown);
  }
  CHECK(d.run.steps[0].attempts == 1);
  CHECK(d.run.steps[0].rows == 4);
  CHECK(d.run.retry_spent == 0);
}

TEST_CASE("abandon stops the run even where failures are passed over") {
  Driven d = write_run(false, 2);
  d.run.steps[0].spec.on_failure = run::OnFailure::proceed;
  lose_answer(d);
  REQUIRE(rule(d, run::Resolution::abandon));
  CHECK(d.go().empty());
  CHECK(d.run.status == run::RunStatus::failed);
  CHECK(d.run.reason == Reason::abandoned);
  CHECK(d.run.steps[0].write->state == run::WriteState::unknown);
  CHECK(d.run.steps[1].status == run::StepStatus::skipped);
}

TEST_CASE("verdicts after the deadline") {
  const bool one_left = GENERATE(false, true);
  const bool new_deadline = GENERATE(false, true);
  const auto verdict = GENERATE(run::Resolution::landed, run::Resolution::not_landed);
  Driven d = write_run(false, one_left ? 2 : 1);
  lose_answer(d);
  d.now = d.run.deadline + Duration{1};
  CHECK(d.go().empty());
  CHECK(d.run.status == run::RunStatus::unknown);
  REQUIRE(rule(d, verdict, new_deadline ? std::optional<Instant>(d.now + Duration{60'000}) : std::nullopt));
  const auto begun = d.go();
  if (new_deadline) {
    CHECK(begun.size() == (verdict == run::Resolution::not_landed || one_left ? 1u : 0u));
  } else {
    CHECK(begun.empty());
    const bool good = verdict == run::Resolution::landed && !one_left;
    CHECK(d.run.status == (good ? run::RunStatus::succeeded : run::RunStatus::failed));
    if (!good) CHECK(d.run.reason == Reason::deadline_exceeded);
    CHECK(d.run.steps[0].write->state ==
          (verdict == run::Resolution::landed ? run::WriteState::landed : run::WriteState::not_landed));
  }
}

TEST_CASE("doubt outlives later refusals and refused connections") {
  const auto later = GENERATE(as<Evidence>{}, answered(401), answered(422), answered(409),
                              broke(Failure::connect, Phase::tcp));
  Driven d = write_run(true);
  auto first = d.go();
  d.absorb(first[0], broke(Failure::connection_lost, Phase::tx_all));
  for (int i = 0; i < 5 && d.run.status != run::RunStatus::unknown; ++i) {
    (void)d.sleep();
    for (auto& again : d.go()) d.absorb(again, later);
    (void)d.go();
  }
  CHECK(d.run.status == run::RunStatus::unknown);
  CHECK(d.run.steps[0].reason == Reason::connection_lost);
}

TEST_CASE("an expired key is not used again") {
  Driven d = write_run(true);
  d.policy.key->retention = Duration{2'000};
  d.policy.backoff = {Duration{3'000}, Duration{3'000}};
  auto first = d.go();
  d.absorb(first[0], broke(Failure::connection_lost, Phase::tx_all));
  d.now = d.now + Duration{4'000};
  CHECK(d.go().empty());
  CHECK(d.run.status == run::RunStatus::unknown);
  CHECK(d.run.steps[0].reason == Reason::key_expired);
}

TEST_CASE("a session repair is one more row that counts against nothing, and happens once") {
  Driven d = write_run(false);
  d.run.steps[0].max_attempts = 1;
  d.run.retry_limit = 0;
  auto first = d.go();
  Evidence gone = broke(Failure::session_lost, Phase::parsed);
  gone.http_status = 404;
  gone.over_mcp = true;
  d.absorb(first[0], gone);
  auto second = d.go();
  REQUIRE(second.size() == 1);
  CHECK_FALSE(second[0].counted);
  d.absorb(second[0], gone);
  CHECK(d.go().empty());
  CHECK(d.run.steps[0].reason == Reason::tool_refused);
  CHECK(d.run.steps[0].write->state == run::WriteState::not_landed);
}

TEST_CASE("a cancel on the wire ends the call, and what that shows decides") {
  Driven d = write_run(false, 2);
  auto begun = d.go();
  {
    auto t = d.turn();
    run::request_cancel(t, "enough");
  }
  CHECK(d.go().empty());
  CHECK(d.run.status == run::RunStatus::running);
  CHECK(d.changes.cancel_calls == std::vector<std::uint32_t>{0});
  SECTION("an answer was on its way") {
    d.absorb(begun[0], answered(200));
    (void)d.go();
    CHECK(d.run.status == run::RunStatus::cancelled);
    CHECK(d.run.steps[0].write->state == run::WriteState::landed);
  }
  SECTION("nothing had left") {
    d.absorb(begun[0], broke(Failure::cancelled, Phase::tcp));
    (void)d.go();
    CHECK(d.run.status == run::RunStatus::cancelled);
    CHECK(d.run.steps[0].write->state == run::WriteState::not_landed);
  }
  SECTION("it may have arrived") {
    d.absorb(begun[0], broke(Failure::cancelled, Phase::tx_all));
    (void)d.go();
    CHECK(d.run.status == run::RunStatus::unknown);
    CHECK(d.run.steps[0].reason == Reason::cancelled_in_flight);
    REQUIRE(rule(d, run::Resolution::not_landed));
    CHECK(d.go().empty());
    CHECK(d.run.status == run::RunStatus::cancelled);
  }
  CHECK(d.run.steps[1].status == run::StepStatus::cancelled);
}

TEST_CASE("a late answer settles doubt and never a settled run") {
  Driven d = write_run(false);
  auto begun = d.go();
  d.absorb(begun[0], broke(Failure::timeout, Phase::tx_all));
  (void)d.go();
  const bool abandoned = GENERATE(false, true);
  if (abandoned) {
    REQUIRE(rule(d, run::Resolution::abandon));
    (void)d.go();
  }
  auto t = d.turn();
  const bool settled =
      run::absorb_late(t, 0, begun[0], answered(200), classify(answered(200), d.policy, Kind::plain, false));
  (void)d.go();
  CHECK(begun[0].late);
  CHECK(settled == !abandoned);
  CHECK(d.run.status == (abandoned ? run::RunStatus::failed : run::RunStatus::succeeded));
}

TEST_CASE("the check decides: found, proven absent after settle, inconclusive") {
  Driven d = write_run(false);
  d.policy.check =
      CheckRule{"api", "find", "{}", Match{"/total", "0", true}, Duration{2'000}, Duration{60'000}};
  auto begun = d.go();
  d.absorb(begun[0], broke(Failure::connection_lost, Phase::tx_all));
  REQUIRE(run::next(d.run, d.now) == std::vector<run::Move>{{run::MoveKind::check, 0}});
  std::string said;
  Instant watched_since{};
  const auto ask = [&](const Evidence& e) {
    auto t = d.turn();
    run::Attempt check = run::begin(t, 0, AttemptKind::check,
                                    nest_deadline(Duration{1'000}, std::nullopt, d.run.deadline, d.now));
    run::absorb_check(t, 0, check, e, classify(e, d.policy, Kind::read, false), d.policy, watched_since);
    said = check.detail;
    return d.go();
  };
  SECTION("found") {
    (void)ask(answered(200, "{\"total\":1}"));
    CHECK(said.starts_with("found"));
    CHECK(d.run.status == run::RunStatus::succeeded);
    CHECK(d.sends == 1);
  }
  SECTION("absent counts only after settle") {
    CHECK(ask(answered(200, "{\"total\":0}")).empty());
    CHECK(said.starts_with("absent, but it may still arrive"));
    CHECK(d.run.status == run::RunStatus::waiting);
    d.now = d.now + Duration{2'000};
    CHECK(ask(answered(200, "{\"total\":0}")).size() == 1);
    CHECK(said.starts_with("absent: the write did not land"));
    CHECK(d.sends == 2);
  }
  SECTION("absent counts only after a settle that this very process has seen pass") {
    d.now = d.now + Duration{30'000};  // so the wall clock says, which was set while no process ran
    watched_since = d.now;
    CHECK(ask(answered(200, "{\"total\":0}")).empty());
    CHECK(said.starts_with("absent, but it may still arrive"));
    CHECK(d.run.steps[0].next_check == watched_since + Duration{2'000});
    d.now = d.now + Duration{2'000};
    CHECK(ask(answered(200, "{\"total\":0}")).size() == 1);
    CHECK(d.sends == 2);
  }
  SECTION("a check that proves nothing leaves the doubt and is asked again with growing pauses") {
    (void)ask(answered(500));
    d.now = d.now + Duration{2'000};
    (void)ask(answered(200, "{\"other\":0}"));
    CHECK(said.starts_with("inconclusive"));
    CHECK(d.run.status == run::RunStatus::unknown);
    CHECK(d.run.steps[0].next_check == d.now + Duration{2'000});
    d.now = *d.run.steps[0].next_check;
    (void)ask(answered(500));
    CHECK(d.run.steps[0].next_check == d.now + Duration{4'000});
    d.now = *d.run.steps[0].next_check;
    (void)ask(answered(200, "{\"total\":3}"));
    CHECK(d.run.status == run::RunStatus::succeeded);
    CHECK(d.sends == 1);
  }
}

TEST_CASE("a plain write needs half of its own deadline") {
  Driven d = write_run(false);
  d.policy.deadline = Duration{2'000};
  d.run.deadline = d.now + Duration{999};
  CHECK(d.go().empty());
  CHECK(d.run.steps[0].reason == Reason::no_time_left);
  CHECK(d.run.steps[0].write->state == run::WriteState::not_landed);
}

TEST_CASE("a wait that the deadline would cut is not begun") {
  Driven d = write_run(false);
  Evidence limited = answered(429);
  limited.retry_after = "3600";
  auto begun = d.go();
  d.absorb(begun[0], limited);
  (void)d.go();
  CHECK(d.run.reason == Reason::rate_limited);
  CHECK(d.run.steps[0].advice.find(format_rfc3339(d.now + Duration{3'600'000})) != std::string::npos);
}

TEST_CASE(
    "a write that landed and lost its result is asked again only under a key that the tool still knows") {
  Driven d = write_run(true);
  d.policy.key->retention = Duration{2'000};
  d.policy.backoff = {Duration{5'000}, Duration{5'000}};
  auto first = d.go();
  d.run.steps[0].write->request = {"POST /w", "{}"};
  d.run.steps[0].write->keyed = true;
  Evidence cut = broke(Failure::body_cut, Phase::rx_part_body);
  cut.http_status = 200;
  d.absorb(first[0], cut);
  REQUIRE(d.run.steps[0].write->state == run::WriteState::landed);
  SECTION("the key has expired") {
    d.now = d.now + Duration{10'000};
    CHECK(d.go().empty());
  }
  SECTION("the configuration has lost the key") {
    d.policy.key.reset();
    d.now = d.now + Duration{5'000};
    CHECK(d.go().empty());
  }
  SECTION("the run is cancelled") {
    auto t = d.turn();
    run::request_cancel(t, "enough");
    CHECK(d.go().empty());
  }
  SECTION("a later answer proves nothing") {
    (void)d.sleep();
    d.now = d.now + Duration{1};
    for (auto& again : d.go()) d.absorb(again, answered(506));
    CHECK(d.go().empty());
  }
  CHECK(d.run.steps[0].status == run::StepStatus::failed);
  CHECK(d.run.steps[0].reason == Reason::result_lost);
  CHECK(d.run.steps[0].write->state == run::WriteState::landed);
}

TEST_CASE("bytes frozen without a key are not made keyed by a later configuration") {
  Driven d = write_run(false);
  auto first = d.go();
  d.run.steps[0].write->request = {"POST /w", "{}"};
  d.policy.key = KeyRule{};
  CHECK(run::kind_of(d.run.steps[0], d.policy) == Kind::plain);
  d.run.steps[0].write->keyed = true;
  CHECK(run::kind_of(d.run.steps[0], d.policy) == Kind::keyed);
}

TEST_CASE("abandon ends an open run, other failures do not") {
  Driven d = write_run(false);
  d.run.mode = run::Mode::open;
  SECTION("abandoned") {
    lose_answer(d);
    REQUIRE(rule(d, run::Resolution::abandon));
    (void)d.go();
    CHECK(d.run.status == run::RunStatus::failed);
    CHECK(d.run.reason == Reason::abandoned);
  }
  SECTION("refused") {
    auto begun = d.go();
    d.absorb(begun[0], answered(400));
    (void)d.go();
    CHECK(d.run.status == run::RunStatus::waiting);
    CHECK(d.run.wait.what == run::WaitFor::client);
  }
}

TEST_CASE("the run names the doubt that is left") {
  Driven d = write_run(false, 2);
  d.run.steps[1].spec.after.clear();
  auto begun = d.go();
  REQUIRE(begun.size() == 2);
  d.absorb(begun[0], answered(500));
  d.absorb(begun[1], broke(Failure::timeout, Phase::tx_all));
  (void)d.go();
  CHECK(d.run.reason == Reason::server_error);
  REQUIRE(rule(d, run::Resolution::landed));
  (void)d.go();
  CHECK(d.run.status == run::RunStatus::unknown);
  CHECK(d.run.reason == Reason::timed_out);
  CHECK(d.run.detail.find("step s1") == 0);
}

TEST_CASE("a cancelled read on its last attempt is cancelled, not failed") {
  Driven d = write_run(false);
  d.policy.effect = d.run.steps[0].effect = Effect::read;
  d.run.steps[0].max_attempts = 1;
  auto begun = d.go();
  {
    auto t = d.turn();
    run::request_cancel(t, "enough");
  }
  d.absorb(begun[0], broke(Failure::cancelled, Phase::tx_all));
  (void)d.go();
  CHECK(d.run.steps[0].status == run::StepStatus::cancelled);
  CHECK(d.run.status == run::RunStatus::cancelled);
}

TEST_CASE("steps held back by a doubt past the deadline wake nobody") {
  Driven d = write_run(false, 2);
  lose_answer(d);
  d.now = d.run.deadline + Duration{1};
  CHECK(d.go().empty());
  CHECK_FALSE(run::wake_at(d.run));
}

TEST_CASE("a read that a shutdown ended leaves again and counts against nothing") {
  Driven d = write_run(false);
  d.policy.effect = d.run.steps[0].effect = Effect::read;
  d.run.steps[0].max_attempts = 1;
  d.run.retry_limit = 0;
  auto begun = d.go();
  const Evidence ended = broke(Failure::cancelled, Phase::tx_all);
  {
    auto t = d.turn();
    run::interrupt(t, 0, begun[0], ended, classify(ended, d.policy, Kind::read, false));
  }
  auto again = d.go();
  REQUIRE(again.size() == 1);
  CHECK_FALSE(again[0].counted);
  d.absorb(again[0], answered(200));
  (void)d.go();
  CHECK(d.run.status == run::RunStatus::succeeded);
}

TEST_CASE("a verdict's deadline never takes back time from a call that another verdict has sent") {
  Driven d = write_run(false, 2);
  d.run.steps[1].spec.after.clear();
  auto sent = d.go();
  REQUIRE(sent.size() == 2);
  for (run::Attempt& attempt : sent) d.absorb(attempt, broke(Failure::connection_lost, Phase::tx_all));
  (void)d.go();
  d.now = d.run.deadline + Duration{1};
  REQUIRE(rule(d, run::Resolution::not_landed, d.now + Duration{60'000}));
  const auto again = d.go();
  REQUIRE(again.size() == 1);
  const Instant given = d.run.deadline;
  auto t = d.turn();
  REQUIRE(run::resolve(t, 1, {run::Resolution::not_landed, "", "seen at the tool", "ops", d.now + Duration{10}}));
  CHECK(d.run.deadline == given);
}
