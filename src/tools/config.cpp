#include "holdfast/tools/config.h"

#include <algorithm>
#include <filesystem>

#include "config_parts.h"
#include "config_secrets.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/json.h"

namespace holdfast::tools {
namespace config {
namespace {

constexpr std::uint32_t kMostCount = 1'000'000;

Token read_token(Problems& problems, const Node& node, const std::string& pointer) {
  Section section(problems, node, pointer);
  Token token;
  std::string scope;
  if (!read_text(section, "name", token.name) || !is_name(token.name))
    section.problem("name", "is missing or no name", "1 to 128 of A-Z a-z 0-9 _ . - are allowed");
  read_text(section, "scope", scope);
  if (scope != "client" && scope != "operator")
    section.problem("scope", scope.empty() ? "is missing" : "`" + scope.substr(0, 40) + "` is no scope",
                    "write client or operator");
  token.scope = scope == "operator" ? Token::Scope::operate : Token::Scope::client;
  read_text(section, "sha256", token.sha256);
  for (auto& c : token.sha256) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  if (token.sha256.size() != 64 || token.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    section.problem("sha256", "is no SHA-256",
                    "64 hexadecimal digits are needed; `holdfast token create` prints them");
  section.finish();
  return token;
}

void read_auth(Section& root, Config& config) {
  auto auth = read_section(root, "auth");
  if (!auth) return;
  if (const auto* list = read_list(*auth, "tokens")) {
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const std::string pointer = auth->place("tokens") + "/" + std::to_string(i);
      const Token token = read_token(auth->problems(), list->items[i], pointer);
      const auto same = [&](const Token& other) {
        return other.name == token.name || other.sha256 == token.sha256;
      };
      if (std::ranges::any_of(config.tokens, same))
        auth->problems().add(pointer, "repeats the name or digest of another token",
                             "each token has a name and a digest of its own");
      config.tokens.push_back(token);
    }
  }
  auth->finish();
}

void read_limits(Section& root, Limits& limits) {
  auto section = read_section(root, "limits");
  if (!section) return;
  read_size(*section, "body_bytes", limits.body_bytes);
  read_size(*section, "result_bytes", limits.result_bytes);
  read_whole(*section, "json_depth", limits.json_depth, 1, 512);
  read_whole(*section, "connections", limits.connections, 1, 100'000);
  std::uint32_t each = 0;
  if (read_whole(*section, "connections_per_address", each, 1, 100'000)) limits.connections_per_address = each;
  read_whole(*section, "concurrent_calls", limits.concurrent_calls, 1, 100'000);
  section->finish();
}

void read_defaults(Section& root, Defaults& defaults) {
  auto section = read_section(root, "defaults");
  if (!section) return;
  read_deadline(*section, defaults.deadline, defaults.sized);
  read_whole(*section, "max_attempts", defaults.max_attempts, 1, 1000);
  read_duration(*section, "run_deadline", defaults.run_deadline);
  read_whole(*section, "retry_budget", defaults.retry_budget, 0, kMostCount);
  if (auto backoff = read_section(*section, "backoff")) read_backoff(*backoff, defaults.backoff);
  section->finish();
}

Rules default_rules(const Defaults& defaults) {
  Rules rules{
      .deadline = defaults.deadline, .sized = defaults.sized, .max_attempts = defaults.max_attempts, .backoff = defaults.backoff};
  for (const char* field : {"deadline", "max_attempts", "backoff", "breaker"})
    rules.sources[field] = Source::defaults;
  return rules;
}

/// Reads the file and puts the environment's values in.
Result<Node> load_document(const std::string& path, const Environment& env,
                           std::vector<std::string>& secrets) {
  const auto text = read_text(path);
  if (!text) return std::unexpected(text.error());
  auto document = parse_document(path, *text);
  if (!document) return document;
  Problems problems(path);
  expand_environment(*document, "", env, problems, secrets);
  if (problems.first()) return std::unexpected(*problems.first());
  return document;
}

Result<std::map<std::string, ServerConfig>> load_client_file(Section& root, Config& config,
                                                             const Environment& env) {
  std::string named;
  if (!read_text(root, "servers_from", named) || named.empty()) return {};
  const std::string path = (std::filesystem::path(config.path).parent_path() / named).string();
  const auto document = load_document(path, env, config.secrets);
  if (!document) return std::unexpected(document.error());
  Problems problems(path);
  auto imported = read_client_file(problems, *document);
  if (problems.first()) return std::unexpected(*problems.first());
  return imported;
}

void read_top(Section& root, Config& config) {
  read_text(root, "listen", config.listen);
  read_text(root, "admin_listen", config.admin_listen);
  if (std::string mode; read_text(root, "socket_mode", mode)) {
    if (mode != "0600" && mode != "0660")
      root.problem("socket_mode", "is neither \"0600\" nor \"0660\"", "0600 lets in the owner, 0660 the group as well");
    else
      config.socket_mode = mode == "0660" ? 0660 : 0600;
  }
  read_text(root, "database", config.database);
  read_duration(root, "shutdown_grace", config.shutdown_grace);
  if (Duration kept{}; read_duration(root, "retention", kept)) config.retention = kept;
  read_auth(root, config);
  read_limits(root, config.limits);
  read_defaults(root, config.defaults);
}

}  // namespace
}  // namespace config

std::string_view word(Source source) {
  switch (source) {
    case Source::tool:
      return "tool";
    case Source::server:
      return "server";
    case Source::defaults:
      return "defaults";
  }
  return "";
}

Result<Config> load_config(const std::string& path,
                           const std::function<const char*(const std::string&)>& env) {
  Config out;
  out.path = path;
  const auto document = config::load_document(path, env, out.secrets);
  if (!document) return std::unexpected(document.error());
  config::Problems problems(path);
  config::Section root(problems, *document, "");
  config::read_top(root, out);
  const auto imported = config::load_client_file(root, out, env);
  if (!imported) return std::unexpected(imported.error());
  config::read_servers(root, config::default_rules(out.defaults), *imported, out);
  root.finish();
  if (!problems.first()) config::cross_check(out, problems);
  if (problems.first()) {
    Error error = *problems.first();
    error.message = redact(std::move(error.message), out.secrets);
    return std::unexpected(std::move(error));
  }
  config::order_secrets(out.secrets);
  return out;
}

}  // namespace holdfast::tools
