#include <algorithm>

#include "config_parts.h"
#include "config_values.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

namespace holdfast::tools::config {
namespace {

constexpr std::uint32_t kMostAttempts = 1000;
constexpr std::uint32_t kMostCalls = 1'000'000;

void note(std::map<std::string, Source>& sources, const char* field, bool given, Source source) {
  if (given) sources[field] = source;
}

void read_breaker(Section& section, Source source, BreakerRule& rule,
                  std::map<std::string, Source>& sources) {
  auto part = read_section(section, "breaker");
  if (!part) return;
  sources["breaker"] = source;
  note(sources, "breaker.enabled", read_flag(*part, "enabled", rule.enabled), source);
  note(sources, "breaker.consecutive_failures",
       read_whole(*part, "consecutive_failures", rule.consecutive_failures, 1, kMostCalls), source);
  note(sources, "breaker.failure_rate", read_rate(*part, "failure_rate", rule.failure_rate), source);
  note(sources, "breaker.min_calls", read_whole(*part, "min_calls", rule.min_calls, 1, kMostCalls), source);
  note(sources, "breaker.window", read_duration(*part, "window", rule.window), source);
  note(sources, "breaker.cooldown", read_duration(*part, "cooldown", rule.cooldown), source);
  const bool most_given = read_duration(*part, "max_cooldown", rule.max_cooldown);
  note(sources, "breaker.max_cooldown", most_given, source);
  if (rule.max_cooldown < rule.cooldown) {
    if (most_given)
      part->problem("max_cooldown", "is shorter than cooldown",
                    "give max_cooldown at least the length of cooldown");
    rule.max_cooldown = rule.cooldown;
  }
  part->finish();
}

const char* const kMethods = "one of GET, HEAD, POST, PUT, PATCH and DELETE is needed";

void read_request(Section& tool, const ServerConfig& server, ToolConfig& out) {
  auto part = read_section(tool, "request");
  if (server.transport != ServerConfig::Transport::http) {
    if (part)
      tool.problem("request", "stands at an MCP server's tool",
                   "only tools of an `http` server have a request; take it out");
    return;
  }
  if (!part) {
    tool.problem("request", "is missing",
                 "a plain HTTP tool needs one, such as request: {method: POST, path: /charges}");
    return;
  }
  if (read_text(*part, "method", out.request.method)) {
    constexpr std::string_view kKnown[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
    if (std::ranges::find(kKnown, out.request.method) == std::end(kKnown))
      part->problem("method", "`" + out.request.method.substr(0, 40) + "` is no method that is supported",
                    kMethods);
  } else {
    part->problem("method", "is missing", kMethods);
  }
  if (!read_text(*part, "path", out.request.path)) {
    part->problem("path", "is missing", "a path such as /customers/{customer} is needed");
  } else if (const auto fault = path_fault(out.request.path); !fault.empty()) {
    part->problem("path", fault, "write a path such as /customers/{customer}");
  } else {
    out.policy.path_arguments = *path_arguments(out.request.path);
  }
  out.sources["request"] = Source::tool;
  part->finish();
}

void read_effect(Section& section, ToolConfig& out) {
  std::string text;
  out.sources["effect"] = Source::defaults;
  if (!read_text(section, "effect", text)) return;
  out.sources["effect"] = Source::tool;
  const auto effect = from_word<Effect>(text);
  if (effect)
    out.policy.effect = *effect;
  else
    section.problem("effect", "`" + text.substr(0, 40) + "` is no effect", "write read or write");
}

void read_target(Section& section, ToolConfig& out) {
  if (!read_text(section, "target", out.policy.target)) return;
  out.sources["target"] = Source::tool;
  const auto references = run::references(json::quote(out.policy.target));
  const bool args_only = references && std::ranges::all_of(*references, [](const auto& reference) {
                           return reference.step == "args";
                         });
  if (!args_only || !is_target(out.policy.target))
    section.problem("target", "can't be filled in",
                    "write up to 1024 bytes of text, with arguments as ${args/name}");
}

void read_refusals(Section& section, ToolConfig& out) {
  const auto* list = read_list(section, "refusals");
  if (!list) return;
  out.sources["refusals"] = Source::tool;
  std::size_t index = 0;
  for (const auto& item : list->items) {
    const std::string place = section.place("refusals") + "/" + std::to_string(index++);
    const bool digits = item.kind == Node::Kind::scalar && !item.quoted && item.text.size() == 3 &&
                        item.text.find_first_not_of("0123456789") == std::string::npos;
    if (digits && item.text >= "300" && item.text <= "599")
      out.policy.refusals.push_back(std::stoi(item.text));
    else
      section.problems().add(place, "`" + item.text.substr(0, 40) + "` is no status that could be a refusal",
                             "write HTTP statuses from 300 to 599");
  }
}

ToolConfig from_rules(const ServerConfig& server, const std::string& name, const Rules& rules) {
  ToolConfig tool;
  tool.policy.server = server.name;
  tool.policy.tool = name;
  tool.policy.deadline = rules.deadline;
  tool.policy.sized = rules.sized;
  tool.policy.max_attempts = rules.max_attempts;
  tool.policy.backoff = rules.backoff;
  tool.policy.breaker = rules.breaker;
  tool.sources = rules.sources;
  return tool;
}

}  // namespace

void read_backoff(Section& section, Backoff& backoff) {
  read_duration(section, "base", backoff.base);
  const bool cap_given = read_duration(section, "cap", backoff.cap);
  if (backoff.cap < backoff.base) {
    if (cap_given) section.problem("cap", "is shorter than base", "give cap at least the length of base");
    backoff.cap = backoff.base;
  }
  section.finish();
}

bool read_deadline(Section& section, Duration& deadline, std::optional<AutoDeadline>& sized) {
  const auto* node = section.find("deadline");
  if (!node) return false;
  if (node->kind != Node::Kind::map) {
    if (node->kind == Node::Kind::scalar && node->text == "auto")
      section.problem("deadline", "`auto` has its fields in a map", "write {auto: {percentile: 99}}");
    else
      read_duration(section, "deadline", deadline);
    sized.reset();
    return true;
  }
  Section part(section.problems(), *node, section.place("deadline"));
  auto fields = read_section(part, "auto");
  part.finish();
  if (!fields) {
    part.problem("auto", "is missing", "write {auto: {percentile: 99}}, or a duration in place of the map");
    return true;
  }
  AutoDeadline rule = sized.value_or(AutoDeadline{});
  read_number(*fields, "percentile", rule.percentile, 50, 99.9);
  read_number(*fields, "factor", rule.factor, 1, 100);
  const bool floor_given = read_duration(*fields, "floor", rule.floor);
  read_duration(*fields, "ceiling", rule.ceiling);
  fields->finish();
  if (rule.floor > rule.ceiling) {
    if (floor_given)
      fields->problem("floor", "is longer than the ceiling of " + format_duration(rule.ceiling),
                      "give ceiling at least the length of floor");
    rule.floor = rule.ceiling;
  }
  sized = rule;
  deadline = rule.ceiling;
  return true;
}

void read_rules(Section& section, Source source, Rules& rules) {
  note(rules.sources, "deadline", read_deadline(section, rules.deadline, rules.sized), source);
  note(rules.sources, "max_attempts",
       read_whole(section, "max_attempts", rules.max_attempts, 1, kMostAttempts), source);
  if (auto part = read_section(section, "backoff")) {
    rules.sources["backoff"] = source;
    read_backoff(*part, rules.backoff);
  }
  read_breaker(section, source, rules.breaker, rules.sources);
}

ToolConfig read_tool(Problems& problems, const Node& node, const std::string& pointer,
                     const ServerConfig& server, const std::string& name, const Rules& server_rules) {
  Section section(problems, node, pointer);
  Rules rules = server_rules;
  read_rules(section, Source::tool, rules);
  ToolConfig tool = from_rules(server, name, rules);
  read_effect(section, tool);
  read_request(section, server, tool);
  read_target(section, tool);
  read_refusals(section, tool);
  note(tool.sources, "single_step", read_flag(section, "single_step", tool.policy.single_step), Source::tool);
  note(tool.sources, "linger", read_duration(section, "linger", tool.policy.linger, Zero::means_none),
       Source::tool);
  read_tool_evidence(section, server, tool.policy, tool.sources);
  section.finish();
  return tool;
}

ToolConfig unnamed_tool(const ServerConfig& server, const Rules& rules) {
  ToolConfig tool = from_rules(server, "", rules);
  tool.sources["effect"] = Source::defaults;
  return tool;
}

}  // namespace holdfast::tools::config
