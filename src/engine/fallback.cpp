// What answers in place of a read that has given up: the last good answer, a configured value, another tool.
#include "core/canary.h"
#include "engine/loop.h"
#include "holdfast/core/intent_key.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

namespace holdfast::engine {

namespace {

constexpr std::size_t kLongestAnswer = std::size_t{1} << 20;

/// Empty where these are no JSON.
std::string digest_of(std::string_view args, const tools::Limits& limits) {
  if (canary(Canary::kept_answer_of_other_arguments)) return "any";
  // Arguments may have taken in a result, so they can be as deep as both limits together.
  const auto document = json::parse(args, {.depth = std::size_t{2} * limits.json_depth + 2});
  return document ? sha256_hex(json::canonical(*document)) : std::string{};
}

/// For people: whole seconds, never younger than it is.
std::string age_text(Duration age) {
  const std::int64_t seconds = (age.count() + 999) / 1'000;
  return seconds == 0 ? "0s" : format_duration(Duration{seconds * 1'000});
}

bool keeps_answers(const ToolPolicy& policy) {
  return policy.effect == Effect::read && policy.fallback &&
         policy.fallback->source == FallbackRule::Source::cached;
}

}  // namespace

Result<std::string> resolved_args(const run::Run& run, const run::Step& step) {
  if (step.spec.args.find("${") == std::string::npos) return step.spec.args;
  return run::resolve(step.spec.args, [&](std::string_view name, std::string_view pointer) {
    return run::value_of(run, name, pointer);
  });
}

void Engine::Impl::keep_answer(const Flight& flight, const Evidence& evidence, const Judgement& judgement) {
  const bool good = judgement.verdict == holdfast::Verdict::ok && judgement.action == Action::done;
  const bool by_step = flight.attempt.kind == AttemptKind::call || flight.attempt.kind == AttemptKind::fallback;
  if (!good || !by_step || !keeps_answers(*flight.called)) return;
  if (evidence.result.empty() || evidence.result.size() > kLongestAnswer) return;
  const auto args = resolved_args(flight.live->run, flight.live->run.steps[flight.step]);
  if (!args) return;
  std::string digest = digest_of(*args, catalog.config().limits);
  if (digest.empty()) return;
  kept.push_back({flight.called->server, flight.called->tool, std::move(digest), now, evidence.result});
}

Result<std::optional<ledger::CachedAnswer>> Engine::Impl::find_kept(const ToolPolicy& policy,
                                                                    std::string_view args) {
  const std::string digest = digest_of(args, catalog.config().limits);
  // What this turn has seen is newer than the ledger.
  for (auto it = kept.rbegin(); it != kept.rend(); ++it)
    if (it->arguments == digest && it->server == policy.server && it->tool == policy.tool) return *it;
  return ledger.find_answer(policy.server, policy.tool, digest);
}

void Engine::Impl::answer_from_kept(run::Turn& turn, std::uint32_t index, const ToolPolicy& policy) {
  const run::Step& step = turn.run.steps[index];
  const auto without = [&](std::string_view why) {
    return run::fail(turn, index, step.reason, step.detail + "; " + std::string(why));
  };
  const auto args = resolved_args(turn.run, step);
  if (!args) return without("its arguments can't be read any more, so no kept answer was looked for");
  const auto found = find_kept(policy, *args);
  if (!found) return without("the kept answers can't be read: " + found.error().message);
  if (!*found) return without("no answer to these arguments is kept");
  const Duration age = now - (**found).at;
  const Duration most = policy.fallback->max_age;
  if (age > most && !canary(Canary::kept_answer_too_old))
    return without("the last good answer is " + age_text(age) + " old, over the max_age of " +
                   format_duration(most));
  // After a wall clock that was set back nobody knows how old it is.
  if (age.count() < 0) return without("the last good answer is dated after now, so its age is not known");
  const std::string source = policy.server + "/" + policy.tool;
  run::degrade(turn, index, (**found).result,
               "the last good answer of " + source + ", " + age_text(age) + " old, stands in: " + step.detail);
}

void Engine::Impl::start_fallback(Live& live, std::uint32_t index, bool from_queue) {
  const run::Step& step = live.run.steps[index];
  const ToolPolicy& policy = policy_of(step);
  run::Turn turn{live.run, live.changes, now, random};
  if (!policy.fallback) return run::fail(turn, index, step.reason, step.detail);
  const FallbackRule& rule = *policy.fallback;
  switch (rule.source) {
    case FallbackRule::Source::cached:
      return answer_from_kept(turn, index, policy);
    case FallbackRule::Source::fixed:
      return run::degrade(turn, index, rule.value, "the configured value stands in: " + step.detail);
    case FallbackRule::Source::tool:
      return ask_instead(live, index, rule, from_queue);
  }
}

void Engine::Impl::ask_instead(Live& live, std::uint32_t index, const FallbackRule& rule, bool from_queue) {
  const run::Step& step = live.run.steps[index];
  run::Turn turn{live.run, live.changes, now, random};
  const std::string other = rule.server + "/" + rule.tool;
  const auto without = [&](const std::string& why) {
    return run::fail(turn, index, step.reason,
                     step.detail + "; the fallback " + other + " can't be asked: " + why);
  };
  const tools::ToolConfig* config = catalog.find(rule.server, rule.tool);
  if (config == nullptr) return without("it is not configured");
  const auto args = resolved_args(live.run, step);
  if (!args) return without(args.error().message);
  auto request = catalog.freeze(rule.server, rule.tool, *args, "");
  if (!request) return without(request.error().message);
  if (!gates.slot_free(rule.server) || (!from_queue && gates.others_wait(rule.server))) {
    live.queued = true;
    if (step.wait.what != run::WaitFor::slot) gates.queue_for_slot(rule.server, {live.run.id, index});
    return run::hold(turn, index, {run::WaitFor::slot, std::nullopt});
  }
  const CallDeadline deadline =
      nest_deadline(latencies.deadline(config->policy, now), step.spec.deadline, live.run.deadline, now);
  Verge verge = gates.ask(config->policy, Kind::read, now, deadline.at);
  if (verge.pass != Verge::Pass::go)
    return without(verge.pass == Verge::Pass::wait ? "it asked everybody to wait" : "its circuit is open");
  launch(live, index, AttemptKind::fallback, config->policy, Kind::read, std::move(*request), deadline,
         std::move(verge.permit));
}

}  // namespace holdfast::engine
