// What `holdfast check` prints.
#include <algorithm>
#include <charconv>

#include "holdfast/core/json.h"
#include "holdfast/policy/sized_deadline.h"
#include "holdfast/tools/config.h"

namespace holdfast::tools {
namespace {

using Transport = ServerConfig::Transport;

void line(std::string& out, std::string_view subject, std::string_view field, std::string_view value,
          std::string_view source = {}) {
  out += subject;
  out += "  ";
  out += field;
  out += "  ";
  out += value;
  if (!source.empty()) out.append("  (").append(source).append(")");
  out += '\n';
}

std::string yes_no(bool value) {
  return value ? "true" : "false";
}

std::string decimal(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string joined(const auto& list) {
  std::string out = "[";
  for (const auto& item : list) {
    if (out.size() > 1) out += ", ";
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(item)>>)
      out += std::to_string(item);
    else
      json::append_quoted(out, item);
  }
  return out + "]";
}

std::string duration_or_none(Duration d) {
  return d.count() == 0 ? "none" : format_duration(d);
}

std::string shown(Duration deadline, const std::optional<AutoDeadline>& sized, Kind kind) {
  if (!sized) return format_duration(deadline);
  return "auto: p" + decimal(sized->percentile) + " times " + decimal(sized->factor) + ", from " +
         format_duration(sized->floor) + " to " + format_duration(sized->ceiling) + "; " +
         format_duration(sized->ceiling) + " until " + std::to_string(samples_needed(*sized, kind)) +
         " calls are measured" + (kind == Kind::plain ? "; a plain write, so twice that and p99 at least" : "");
}

std::string shown(const Match& match) {
  return match.pointer + (match.negate ? " is not " : " equals ") + match.value;
}

std::string shown(const KeyRule& key) {
  const char* place = key.place == KeyRule::Place::header ? "header "
                      : key.place == KeyRule::Place::meta ? "meta "
                                                          : "argument ";
  return place + key.name + ", kept " + format_duration(key.retention);
}

std::string shown(const CheckRule& check) {
  return check.server + "." + check.tool + " " + check.args + ", found when " + shown(check.found) +
         ", settle " + duration_or_none(check.settle) + ", for " + format_duration(check.ask_for);
}

std::string shown(const FallbackRule& fallback) {
  switch (fallback.source) {
    case FallbackRule::Source::cached:
      return "last good answer, up to " + format_duration(fallback.max_age) + " old";
    case FallbackRule::Source::fixed:
      return "static " + fallback.value;
    case FallbackRule::Source::tool:
      return "tool " + fallback.server + "." + fallback.tool;
  }
  return "";
}

std::string_view source_of(const ToolConfig& tool, const std::string& field) {
  const auto found = tool.sources.find(field);
  return word(found == tool.sources.end() ? Source::defaults : found->second);
}

/// A part of the breaker that nobody set comes from the defaults, also where another part was set.
std::string_view breaker_source(const ToolConfig& tool, const std::string& part) {
  const auto found = tool.sources.find("breaker." + part);
  return word(found == tool.sources.end() ? Source::defaults : found->second);
}

void describe_breaker(std::string& out, const std::string& name, const ToolConfig& tool) {
  const BreakerRule& rule = tool.policy.breaker;
  const auto put = [&](const char* part, const std::string& value) {
    line(out, name, std::string("breaker.") + part, value, breaker_source(tool, part));
  };
  put("enabled", yes_no(rule.enabled));
  put("consecutive_failures", std::to_string(rule.consecutive_failures));
  put("failure_rate", decimal(rule.failure_rate));
  put("min_calls", std::to_string(rule.min_calls));
  put("window", format_duration(rule.window));
  put("cooldown", format_duration(rule.cooldown));
  put("max_cooldown", format_duration(rule.max_cooldown));
}

void describe_tool(std::string& out, const std::string& name, const ServerConfig& server,
                   const ToolConfig& tool) {
  const ToolPolicy& policy = tool.policy;
  const auto put = [&](const char* field, const std::string& value) {
    line(out, name, field, value, source_of(tool, field));
  };
  put("effect", std::string(word(policy.effect)));
  put("kind", std::string(word(policy.kind())));
  if (server.transport == Transport::http) put("request", tool.request.method + " " + tool.request.path);
  put("deadline", shown(policy.deadline, policy.sized, policy.kind()));
  put("max_attempts", std::to_string(policy.max_attempts));
  put("backoff",
      "base " + format_duration(policy.backoff.base) + ", cap " + format_duration(policy.backoff.cap));
  put("target", policy.target.empty() ? server.name + "/" + (policy.tool.empty() ? "<tool>" : policy.tool)
                                      : policy.target);
  put("key", policy.key ? shown(*policy.key) : "none");
  put("check", policy.check ? shown(*policy.check) : "none");
  put("fallback", policy.fallback ? shown(*policy.fallback) : "none");
  put("success", policy.success ? shown(*policy.success) : "none");
  put("refusals", joined(policy.refusals));
  put("errors", "business " + joined(policy.errors.business) + ", rate_limit " +
                    joined(policy.errors.rate_limit) + ", ambiguous " + joined(policy.errors.ambiguous));
  put("single_step", yes_no(policy.single_step));
  put("linger", duration_or_none(policy.linger));
  describe_breaker(out, name, tool);
}

void describe_server(std::string& out, const ServerConfig& server) {
  const std::string& name = server.name;
  if (server.transport == Transport::mcp_stdio)
    line(out, name, "mcp.command", joined(server.command));
  else
    line(out, name, server.transport == Transport::http ? "http.base_url" : "mcp.url", server.url);
  for (const auto& [variable, value] : server.environment) line(out, name, "mcp.env." + variable, "***");
  for (const auto& [header, value] : server.headers) line(out, name, "headers." + header, "***");
  line(out, name, "max_in_flight",
       server.max_in_flight == 0 ? "limits.concurrent_calls" : std::to_string(server.max_in_flight));
  line(out, name, "allow_private", yes_no(server.allow_private));
  line(out, name, "trust_annotations", yes_no(server.trust_annotations));
  line(out, name, "probe", server.probe_tool.empty() ? "none" : server.probe_tool);
  for (const auto& [tool_name, tool] : server.tools) describe_tool(out, name + "." + tool_name, server, tool);
  if (server.transport != Transport::http) describe_tool(out, name + ".*", server, server.fallback_tool);
}

void describe_top(std::string& out, const Config& config) {
  line(out, "holdfast", "listen", config.listen);
  line(out, "holdfast", "admin_listen", config.admin_listen);
  line(out, "holdfast", "socket_mode", config.socket_mode == 0660 ? "0660" : "0600");
  line(out, "holdfast", "database", config.database);
  line(out, "holdfast", "shutdown_grace", format_duration(config.shutdown_grace));
  line(out, "holdfast", "retention", config.retention ? format_duration(*config.retention) : "for ever");
  for (const auto& token : config.tokens)
    line(out, "auth", "token",
         token.name + " " + (token.scope == Token::Scope::operate ? "operator" : "client"));
  line(out, "limits", "body_bytes", std::to_string(config.limits.body_bytes));
  line(out, "limits", "result_bytes", std::to_string(config.limits.result_bytes));
  line(out, "limits", "json_depth", std::to_string(config.limits.json_depth));
  line(out, "limits", "connections", std::to_string(config.limits.connections));
  const auto each = config.limits.connections_per_address;
  line(out, "limits", "connections_per_address",
       each ? std::to_string(*each)
            : std::to_string(std::max(1U, config.limits.connections / 4)) + ", from this machine no cap");
  line(out, "limits", "concurrent_calls", std::to_string(config.limits.concurrent_calls));
  const Defaults& defaults = config.defaults;
  line(out, "defaults", "deadline", shown(defaults.deadline, defaults.sized, Kind::read));
  line(out, "defaults", "max_attempts", std::to_string(defaults.max_attempts));
  line(out, "defaults", "backoff",
       "base " + format_duration(defaults.backoff.base) + ", cap " + format_duration(defaults.backoff.cap));
  line(out, "defaults", "run_deadline", format_duration(defaults.run_deadline));
  line(out, "defaults", "retry_budget", std::to_string(defaults.retry_budget));
}

}  // namespace

std::string describe(const Config& config) {
  std::string out;
  describe_top(out, config);
  for (const auto& [name, server] : config.servers) describe_server(out, server);
  return redact(std::move(out), config.secrets);
}

}  // namespace holdfast::tools
