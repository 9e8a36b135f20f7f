#pragma once
// The parts of the file, from the outside in: servers, their tools, and the rules of one tool.
#include <map>
#include <optional>
#include <string>

#include "config_reader.h"
#include "holdfast/tools/config.h"

namespace holdfast::tools::config {

/// The rules that a tool takes from its server and a server from the defaults, with where each came from.
struct Rules {
  Duration deadline{3'000};
  std::optional<AutoDeadline> sized;  // then `deadline` is its ceiling
  std::uint32_t max_attempts = 3;
  Backoff backoff;
  BreakerRule breaker;
  std::map<std::string, Source> sources;
};

/// Overrides `rules` by what `section` gives: deadline, max_attempts, backoff and breaker, field by field.
void read_rules(Section& section, Source source, Rules& rules);
void read_backoff(Section& section, Backoff& backoff);
/// A duration, or `{auto: {…}}`, whose fields replace those of the rule that held before. True when given.
bool read_deadline(Section& section, Duration& deadline, std::optional<AutoDeadline>& sized);

/// One tool of a server; `rules` are the server's.
[[nodiscard]] ToolConfig read_tool(Problems& problems, const Node& node, const std::string& pointer,
                                   const ServerConfig& server, const std::string& name, const Rules& rules);
/// The rules of a tool that nobody described: a plain write.
[[nodiscard]] ToolConfig unnamed_tool(const ServerConfig& server, const Rules& rules);

/// `key`, `check`, `fallback`, `success` and `errors` of a tool.
void read_tool_evidence(Section& tool, const ServerConfig& server, ToolPolicy& policy,
                        std::map<std::string, Source>& sources);

/// `servers`, and with them what an MCP client's file says.
void read_servers(Section& root, const Rules& rules, const std::map<std::string, ServerConfig>& imported,
                  Config& config);
/// The `mcpServers` object of an MCP client's configuration: name to transport. Only transports are read.
[[nodiscard]] std::map<std::string, ServerConfig> read_client_file(Problems& problems, const Node& document);

/// What only the whole file can tell: tools named by checks, fallbacks and probes; listeners without tokens.
void cross_check(const Config& config, Problems& problems);

/// A pointer to a field of a tool or server, for cross_check.
[[nodiscard]] std::string server_place(const std::string& server);
[[nodiscard]] std::string tool_place(const std::string& server, const std::string& tool);

}  // namespace holdfast::tools::config
