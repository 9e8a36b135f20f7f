// The machine against a small model of one step: what a list of outcomes must lead to, written from the
// contract alone.
#include <rapidcheck.h>

#include "unit/run/machine_support.h"

using namespace holdfast;

namespace {

enum class Seen { ok, never_sent, refused, lost, limited };

struct Expected {
  std::uint32_t sends = 0;
  std::uint32_t spent = 0;
  run::RunStatus status = run::RunStatus::succeeded;
  Reason reason = Reason::none;
  run::WriteState write = run::WriteState::landed;
};

/// `outcomes` beyond the last one used are not looked at; the last one repeats.
Expected model(Kind kind, std::uint32_t max_attempts, std::uint32_t budget,
               const std::vector<Seen>& outcomes) {
  Expected e;
  bool doubt = false;
  const auto give_up = [&](Reason reason) {
    e.status = doubt ? run::RunStatus::unknown : run::RunStatus::failed;
    e.reason = doubt ? Reason::connection_lost : reason;
    e.write = doubt ? run::WriteState::unknown : run::WriteState::not_landed;
    return e;
  };
  for (;;) {
    const Seen seen = outcomes[std::min<std::size_t>(e.sends, outcomes.size() - 1)];
    ++e.sends;
    if (seen == Seen::ok) return e;
    if (seen == Seen::refused) return give_up(Reason::tool_refused);
    if (seen == Seen::lost && kind != Kind::read) doubt = true;
    if (seen == Seen::lost && kind == Kind::plain) return give_up(Reason::none);
    if (e.sends >= max_attempts) return give_up(Reason::attempts_exhausted);
    if (e.spent >= budget) return give_up(Reason::retry_budget_exhausted);
    ++e.spent;
  }
}

Evidence evidence(Seen seen) {
  switch (seen) {
    case Seen::ok:
      return answered(200);
    case Seen::never_sent:
      return broke(Failure::connect, Phase::tcp);
    case Seen::refused:
      return answered(400);
    case Seen::lost:
      return broke(Failure::connection_lost, Phase::tx_all);
    case Seen::limited:
      return answered(429);
  }
  return {};
}

Driven one_step(Kind kind, std::uint32_t max_attempts, std::uint32_t budget) {
  Driven d;
  d.policy.server = "api";
  d.policy.tool = "w";
  d.policy.effect = kind == Kind::read ? Effect::read : Effect::write;
  if (kind == Kind::keyed) d.policy.key = KeyRule{};
  d.run.id = "run_00000000000000000000000000";
  d.run.deadline = d.now + Duration{24 * 3600 * 1000};
  d.run.retry_limit = budget;
  d.run.steps.push_back(Driven::make_step("w", d.policy.effect));
  d.run.steps[0].max_attempts = max_attempts;
  return d;
}

}  // namespace

TEST_CASE("one step does what the model says, whatever the tool shows") {
  rc::check("sends, budget, status, reason and write state", [] {
    const Kind kind = *rc::gen::element(Kind::read, Kind::keyed, Kind::plain);
    const auto max_attempts = *rc::gen::inRange<std::uint32_t>(1, 6);
    const auto budget = *rc::gen::inRange<std::uint32_t>(0, 6);
    const auto outcomes = *rc::gen::nonEmpty(rc::gen::container<std::vector<Seen>>(
        rc::gen::element(Seen::ok, Seen::never_sent, Seen::refused, Seen::lost, Seen::limited)));
    Driven d = one_step(kind, max_attempts, budget);
    for (int i = 0; i < 100; ++i) {
      for (run::Attempt& attempt : d.go())
        d.absorb(attempt, evidence(outcomes[std::min<std::size_t>(d.sends - 1, outcomes.size() - 1)]));
      (void)d.go();
      if (d.run.settled() || d.run.status == run::RunStatus::unknown) break;
      if (d.run.steps[0].in_flight) RC_FAIL("two calls of one step at once");
      RC_ASSERT(d.sleep());
    }
    const Expected want = model(kind, max_attempts, budget, outcomes);
    RC_ASSERT(d.sends == want.sends);
    RC_ASSERT(d.run.retry_spent == want.spent);
    RC_ASSERT(d.run.steps[0].attempts == want.sends);
    RC_ASSERT(d.run.status == want.status);
    RC_ASSERT(d.run.reason == want.reason);
    if (kind != Kind::read) RC_ASSERT(d.run.steps[0].write->state == want.write);
    RC_ASSERT(run::next(d.run, d.now).empty());
  });
}

TEST_CASE("a plan of any shape ends, in order, and sends each step once") {
  rc::check("random dependencies, failures and policies", [] {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 9);
    Driven d = one_step(Kind::plain, 1, 0);
    d.run.steps.clear();
    std::vector<int> fails;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::vector<std::uint32_t> after;
      for (std::uint32_t before = 0; before < i; ++before)
        if (*rc::gen::arbitrary<bool>()) after.push_back(before);
      d.run.steps.push_back(Driven::make_step("s" + std::to_string(i), Effect::write, after));
      d.run.steps.back().spec.on_failure = *rc::gen::element(run::OnFailure::stop, run::OnFailure::proceed);
      fails.push_back(*rc::gen::inRange(0, 4));
    }
    std::vector<run::Attempt> out;
    for (int i = 0; i < 1000 && !d.run.settled(); ++i) {
      for (run::Attempt& begun : d.go()) {
        for (const std::uint32_t before : d.run.steps[begun.step].spec.after)
          RC_ASSERT(d.run.steps[before].status == run::StepStatus::succeeded ||
                    d.run.steps[before].status == run::StepStatus::failed);
        out.push_back(begun);
      }
      if (out.empty()) break;
      const auto which = *rc::gen::inRange<std::size_t>(0, out.size());
      run::Attempt attempt = out[which];
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
      d.absorb(attempt, answered(fails[attempt.step] == 0 ? 400 : 200));
    }
    (void)d.go();
    RC_ASSERT(d.run.settled());
    bool stopped = false;
    for (const run::Step& step : d.run.steps) {
      RC_ASSERT(step.attempts <= 1);
      stopped |= step.status == run::StepStatus::failed && step.spec.on_failure == run::OnFailure::stop;
      RC_ASSERT(step.status != run::StepStatus::pending);
    }
    RC_ASSERT((d.run.status == run::RunStatus::failed) == stopped);
    if (!stopped)
      for (const run::Step& step : d.run.steps) RC_ASSERT(step.status != run::StepStatus::skipped);
    std::int64_t seq = 0;
    for (const run::Event& event : d.changes.events) RC_ASSERT(event.seq == ++seq);
    RC_ASSERT(d.changes.events.back().type == "run.settled");
  });
}

TEST_CASE("a cancel at any instant leaves one final state and no doubt untold") {
  rc::check("cancel before, between and after", [] {
    const Kind kind = *rc::gen::element(Kind::read, Kind::keyed, Kind::plain);
    const auto cancel_at = *rc::gen::inRange(0, 6);
    const auto outcomes = *rc::gen::nonEmpty(rc::gen::container<std::vector<Seen>>(
        rc::gen::element(Seen::ok, Seen::never_sent, Seen::refused, Seen::lost, Seen::limited)));
    Driven d = one_step(kind, 4, 10);
    std::vector<run::Attempt> out;
    for (int i = 0; i < 12; ++i) {
      if (i == cancel_at) {
        auto t = d.turn();
        run::request_cancel(t, "test");
      }
      for (run::Attempt& begun : d.go()) {
        RC_ASSERT(!d.run.cancel_requested);
        out.push_back(begun);
      }
      if (d.run.settled()) break;
      if (!out.empty() && *rc::gen::arbitrary<bool>()) {
        d.absorb(out.front(),
                 d.run.cancel_requested
                     ? broke(Failure::cancelled, Phase::tx_all)
                     : evidence(outcomes[std::min<std::size_t>(d.sends - 1, outcomes.size() - 1)]));
        out.erase(out.begin());
      } else if (out.empty()) {
        (void)d.sleep();
      }
    }
    (void)d.go();
    const run::Step& step = d.run.steps[0];
    if (!d.run.cancel_requested || !d.run.settled()) return;
    if (d.run.status == run::RunStatus::cancelled && step.write)
      RC_ASSERT(step.write->state == run::WriteState::not_landed ||
                step.write->state == run::WriteState::landed);
  });
}
