// What a tool's configuration says about proof: key, check, success, errors, and what may answer in its
// place.
#include <algorithm>

#include "config_parts.h"
#include "config_values.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

namespace holdfast::tools::config {
namespace {

bool given(Section& section, const char* name) {
  return section.find(name) != nullptr;
}

bool is_meta_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 &&
         std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

void read_key_place(Section& part, const ServerConfig& server, KeyRule& key) {
  const bool header = read_text(part, "header", key.name);
  const bool meta = read_text(part, "meta", key.name);
  const bool argument = given(part, "argument");
  if (argument) read_pointer(part, "argument", key.name);
  using Transport = ServerConfig::Transport;
  if (header + meta + argument != 1) {
    part.problems().add(part.pointer(), "names no single place",
                        "give exactly one of header, argument and meta");
  } else if (header) {
    key.place = KeyRule::Place::header;
    if (server.transport == Transport::mcp_stdio)
      part.problem("header", "has no meaning over stdio", "use argument or meta");
    else if (!is_token(key.name) || is_reserved_header(key.name))
      part.problem("header", "is no header name that can be used", "write one such as Idempotency-Key");
  } else if (meta) {
    key.place = KeyRule::Place::meta;
    if (server.transport == Transport::http)
      part.problem("meta", "has no meaning for plain HTTP", "use header or argument");
    else if (!is_meta_name(key.name))
      part.problem("meta", "is no member name that can be used", "write one such as vendor/key");
  } else {
    key.place = KeyRule::Place::argument;
    if (key.name.empty())
      part.problem("argument", "leads to the arguments as a whole",
                   "name a member, such as /idempotency_key");
  }
}

void read_match_value(Section& part, Match& match) {
  const auto* equals = part.find("equals");
  const auto* differs = part.find("not");
  if (!equals == !differs) {
    part.problems().add(part.pointer(), "compares with nothing, or with two things",
                        "give exactly one of equals and not");
    return;
  }
  match.negate = differs != nullptr;
  const std::string text = json_text(differs ? *differs : *equals);
  if (const auto value = json::parse(text)) match.value = json::canonical(*value);
}

std::optional<Match> read_match(Section& section, const char* name) {
  auto part = read_section(section, name);
  if (!part) return std::nullopt;
  Match match;
  read_pointer(*part, "pointer", match.pointer);
  read_match_value(*part, match);
  part->finish();
  return match;
}

void read_check_args(Section& part, CheckRule& check) {
  check.args = "{}";
  const auto* args = part.find("args");
  if (!args) return;
  if (args->kind != Node::Kind::map) {
    part.problem("args", "is no map", "give the check's arguments by name");
    return;
  }
  check.args = json_text(*args);
  const auto references = run::references(check.args);
  const auto known = [](const run::Reference& r) {
    return r.step == "args" || (r.step == "key" && r.pointer.empty());
  };
  if (!references || !std::ranges::all_of(*references, known))
    part.problem("args", "holds a reference that can't be filled in",
                 "${key} and ${args/name} are known here; $${ is a literal ${");
}

std::optional<CheckRule> read_check(Section& tool, const std::string& server) {
  auto part = read_section(tool, "check");
  if (!part) return std::nullopt;
  CheckRule check;
  check.server = server;
  read_text(*part, "server", check.server);
  if (!read_text(*part, "tool", check.tool))
    part->problem("tool", "is missing", "name the read that can tell");
  read_check_args(*part, check);
  if (auto found = read_match(*part, "found"))
    check.found = *found;
  else
    part->problem("found", "is missing", "say what proves it, such as found: {pointer: /total, not: 0}");
  read_duration(*part, "settle", check.settle, Zero::means_none);
  read_duration(*part, "for", check.ask_for);
  part->finish();
  return check;
}

std::optional<FallbackRule> read_fallback(Section& tool, const ServerConfig& server) {
  auto part = read_section(tool, "fallback");
  if (!part) return std::nullopt;
  FallbackRule rule;
  const bool cached = given(*part, "cached"), fixed = given(*part, "static"), other = given(*part, "tool");
  if (cached + fixed + other != 1) {
    part->problems().add(part->pointer(), "names no single answer",
                         "give exactly one of cached, static and tool");
  } else if (cached) {
    rule.source = FallbackRule::Source::cached;
    auto inner = read_section(*part, "cached");
    if (!read_duration(*inner, "max_age", rule.max_age))
      inner->problem("max_age", "is missing", "say how old the answer may be, such as 24h");
    inner->finish();
  } else if (fixed) {
    rule.source = FallbackRule::Source::fixed;
    rule.value = json_text(*part->find("static"));
  } else {
    rule.source = FallbackRule::Source::tool;
    rule.server = server.name;
    auto inner = read_section(*part, "tool");
    read_text(*inner, "server", rule.server);
    if (!read_text(*inner, "tool", rule.tool))
      inner->problem("tool", "is missing", "name the tool that answers instead");
    inner->finish();
  }
  part->finish();
  return rule;
}

void read_errors(Section& tool, ErrorPatterns& patterns) {
  auto part = read_section(tool, "errors");
  if (!part) return;
  read_texts(*part, "business", patterns.business);
  read_texts(*part, "rate_limit", patterns.rate_limit);
  read_texts(*part, "ambiguous", patterns.ambiguous);
  part->finish();
}

void read_key(Section& tool, const ServerConfig& server, ToolPolicy& policy) {
  auto part = read_section(tool, "key");
  if (!part) return;
  policy.key.emplace();
  read_key_place(*part, server, *policy.key);
  read_duration(*part, "retention", policy.key->retention);
  part->finish();
}

}  // namespace

void read_tool_evidence(Section& tool, const ServerConfig& server, ToolPolicy& policy,
                        std::map<std::string, Source>& sources) {
  read_key(tool, server, policy);
  policy.check = read_check(tool, server.name);
  policy.success = read_match(tool, "success");
  policy.fallback = read_fallback(tool, server);
  read_errors(tool, policy.errors);
  for (const char* name : {"key", "check", "success", "fallback", "errors"}) {
    if (given(tool, name)) sources[name] = Source::tool;
  }
}

}  // namespace holdfast::tools::config
