#include "holdfast/run/plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "holdfast/core/intent_key.h"
#include "run/plan_fields.h"
#include "run/plan_graph.h"
#include "run/plan_step.h"

namespace holdfast::run {
namespace {

constexpr std::array<std::string_view, 7> kMembers{"name", "deadline", "retry_budget", "labels",
                                                   "mode", "steps",    "result"};
constexpr std::size_t kLongestName = 256;

/// Step ids to indices.
using Index = std::unordered_map<std::string_view, std::uint32_t>;

Index index_of(const std::vector<Step>& steps) {
  Index index;
  for (std::uint32_t i = 0; i < steps.size(); ++i) index.emplace(steps[i].spec.id, i);
  return index;
}

void sort_unique(std::vector<std::uint32_t>& indices) {
  std::ranges::sort(indices);
  const auto [first, last] = std::ranges::unique(indices);
  indices.erase(first, last);
}

/// Turns the names of a draft into indices: `after` from its own list, else from `default_after`, and
/// whatever its arguments refer to.
Problem link(DraftStep& draft, const std::string& where, const Index& index,
             std::optional<std::uint32_t> default_after) {
  StepSpec& spec = draft.step.spec;
  if (!draft.after && default_after) spec.after.push_back(*default_after);
  if (draft.after) {
    for (std::size_t i = 0; i < draft.after->size(); ++i) {
      const std::string& name = (*draft.after)[i];
      const std::string place = where + "/after/" + std::to_string(i);
      if (name == spec.id) return bad_submission("the step waits for itself", place);
      const auto found = index.find(name);
      if (found == index.end()) return bad_submission("there is no step " + shown(name), place);
      spec.after.push_back(found->second);
    }
  }
  for (const Reference& reference : draft.references) {
    const std::string place = where + "/args" + reference.place;
    if (reference.step == spec.id) return bad_submission("the step refers to itself", place);
    const auto found = index.find(reference.step);
    if (found == index.end())
      return bad_submission("there is no step " + shown(reference.step) + "; a literal ${ is written $${",
                            place);
    spec.after.push_back(found->second);
  }
  sort_unique(spec.after);
  return std::nullopt;
}

Problem check_cycles(const std::vector<Step>& steps) {
  std::vector<std::vector<std::uint32_t>> after;
  after.reserve(steps.size());
  for (const Step& step : steps) after.push_back(step.spec.after);
  const auto cycle = find_cycle(after);
  if (cycle.empty()) return std::nullopt;
  constexpr std::size_t kNamed = 8;
  std::string message = "steps wait for each other in a circle: ";
  for (std::size_t i = 0; i < std::min(cycle.size(), kNamed); ++i)
    message += shown(steps[cycle[i]].spec.id) + " waits for ";
  message += cycle.size() > kNamed ? "…" : shown(steps[cycle.front()].spec.id);
  return bad_submission(std::move(message), "/steps/" + std::to_string(cycle.front()));
}

std::string json_strings(const std::vector<std::string>& texts) {
  std::string out;
  json::Writer writer(out);
  writer.begin_array();
  for (const std::string& text : texts) writer.string(text);
  writer.end_array();
  return out;
}

Problem read_head(const json::Value& submission, Run& run, const PlanContext& context) {
  if (const auto* value = submission.find("name")) {
    auto name = short_text(*value, kLongestName, "/name");
    if (!name) return name.error();
    run.name = std::move(*name);
  }
  if (const auto* value = submission.find("mode")) {
    const auto mode = choice<Mode>(*value, "\"plan\" or \"open\"", "/mode");
    if (!mode) return mode.error();
    run.mode = *mode;
  }
  run.deadline = context.now + context.default_run_deadline;
  if (const auto* value = submission.find("deadline")) {
    const auto at = deadline(*value, context.now, "/deadline");
    if (!at) return at.error();
    run.deadline = *at;
  }
  run.retry_limit = context.default_retry_budget;
  if (const auto* value = submission.find("retry_budget")) {
    const auto limit = whole_number(*value, 0, "/retry_budget");
    if (!limit) return limit.error();
    run.retry_limit =
        static_cast<std::uint32_t>(std::min<std::int64_t>(*limit, std::numeric_limits<std::uint32_t>::max()));
  }
  if (const auto* value = submission.find("labels")) {
    auto text = labels(*value, "/labels");
    if (!text) return text.error();
    run.labels = std::move(*text);
  }
  return std::nullopt;
}

Result<std::vector<DraftStep>> read_steps(const json::Value* steps, const Run& run,
                                          const PlanContext& context) {
  std::vector<DraftStep> drafts;
  if (steps == nullptr && run.mode == Mode::open) return drafts;
  if (steps == nullptr) return std::unexpected(bad_submission("a plan has \"steps\"", ""));
  if (!steps->is(json::Kind::array))
    return std::unexpected(bad_submission("\"steps\" is a list of steps", "/steps"));
  if (steps->items.empty() && run.mode == Mode::plan)
    return std::unexpected(bad_submission("a plan has at least one step", "/steps"));
  if (steps->items.size() > context.max_steps)
    return std::unexpected(
        bad_submission("there are more than " + std::to_string(context.max_steps) + " steps", "/steps"));
  drafts.reserve(steps->items.size());
  for (const json::Value& item : steps->items) {
    auto draft = read_step(item, "/steps/" + std::to_string(drafts.size()), run.mode, run.deadline, context);
    if (!draft) return std::unexpected(draft.error());
    drafts.push_back(std::move(*draft));
  }
  return drafts;
}

/// Links the drafts and moves them into the run.
Problem add_steps(std::vector<DraftStep> drafts, Run& run) {
  Index index;
  for (std::uint32_t i = 0; i < drafts.size(); ++i) {
    const std::string& id = drafts[i].step.spec.id;
    if (!index.emplace(id, i).second)
      return bad_submission("the id " + shown(id) + " is taken", "/steps/" + std::to_string(i) + "/id");
  }
  for (std::uint32_t i = 0; i < drafts.size(); ++i) {
    const auto previous = i > 0 ? std::optional(i - 1) : std::nullopt;
    if (auto problem = link(drafts[i], "/steps/" + std::to_string(i), index, previous)) return problem;
  }
  std::vector<std::string> warnings;
  for (DraftStep& draft : drafts) {
    std::ranges::move(draft.warnings, std::back_inserter(warnings));
    run.steps.push_back(std::move(draft.step));
  }
  run.warnings = json_strings(warnings);
  return check_cycles(run.steps);
}

Problem read_result(const json::Value& submission, Run& run) {
  const auto* value = submission.find("result");
  if (value == nullptr) return std::nullopt;
  if (run.mode == Mode::open)
    return bad_submission("an open run gets its result when it is finished", "/result");
  const auto found = references(value->raw);
  if (!found) return bad_submission(found.error().message, "/result" + found.error().pointer);
  const Index index = index_of(run.steps);
  for (const Reference& reference : *found) {
    if (!index.contains(reference.step))
      return bad_submission("there is no step " + shown(reference.step) + "; a literal ${ is written $${",
                            "/result" + reference.place);
  }
  run.result_template = value->raw;
  return std::nullopt;
}

}  // namespace

Result<Run> plan(const json::Value& submission, const PlanContext& context) {
  if (!submission.is(json::Kind::object))
    return std::unexpected(bad_submission("a submission is a JSON object", ""));
  if (auto problem = unknown_member(submission, kMembers, "")) return std::unexpected(std::move(*problem));
  Run run;
  run.created_at = context.now;
  if (auto problem = read_head(submission, run, context)) return std::unexpected(std::move(*problem));
  auto drafts = read_steps(submission.find("steps"), run, context);
  if (!drafts) return std::unexpected(drafts.error());
  if (auto problem = add_steps(std::move(*drafts), run)) return std::unexpected(std::move(*problem));
  if (auto problem = read_result(submission, run)) return std::unexpected(std::move(*problem));
  run.submit_digest = sha256_hex(json::canonical(submission));
  return run;
}

Result<PostedStep> plan_step(const json::Value& step, const Run& run, const PlanContext& context) {
  if (run.steps.size() >= context.max_steps)
    return std::unexpected(
        bad_submission("the run has its " + std::to_string(context.max_steps) + " steps already", ""));
  auto draft = read_step(step, "", Mode::open, run.deadline, context);
  if (!draft) return std::unexpected(draft.error());
  const Index index = index_of(run.steps);
  if (index.contains(draft->step.spec.id))
    return std::unexpected(bad_submission("the id " + shown(draft->step.spec.id) + " is taken", "/id"));
  if (auto problem = link(*draft, "", index, std::nullopt)) return std::unexpected(std::move(*problem));
  return PostedStep{std::move(draft->step), std::move(draft->warnings)};
}

void add(PostedStep posted, Run& run) {
  constexpr std::size_t kWarningBytes = 64 * 1024;
  run.steps.push_back(std::move(posted.step));
  if (posted.warnings.empty()) return;
  const std::string more = json_strings(posted.warnings);
  if (run.warnings.size() + more.size() > kWarningBytes) return;
  if (run.warnings == "[]") {
    run.warnings = more;
  } else {
    run.warnings.back() = ',';
    run.warnings.append(more, 1);
  }
}

std::string warnings_of(const Run& run, std::string_view step_id) {
  std::vector<std::string> own;
  if (const auto all = json::parse(run.warnings)) {
    for (const json::Value& warning : all->items) {
      if (std::string text = warning.text(); text.starts_with(warning_prefix(step_id))) own.push_back(std::move(text));
    }
  }
  return json_strings(own);
}

std::string step_digest(const json::Value& step) {
  return sha256_hex(json::canonical(step));
}

}  // namespace holdfast::run
