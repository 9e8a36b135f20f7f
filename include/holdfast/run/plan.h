#pragma once
// From a submission's JSON to a run that may be accepted.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/json.h"
#include "holdfast/policy/tool_policy.h"
#include "holdfast/run/run.h"

namespace holdfast::run {

struct PlanContext {
  /// The rules of a tool; nullptr when there is no such server or tool. `server_exists` tells which of both.
  std::function<const ToolPolicy*(std::string_view server, std::string_view tool)> find_tool;
  std::function<bool(std::string_view server)> server_exists;
  Duration default_run_deadline{15 * 60'000};
  std::uint32_t default_retry_budget = 20;
  std::size_t max_steps = 10'000;
  Instant now{};
};

/// A submission, checked in full: names, types, unknown members (naming the nearest known one), servers and
/// tools, duplicate step ids, references (also of `result`), cycles, deadlines, limits on labels and targets,
/// missing path arguments (`bad_arguments`). Code of the other errors: `bad_submission`. The pointer names
/// the place in the submission. On success the run has no id, no seq and status queued; `after`, `effect`,
/// `max_attempts`, `warnings`, `submit_digest` are filled in. `target` of a step is filled in where no
/// argument decides it.
[[nodiscard]] Result<Run> plan(const json::Value& submission, const PlanContext& context);

/// A step that may be added to an open run, and what was cut to fit.
struct PostedStep {
  Step step;
  std::vector<std::string> warnings;
};
/// One step of an open run, as posted by its agent (`digest` filled in). References may name the run's
/// earlier steps only; without `after` the step waits for what it refers to and nothing else. Pointers are
/// relative to the step.
[[nodiscard]] Result<PostedStep> plan_step(const json::Value& step, const Run& run, const PlanContext& context);
/// The step becomes the run's last, and its warnings the run's, which keeps 64 KiB of them.
void add(PostedStep posted, Run& run);
/// Those of the run's warnings that are about this step: a JSON array of strings.
[[nodiscard]] std::string warnings_of(const Run& run, std::string_view step_id);

/// SHA-256 of the step's canonical form, in hexadecimal: tells a repeated step from another body.
[[nodiscard]] std::string step_digest(const json::Value& step);

}  // namespace holdfast::run
