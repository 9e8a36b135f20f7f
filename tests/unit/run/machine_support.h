#pragma once
#include <catch2/catch.hpp>

#include "holdfast/run/machine.h"

/// A run driven by hand: no engine, no tool, time set by the test.
struct Driven {
  holdfast::run::Run run;
  holdfast::run::Changes changes;
  holdfast::Instant now{1'000'000};
  std::unique_ptr<holdfast::Random> random = holdfast::seeded_random(7);
  holdfast::ToolPolicy policy;
  std::uint32_t sends = 0;

  holdfast::run::Turn turn() { return {run, changes, now, *random}; }

  static holdfast::run::Step make_step(std::string id, holdfast::Effect effect,
                                       std::vector<std::uint32_t> after = {}) {
    holdfast::run::Step step;
    step.spec.id = std::move(id);
    step.spec.server = "api";
    step.spec.tool = "w";
    step.spec.after = std::move(after);
    step.effect = effect;
    step.target = "api/w";
    return step;
  }

  /// Carries out every move; a call that may leave leaves. Returns the attempts begun.
  std::vector<holdfast::run::Attempt> go() {
    using namespace holdfast;
    std::vector<run::Attempt> begun;
    for (int i = 0; i < 1000; ++i) {
      const auto moves = run::next(run, now);
      if (moves.empty()) break;
      for (const run::Move& move : moves) {
        auto t = turn();
        if (move.kind != run::MoveKind::start) {
          run::apply(t, move);
          continue;
        }
        const auto ready = run::ready(run, run.steps[move.step], policy, now);
        if (ready.what == run::Readiness::What::fail)
          run::fail(t, move.step, ready.reason, ready.detail);
        else if (ready.what == run::Readiness::What::doubt)
          run::doubt(t, move.step, ready.reason, ready.detail);
        else {
          begun.push_back(run::begin(
              t, move.step, AttemptKind::call,
              nest_deadline(policy.deadline, run.steps[move.step].spec.deadline, run.deadline, now)));
          ++sends;
        }
      }
    }
    auto t = turn();
    run::refresh(t);
    return begun;
  }

  void absorb(holdfast::run::Attempt& attempt, const holdfast::Evidence& evidence) {
    using namespace holdfast;
    auto t = turn();
    const Kind kind = run.steps[attempt.step].effect == Effect::read ? Kind::read : policy.kind();
    run::absorb_call(t, attempt.step, attempt, evidence, classify(evidence, policy, kind, attempt.clipped),
                     policy);
  }

  /// To the next instant at which something may happen.
  bool sleep() {
    const auto at = holdfast::run::wake_at(run);
    if (!at) return false;
    now = std::max(now, *at);
    return true;
  }
};

inline holdfast::Evidence answered(int status, std::string result = "{\"ok\":true}") {
  holdfast::Evidence e;
  e.phase = holdfast::Phase::parsed;
  e.answer = holdfast::Answer::http;
  e.http_status = status;
  e.result = std::move(result);
  e.bytes_sent = 100;
  return e;
}
inline holdfast::Evidence broke(holdfast::Failure failure, holdfast::Phase phase) {
  holdfast::Evidence e;
  e.phase = phase;
  e.failure = failure;
  e.bytes_sent = phase < holdfast::Phase::tx_part ? 0 : 100;
  e.detail = "seen by the test";
  return e;
}
