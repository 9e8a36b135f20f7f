#pragma once
// holdfast.yaml, read, checked and with every default filled in.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/time.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast::tools {

struct Token {
  std::string name;
  enum class Scope { client, operate } scope = Scope::client;  // `operate` is spelled "operator"
  std::string sha256;                                          // lower-case hex
};

struct Limits {
  std::uint64_t body_bytes = 1 << 20;
  std::uint64_t result_bytes = 8 << 20;
  std::uint32_t json_depth = 64;
  std::uint32_t connections = 1024;
  std::optional<std::uint32_t> connections_per_address;  // nullopt: a quarter of them, and no cap for this machine
  std::uint32_t concurrent_calls = 256;
};

struct Defaults {
  Duration deadline{3'000};
  std::optional<AutoDeadline> sized;  // then `deadline` is its ceiling
  std::uint32_t max_attempts = 3;
  Backoff backoff;
  Duration run_deadline{15 * 60'000};
  std::uint32_t retry_budget = 20;
};

struct RequestTemplate {  // plain HTTP tools
  std::string method = "POST";
  std::string path;  // "/customers/{customer}/charges"
};

/// Where an effective value came from, for `holdfast check` and GET /v1/tools.
enum class Source { tool, server, defaults };
[[nodiscard]] std::string_view word(Source);

struct ToolConfig {
  ToolPolicy policy;
  RequestTemplate request;
  std::map<std::string, Source> sources;  // by field: deadline, max_attempts, backoff, breaker, effect, …
};

struct ServerConfig {
  std::string name;
  enum class Transport { http, mcp_http, mcp_stdio } transport = Transport::http;
  std::string url;                                               // base_url, or the MCP endpoint
  std::vector<std::string> command;                              // stdio
  std::vector<std::pair<std::string, std::string>> environment;  // stdio, resolved
  std::vector<std::pair<std::string, std::string>> headers;      // resolved: may hold secrets
  std::uint32_t max_in_flight = 0;                               // 0: only limits.concurrent_calls
  bool allow_private = false;
  bool trust_annotations = false;
  std::string probe_tool;
  BreakerRule breaker;  // the server's own
  std::map<std::string, ToolConfig> tools;
  ToolConfig fallback_tool;  // the rules of a tool that the file does not name (MCP only): a plain write
};

struct Config {
  std::string path;
  std::string listen = "127.0.0.1:4653";
  std::string admin_listen = "127.0.0.1:4654";
  unsigned socket_mode = 0600;  // of a listener's unix socket
  std::string database = "holdfast.db";  // absolute, or relative to the working directory
  Duration shutdown_grace{10'000};
  std::optional<Duration> retention;  // how long a settled run is kept; nullopt: for ever
  std::vector<Token> tokens;
  Limits limits;
  Defaults defaults;
  std::map<std::string, ServerConfig> servers;
  std::vector<std::string> secrets;  // every value that came from ${env:…}, for redaction; longest first
};

/// Reads YAML or JSON. `env` looks up environment variables (nullptr: not set). Every error names the file,
/// the place as a JSON pointer, what is wrong and what would be right (unknown fields: the nearest known
/// one). Nothing is half-accepted.
[[nodiscard]] Result<Config> load_config(const std::string& path,
                                         const std::function<const char*(const std::string&)>& env);

/// Both name the same server, reached in the same way: a connection to the one is good for the other.
[[nodiscard]] bool same_connection(const ServerConfig& a, const ServerConfig& b);

/// What `holdfast check` prints: every effective value with its source; secrets as `***`.
[[nodiscard]] std::string describe(const Config& config);

/// What differs between two configurations, by name and without values: `retention`, `auth.tokens.ops`,
/// `crm.search.deadline`; ` added` or ` removed` stands behind what only one of them has. In order; at most 200, and then how
/// many more.
[[nodiscard]] std::vector<std::string> differences(const Config& before, const Config& after);

/// Replaces every configured secret in `text` by `***`. Secrets shorter than 4 bytes are left alone.
[[nodiscard]] std::string redact(std::string text, const std::vector<std::string>& secrets);

}  // namespace holdfast::tools
