#include "sim/people.h"

#include <utility>

#include "holdfast/core/intent_key.h"
#include "holdfast/core/json.h"

namespace holdfast::sim {

People::People(std::uint64_t seed, World& world, Truth& truth, const Town& town, const Swarm& swarm,
               Oracles& oracles, Desk& desk)
    : dice_(seed, "people"),
      world_(world),
      truth_(truth),
      town_(town),
      swarm_(swarm),
      oracles_(oracles),
      desk_(desk) {
  // Some cancel just then: by chance alone it hardly ever happens.
  oracles_.on_probe = [this, dice = std::make_shared<Dice>(seed, "probes")](int number) {
    if (swarm_.cancel == 0 || !dice->chance(200)) return;
    world_.after(dice->span(0, swarm_.latency_ms), [this, number] {
      if (!submissions_[static_cast<std::size_t>(number)].run_id.empty()) cancel(number);
    });
  };
}

run::PlanContext People::context() const {
  run::PlanContext context;
  context.find_tool = [this](std::string_view server, std::string_view tool) -> const ToolPolicy* {
    const tools::ToolConfig* found = desk_.catalog->find(server, tool);
    return found ? &found->policy : nullptr;
  };
  context.server_exists = [this](std::string_view server) { return desk_.catalog->server(server) != nullptr; };
  context.now = desk_.clock->now();
  return context;
}

std::string People::step_text(Submission& submission, int index, int count, bool open) {
  Tool* tool = town_.callable[dice_.index(town_.callable.size())];
  const std::string op = std::to_string(submission.number) + "." + std::to_string(index);
  truth_.add(op, tool);
  submission.ops.push_back(op);
  std::string text = "{\"id\":\"p" + std::to_string(index) + "\",\"server\":\"" + tool->server +
                     "\",\"tool\":\"" + tool->name + "\",\"args\":";
  const bool refers = index > 0 && dice_.chance(250);
  std::string args = "{\"op\":\"" + op + "\"";
  if (refers) args += ",\"in\":\"${p" + std::to_string(dice_.between(0, index - 1)) + "}\"";
  text += tool->cached ? Truth::shared_args(submission.number, index, static_cast<int>(dice_.between(0, 2))) : args + "}";
  if (!open && count > 1 && dice_.chance(600)) {
    text += ",\"after\":[";
    if (index > 0 && dice_.chance(500)) text += "\"p" + std::to_string(dice_.between(0, index - 1)) + "\"";
    text += "]";
  }
  if (dice_.chance(350)) text += ",\"on_failure\":\"continue\"";
  if (dice_.chance(200)) text += ",\"deadline\":" + std::to_string(dice_.between(20, 5'000));
  if (dice_.chance(300)) text += ",\"on_circuit_open\":\"fail\"";
  return text + "}";
}

void People::write_submission(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  submission.number = number;
  if (dice_.chance(800)) submission.key = "key-" + std::to_string(number);
  submission.open = dice_.chance(swarm_.open_runs);
  submission.budget = static_cast<std::uint32_t>(dice_.chance(300) ? dice_.between(0, 3) : 20);
  const std::int64_t most = swarm_.longest_deadline.count();
  submission.body = "{\"name\":\"" + std::to_string(number) + "\",\"deadline\":" +
                    std::to_string(dice_.between(most / 20 + 1, most)) +
                    ",\"retry_budget\":" + std::to_string(submission.budget);
  const int steps = static_cast<int>(dice_.between(1, swarm_.longest_plan));
  if (submission.open) {
    submission.body += ",\"mode\":\"open\"}";
    for (int i = 0; i < steps; ++i) submission.step_bodies.push_back(step_text(submission, i, steps, true));
    return;
  }
  submission.body += ",\"steps\":[";
  for (int i = 0; i < steps; ++i)
    submission.body += (i ? "," : "") + step_text(submission, i, steps, false);
  submission.body += "]}";
}

void People::begin() {
  submissions_.resize(static_cast<std::size_t>(swarm_.runs));
  for (int i = 0; i < swarm_.runs; ++i) {
    write_submission(i);
    world_.after(dice_.span(0, swarm_.chaos.count()), [this, i] { submit(i); });
  }
  world_.after(dice_.span(100, 3'000), [this] { round(); });
  if (swarm_.force > 0) world_.after(dice_.span(100, 20'000), [this] { force(); });
}

/// One who is about to come does not come twice.
void People::later(int number, Duration least) {
  if (std::exchange(submissions_[static_cast<std::size_t>(number)].coming, true)) return;
  world_.after(least + dice_.span(0, 500), [this, number] {
    submissions_[static_cast<std::size_t>(number)].coming = false;
    submit(number);
  });
}

void People::submit(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  if (home_ || submission.waiting || oracles_.gone(number)) return;
  // Without a key a repeat would be another run.
  if (submission.key.empty() && submission.asked && !submission.refused) return;
  if (!desk_.engine) return later(number, Duration{200});
  const auto document = json::parse(submission.body);
  auto planned = run::plan(*document, context());
  if (!planned && town_.config != town_.all.front()) return ask_again(number, sha256_hex(json::canonical(*document)));
  HOLDFAST_REQUIRE(planned.has_value(), "submission_is_right",
          submission.body + (planned ? "" : ": " + planned.error().message));
  planned->submit_key = submission.key;
  submission.asked = submission.waiting = true;
  submission.refused = false;
  latest_deadline_ = std::max(latest_deadline_, planned->deadline);
  world_.note(0x5b17 + static_cast<std::uint64_t>(number), [&] { return "submit " + submission.body; });
  desk_.engine->submit(std::move(*planned), [this, number](Result<engine::Submitted> answer) {
    if (answer)
      submitted(number, answer->run_id, answer->replayed);
    else
      refused(number, answer.error());
  });
  desk_.posted();
}

/// Its body can't be planned with the tools that there are: has it been taken before?
void People::ask_again(int number, std::string digest) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  if (submission.key.empty()) return later(number, Duration{300});
  submission.asked = submission.waiting = true;
  desk_.engine->replay("", submission.key, std::move(digest), [this, number](Result<std::optional<engine::Submitted>> answer) {
    if (!answer) return refused(number, answer.error());
    if (*answer) {
      world_.tally.reached(Goal::answered_without_tool);
      return submitted(number, (*answer)->run_id, true);
    }
    Submission& it = submissions_[static_cast<std::size_t>(number)];
    it.waiting = false;
    HOLDFAST_REQUIRE(it.run_id.empty() || oracles_.pruned(it.run_id), "no_run_lost", it.run_id);
    later(number, Duration{300});
  });
  desk_.posted();
}

void People::submitted(int number, const std::string& run_id, bool replayed) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  submission.waiting = submission.refused = false;
  if (replayed && oracles_.pruned(run_id)) return;  // deleted in the turn that answers
  world_.note(0xacc, [&] {
    return "accepted " + std::to_string(number) + " as " + run_id + (replayed ? " (replayed)" : "");
  });
  const Stored* stored = oracles_.find(run_id);
  HOLDFAST_REQUIRE(stored != nullptr, "acknowledged_is_durable", run_id);
  HOLDFAST_REQUIRE(stored->run.name == std::to_string(number), "acknowledged_is_mine", run_id);
  HOLDFAST_REQUIRE(submission.run_id.empty() || replayed, "replay_is_told", run_id);
  HOLDFAST_REQUIRE(!replayed || !submission.run_id.empty() || submission.lost_answer, "refused_runs_are_not_stored",
          run_id + " was refused, and is there");
  if (replayed) world_.tally.reached(Goal::submit_replayed);
  if (replayed && submission.lost_answer) world_.tally.reached(Goal::submit_after_crash);
  const bool first = submission.run_id.empty();
  submission.run_id = run_id;
  if (!first) return;
  ++world_.tally.runs;
  if (dice_.chance(swarm_.cancel))
    world_.after(dice_.span(0, dice_.chance(500) ? 200 : 5'000), [this, number] { cancel(number); });
  if (!submission.key.empty() && dice_.chance(swarm_.resubmit)) later(number, dice_.span(0, 10'000));
  if (!submission.key.empty() && dice_.chance(swarm_.resubmit))
    world_.after(dice_.span(0, 10'000), [this, number] { try_other_body(number); });
  if (dice_.chance(80)) world_.after(dice_.span(10, 3'000), [this, number] { poll(number); });
  if (submission.open) world_.after(dice_.span(0, 500), [this, number] { drive(number); });
}

void People::refused(int number, const Error& error) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  submission.waiting = false;
  world_.note(0xdec, [&] { return "refused " + std::to_string(number) + ": " + error.code; });
  const bool storage = error.code == "storage_full" || error.code == "storage_error";
  HOLDFAST_REQUIRE(storage || error.code == "overloaded" || error.code == "storage_broken" || error.code == "shutting_down", "refusal_is_known",
          error.code + ": " + error.message);
  if (error.code == "overloaded") world_.tally.reached(Goal::overloaded);
  if (storage) world_.tally.reached(Goal::storage_refused);
  if (submission.run_id.empty()) {
    submission.refused = true;
    // A refusal is an answer: who has no key may come again too.
    later(number, Duration{300});
  }
}

void People::try_other_body(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  if (home_ || !desk_.engine || submission.run_id.empty() || oracles_.gone(number)) return;
  std::string body = submission.body;
  body.insert(body.size() - 1, ",\"labels\":{\"other\":\"yes\"}");
  const auto document = json::parse(body);
  auto planned = run::plan(*document, context());
  if (!planned && town_.config != town_.all.front()) return;
  HOLDFAST_REQUIRE(planned.has_value(), "submission_is_right", body);
  planned->submit_key = submission.key;
  desk_.engine->submit(std::move(*planned), [this, number](Result<engine::Submitted> answer) {
    HOLDFAST_REQUIRE(!answer, "key_is_not_reused", std::to_string(number));
    if (answer.error().code == "key_reused") world_.tally.reached(Goal::key_reused);
  });
  desk_.posted();
}

void People::cancel(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  if (home_ || submission.cancel_acked || oracles_.gone(number)) return;
  if (!desk_.engine) {
    world_.after(Duration{500}, [this, number] { cancel(number); });
    return;
  }
  submission.cancel_asked = true;
  world_.note(0xca9c, [&] { return "cancel " + submission.run_id; });
  desk_.engine->cancel(submission.run_id, "", "client", "no longer wanted", [this, number](Result<void> answer) {
    Submission& it = submissions_[static_cast<std::size_t>(number)];
    if (!answer) {
      HOLDFAST_REQUIRE(answer.error().code != "run_not_found" || oracles_.pruned(it.run_id), "no_run_lost", it.run_id);
      return;
    }
    it.cancel_acked = true;
    if (oracles_.pruned(it.run_id)) return;
    const Stored* stored = oracles_.find(it.run_id);
    HOLDFAST_REQUIRE(stored && (stored->run.cancel_requested || stored->run.settled()), "acknowledged_is_durable",
            "cancel of " + it.run_id);
  });
  desk_.posted();
}

void People::poll(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  if (home_ || !submission.settled_as.empty()) return;
  // The server knows by heart the runs that move, and those that have ended just now: its ledger is asked for the others, and once in a while.
  const Stored* stored = oracles_.find(submission.run_id);
  const bool by_heart = stored && (!stored->run.settled() || desk_.clock->now() < *stored->run.finished_at + Duration{5'000});
  if (desk_.reader && (!by_heart || dice_.chance(100))) {
    auto found = desk_.reader->run(submission.run_id);
    if (found) {
      HOLDFAST_REQUIRE(found->has_value() || oracles_.pruned(submission.run_id), "no_run_lost", submission.run_id);
      HOLDFAST_REQUIRE(!found->has_value() || !oracles_.pruned(submission.run_id), "pruned_run_is_gone", submission.run_id);
      if (!*found) return;
      if ((*found)->settled()) submission.settled_as = run::word((*found)->status);
    }
  }
  world_.after(dice_.span(2'000, 20'000), [this, number] { poll(number); });
}

void People::drive(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  if (home_ || submission.finish_acked || oracles_.gone(number)) return;
  const Stored* stored = oracles_.find(submission.run_id);
  if (stored && stored->run.settled()) return;
  const auto again = [this, number](Duration wait) {
    world_.after(wait, [this, number] { drive(number); });
  };
  if (!desk_.engine) return again(dice_.span(100, 1'000));
  const bool repeat = submission.steps_acked > 0 && dice_.chance(swarm_.resubmit);
  const bool other = repeat && dice_.chance(300);
  const std::size_t index = repeat ? dice_.index(submission.steps_acked) : submission.steps_acked;
  if (index >= submission.step_bodies.size()) return finish(number);
  std::string body = submission.step_bodies[index];
  if (other) body.insert(body.size() - 1, ",\"max_attempts\":1");
  auto text = std::make_shared<std::string>(std::move(body));
  auto document = std::make_shared<json::Value>(std::move(*json::parse(*text)));
  desk_.engine->add_step(
      submission.run_id, "", "p" + std::to_string(index), run::step_digest(*document),
      [text, document, context = context()](const run::Run& run) {
        return run::plan_step(*document, run, context);
      },
      [this, number, index, repeat, other](Result<engine::StepAdded> answer) {
        Submission& it = submissions_[static_cast<std::size_t>(number)];
        if (!answer) {
          const std::string& code = answer.error().code;
          if (code == "step_reused") world_.tally.reached(Goal::step_reused);
          HOLDFAST_REQUIRE(code != "run_not_found" || oracles_.pruned(it.run_id), "no_run_lost", it.run_id);
          HOLDFAST_REQUIRE(code != "step_reused" || other, "step_repeat_is_told", it.run_id + " " + code);
          return;
        }
        HOLDFAST_REQUIRE(!other, "step_is_not_reused", it.run_id);
        HOLDFAST_REQUIRE(!repeat || answer->replayed, "step_repeat_is_told", it.run_id);
        if (oracles_.pruned(it.run_id)) return;
        const Stored* run = oracles_.find(it.run_id);
        HOLDFAST_REQUIRE(run && run->run.steps.size() > index, "acknowledged_is_durable", "step of " + it.run_id);
        if (answer->replayed) world_.tally.reached(Goal::step_replayed);
        it.steps_acked = std::max(it.steps_acked, index + 1);
      });
  desk_.posted();
  again(dice_.span(1, 2'000));
}

void People::finish(int number) {
  Submission& submission = submissions_[static_cast<std::size_t>(number)];
  desk_.engine->finish(submission.run_id, "", run::RunStatus::succeeded, "{\"done\":true}", "", "digest",
                       [this, number](Result<void> answer) {
                         Submission& it = submissions_[static_cast<std::size_t>(number)];
                         if (!answer) {
                           HOLDFAST_REQUIRE(answer.error().code != "run_not_found" || oracles_.pruned(it.run_id), "no_run_lost",
                                   it.run_id);
                           return;
                         }
                         it.finish_acked = true;
                         if (oracles_.pruned(it.run_id)) return;
                         const Stored* stored = oracles_.find(it.run_id);
                         HOLDFAST_REQUIRE(stored && stored->run.settled(), "acknowledged_is_durable",
                                 "finish of " + it.run_id);
                         world_.tally.reached(Goal::open_finished);
                       });
  desk_.posted();
  world_.after(dice_.span(200, 3'000), [this, number] { drive(number); });
}

void People::process_gone() {
  for (Submission& submission : submissions_)
    if (std::exchange(submission.waiting, false)) submission.lost_answer = true;
}

void People::process_back() {
  for (const Submission& submission : submissions_)
    if (submission.lost_answer && submission.run_id.empty() && !submission.key.empty() &&
        (healed_ || dice_.chance(800)))
      later(submission.number, Duration{50});
}

void People::heal() {
  healed_ = true;
  for (const Submission& submission : submissions_)
    if (submission.run_id.empty() && (!submission.key.empty() || !submission.asked))
      later(submission.number, Duration{10});
  world_.after(Duration{100}, [this] {
    if (!desk_.engine) return heal();
    for (const auto& [server, tool] : forced_) {
      if (tool.empty()) oracles_.gate_opened(server);
      desk_.engine->force_breaker(server, tool, false, "operator", "over", std::nullopt, [](Result<Breaker>) {});
    }
    desk_.posted();
  });
}

bool People::content() const {
  for (const Submission& submission : submissions_)
    if (submission.waiting || (submission.run_id.empty() && !submission.key.empty() && !oracles_.gone(submission.number))) return false;
  return true;
}

}  // namespace holdfast::sim
