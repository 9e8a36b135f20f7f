#include "run/plan_step.h"

#include <algorithm>
#include <array>

#include "holdfast/core/ids.h"
#include "run/plan_fields.h"

namespace holdfast::run {
namespace {

constexpr std::array<std::string_view, 11> kStepMembers{
    "id",       "server",       "tool",       "target",          "args", "after",
    "deadline", "max_attempts", "on_failure", "on_circuit_open", "key"};

constexpr std::string_view kNameRule = "1 to 128 of the characters A-Z a-z 0-9 _ . - are expected";

Problem read_name(const json::Value& step, std::string_view member, std::string& out,
                  const std::string& where) {
  const json::Value* value = step.find(member);
  if (value == nullptr) return bad_submission("the step has no \"" + std::string(member) + "\"", where);
  out = value->text();
  if (!is_name(out)) return bad_submission(std::string(kNameRule), below(where, member));
  return std::nullopt;
}

Result<const ToolPolicy*> find_tool(const StepSpec& spec, const std::string& where,
                                    const PlanContext& context) {
  if (const ToolPolicy* tool = context.find_tool(spec.server, spec.tool)) return tool;
  if (!context.server_exists(spec.server))
    return std::unexpected(
        bad_submission("there is no server " + shown(spec.server), below(where, "server")));
  return std::unexpected(bad_submission(
      "the server " + shown(spec.server) + " has no tool " + shown(spec.tool), below(where, "tool")));
}

Problem read_target_and_key(const json::Value& step, StepSpec& spec, const std::string& where) {
  if (const json::Value* target = step.find("target")) {
    spec.target = target->text();
    if (!is_target(spec.target))
      return bad_submission("a target is a string of 1 to 1024 bytes without control characters",
                            below(where, "target"));
  }
  if (const json::Value* key = step.find("key")) {
    spec.key = key->text();
    if (!is_key(spec.key))
      return bad_submission("a key is a string of 1 to 255 printable ASCII characters", below(where, "key"));
  }
  return std::nullopt;
}

Problem read_args(const json::Value& step, DraftStep& draft, const ToolPolicy& tool,
                  const std::string& where) {
  const std::string place = below(where, "args");
  const json::Value* args = step.find("args");
  if (args != nullptr) {
    if (!args->is(json::Kind::object)) return bad_submission("args are a JSON object", place);
    draft.step.spec.args = args->raw;
    auto found = references(args->raw);
    if (!found) return bad_submission(found.error().message, place + found.error().pointer);
    draft.references = std::move(*found);
  }
  for (const std::string& name : tool.path_arguments) {
    if (args != nullptr && args->find(name) != nullptr) continue;
    return Error{"bad_arguments", "the path of the tool's request needs the argument " + shown(name),
                 below(place, name)};
  }
  return std::nullopt;
}

Problem read_after(const json::Value& step, DraftStep& draft, const std::string& where) {
  const json::Value* after = step.find("after");
  if (after == nullptr) return std::nullopt;
  const std::string place = below(where, "after");
  if (!after->is(json::Kind::array)) return bad_submission("\"after\" is a list of step ids", place);
  auto& names = draft.after.emplace();
  for (const json::Value& item : after->items) {
    if (!item.is(json::Kind::string))
      return bad_submission("\"after\" is a list of step ids", below(place, std::to_string(names.size())));
    names.push_back(item.text());
  }
  return std::nullopt;
}

Problem read_deadline(const json::Value& step, DraftStep& draft, Duration run_remaining,
                      const std::string& where) {
  const json::Value* value = step.find("deadline");
  if (value == nullptr) return std::nullopt;
  auto own = duration(*value, below(where, "deadline"));
  if (!own) return own.error();
  if (run_remaining.count() > 0 && *own > run_remaining) {
    draft.warnings.push_back(warning_prefix(draft.step.spec.id) + "its deadline of " +
                             format_duration(*own) + " is longer than the run's and is cut to " +
                             format_duration(run_remaining));
    own = run_remaining;
  }
  draft.step.spec.deadline = *own;
  return std::nullopt;
}

Problem read_max_attempts(const json::Value& step, DraftStep& draft, const ToolPolicy& tool,
                          const std::string& where) {
  draft.step.max_attempts = tool.max_attempts;
  const json::Value* value = step.find("max_attempts");
  if (value == nullptr) return std::nullopt;
  const auto wanted = whole_number(*value, 1, below(where, "max_attempts"));
  if (!wanted) return wanted.error();
  if (*wanted > tool.max_attempts) {
    draft.warnings.push_back(warning_prefix(draft.step.spec.id) +
                             "its max_attempts is higher than the tool's and is cut to " +
                             std::to_string(tool.max_attempts));
  }
  draft.step.max_attempts = static_cast<std::uint32_t>(std::min<std::int64_t>(*wanted, tool.max_attempts));
  draft.step.spec.max_attempts = draft.step.max_attempts;
  return std::nullopt;
}

Problem read_choices(const json::Value& step, StepSpec& spec, Mode mode, const std::string& where) {
  spec.on_circuit_open = mode == Mode::open ? OnCircuitOpen::fail : OnCircuitOpen::wait;
  if (const json::Value* value = step.find("on_failure")) {
    const auto chosen = choice<OnFailure>(*value, "\"stop\" or \"continue\"", below(where, "on_failure"));
    if (!chosen) return chosen.error();
    spec.on_failure = *chosen;
  }
  if (const json::Value* value = step.find("on_circuit_open")) {
    const auto chosen =
        choice<OnCircuitOpen>(*value, "\"wait\" or \"fail\"", below(where, "on_circuit_open"));
    if (!chosen) return chosen.error();
    spec.on_circuit_open = *chosen;
  }
  return std::nullopt;
}

/// Empty when only the arguments can tell.
std::string known_target(const StepSpec& spec, const ToolPolicy& tool) {
  if (!spec.target.empty()) return spec.target;
  if (tool.target.empty()) return spec.server + "/" + spec.tool;
  const auto nowhere = [](std::string_view, std::string_view) { return std::optional<std::string>{}; };
  const auto filled = resolve(json::quote(tool.target), nowhere);
  if (!filled) return {};
  const auto value = json::parse(*filled);
  return value ? value->text() : std::string{};
}

}  // namespace

std::string warning_prefix(std::string_view step_id) {
  return "step " + json::quote(step_id) + ": ";
}

Result<DraftStep> read_step(const json::Value& value, const std::string& where, Mode mode,
                            Instant run_deadline, const PlanContext& context) {
  if (!value.is(json::Kind::object)) return std::unexpected(bad_submission("a step is a JSON object", where));
  if (auto problem = unknown_member(value, kStepMembers, where)) return std::unexpected(std::move(*problem));
  DraftStep draft;
  StepSpec& spec = draft.step.spec;
  for (const auto& [member, out] :
       {std::pair{"id", &spec.id}, std::pair{"server", &spec.server}, std::pair{"tool", &spec.tool}}) {
    if (auto problem = read_name(value, member, *out, where)) return std::unexpected(std::move(*problem));
  }
  const auto found = find_tool(spec, where, context);
  if (!found) return std::unexpected(found.error());
  const ToolPolicy& tool = **found;

  Problem problem = read_target_and_key(value, spec, where);
  if (!problem) problem = read_args(value, draft, tool, where);
  if (!problem) problem = read_after(value, draft, where);
  if (!problem) problem = read_deadline(value, draft, run_deadline - context.now, where);
  if (!problem) problem = read_max_attempts(value, draft, tool, where);
  if (!problem) problem = read_choices(value, spec, mode, where);
  if (problem) return std::unexpected(std::move(*problem));

  draft.step.effect = tool.effect;
  draft.step.target = known_target(spec, tool);
  if (mode == Mode::open) spec.digest = step_digest(value);
  return draft;
}

}  // namespace holdfast::run
