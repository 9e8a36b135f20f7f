// What people and agents decide: cancel, verdicts on unknown writes, the end of an open run.

#include <algorithm>

#include "core/canary.h"
#include "holdfast/core/json.h"
#include "holdfast/run/machine.h"
#include "holdfast/run/references.h"
#include "run/machine_detail.h"

namespace holdfast::run {

void submitted(Turn& turn) {
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("name", turn.run.name);
  w.end_object();
  add_event(turn, "run.submitted", "", std::move(data));
}

void request_cancel(Turn& turn, std::string reason) {
  Run& run = turn.run;
  if (run.settled() || run.cancel_requested) return;
  run.cancel_requested = true;
  run.cancel_reason = std::move(reason);
  turn.changes.run = !canary(Canary::cancel_not_stored);
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("reason", run.cancel_reason);
  w.end_object();
  add_event(turn, "run.cancel_requested", "", std::move(data));
  // What a call that is out has done is for its evidence to say: it comes as soon as the transport has ended
  // it.
  for (std::uint32_t i = 0; i < run.steps.size(); ++i)
    if (run.steps[i].in_flight) turn.changes.cancel_calls.push_back(i);
}

Result<void> resolve(Turn& turn, std::uint32_t index, const Ruling& ruling) {
  Run& run = turn.run;
  Step& step = run.steps[index];
  const auto refused = [](std::string code, std::string message) {
    return std::unexpected(Error{std::move(code), std::move(message), ""});
  };
  if (!step.write) return refused("not_unknown", "this step has no write whose outcome is unknown");
  Write& write = *step.write;
  if (!write.open) {
    const bool same = write.resolution == ruling.verdict ||
                      (write.resolution == Resolution::evidence && ruling.verdict == Resolution::landed);
    if (same) return {};
    if (write.resolution == Resolution::none)
      return refused("not_unknown",
                     "the write is " + std::string(word(write.state)) + ": there is nothing to resolve");
    return refused("already_resolved", "the write was resolved as " + std::string(word(write.resolution)) +
                                           " by " +
                                           (write.resolved_by.empty() ? "evidence" : write.resolved_by));
  }
  write.resolution = ruling.verdict;
  write.resolution_note = ruling.note;
  write.resolved_by = ruling.who;
  write.resolved_at = turn.now;
  // Never back: another verdict may have sent a call under the deadline that it gave.
  if (ruling.deadline) run.deadline = std::max(run.deadline, *ruling.deadline);
  turn.changes.run = true;
  switch (ruling.verdict) {
    case Resolution::landed:
      settle_write(turn, index, WriteState::landed, ruling.who);
      succeed(turn, index, ruling.result.empty() ? "null" : ruling.result);
      break;
    case Resolution::not_landed:
      settle_write(turn, index, WriteState::not_landed, ruling.who);
      step.doubt = Reason::none;
      step.doubt_detail.clear();
      step.next_check.reset();
      step.status = StepStatus::pending;
      step.reason = Reason::none;
      step.ordered = true;
      step.hinted_wait_used = false;
      break;
    default:
      settle_write(turn, index, WriteState::unknown, ruling.who);
      write.open = canary(Canary::abandoned_write_left_open);
      step.doubt = Reason::none;
      settle_step(turn, index, StepStatus::failed, Reason::abandoned, "abandoned: " + ruling.note);
  }
  turn.changes.touch(index);
  return {};
}

Result<void> finish(Turn& turn, RunStatus status, std::string result, std::string reason,
                    std::string digest) {
  Run& run = turn.run;
  const auto refused = [](std::string code, std::string message) {
    return std::unexpected(Error{std::move(code), std::move(message), ""});
  };
  if (run.settled()) {
    if (run.finish_digest == digest) return {};
    return refused("run_settled", "the run is " + std::string(word(run.status)) + " already");
  }
  for (const Step& step : run.steps) {
    if (step.status == StepStatus::unknown)
      return refused("unknown_write",
                     "the outcome of step " + step.spec.id + " is unknown: it has to be resolved first");
    if (!terminal(step.status))
      return refused("step_in_flight",
                     "step " + step.spec.id + " is not done: wait for it, or cancel the run");
  }
  run.finish_digest = std::move(digest);
  run.status = status;
  run.wait = {};
  run.reason = status == RunStatus::failed ? Reason::step_failed : Reason::none;
  run.detail = std::move(reason);
  run.result = std::move(result);
  run.finished_at = turn.now;
  std::string data;
  json::Writer w(data);
  w.begin_object();
  w.field("status", word(status));
  w.text_or_null("reason", word(run.reason));
  w.end_object();
  add_event(turn, "run.settled", "", std::move(data));
  return {};
}

std::optional<std::string> value_of(const Run& run, std::string_view name, std::string_view pointer) {
  for (const Step& step : run.steps) {
    if (step.spec.id != name) continue;
    if (step.status != StepStatus::succeeded || step.result.empty()) return std::nullopt;
    if (pointer.empty()) return step.result;
    const auto document = json::parse(step.result);
    if (!document) return std::nullopt;
    const json::Value* value = json::at(*document, pointer);
    if (value == nullptr) return std::nullopt;
    return std::string(value->raw);
  }
  return std::nullopt;
}

std::string plan_result(const Run& run) {
  if (run.steps.empty()) return {};
  if (run.result_template.empty()) return run.steps.back().result;
  auto text = resolve(run.result_template, [&](std::string_view name, std::string_view pointer) {
    return value_of(run, name, pointer);
  });
  return text ? *text : std::string("null");
}

}  // namespace holdfast::run
