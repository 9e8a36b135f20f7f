// What only the whole file can tell.
#include "config_parts.h"
#include "config_values.h"

namespace holdfast::tools::config {
namespace {

using Transport = ServerConfig::Transport;

struct Named {
  std::string place;  // of the field that names the tool
  std::string field;  // the word for the message: check, fallback, probe
  std::string server, tool;
};

std::vector<std::string_view> names(const auto& map) {
  std::vector<std::string_view> out;
  for (const auto& [name, value] : map) out.push_back(name);
  return out;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known,
                       const std::string& otherwise) {
  const auto near = nearest(name, known);
  return near.empty() ? otherwise : "did you mean `" + std::string(near) + "`?";
}

/// A tool that is called in place of or about another must be a read: declared as one, or a tool of an MCP
/// server that the file does not declare as a write.
void require_read(const Config& config, const Named& named, Problems& problems) {
  const auto server = config.servers.find(named.server);
  if (server == config.servers.end()) {
    problems.add(named.place + "/server",
                 named.field + " names the server `" + named.server + "`, which is not configured",
                 suggestion(named.server, names(config.servers), "name a server of this file"));
    return;
  }
  const auto& tools = server->second.tools;
  const auto tool = tools.find(named.tool);
  const bool mcp = server->second.transport != Transport::http;
  if (tool == tools.end()) {
    if (!mcp)
      problems.add(named.place + "/tool",
                   named.field + " names the tool `" + named.tool + "`, which server " + named.server +
                       " does not have",
                   suggestion(named.tool, names(tools), "declare it with effect: read"));
    return;
  }
  const auto& policy = tool->second.policy;
  const bool said = tool->second.sources.at("effect") == Source::tool;
  if (policy.effect == Effect::write && (said || !mcp))
    problems.add(named.place + "/tool",
                 named.field + " names the tool `" + named.tool + "`, which is a write",
                 "name a tool with effect: read");
}

void check_probe(const Config& config, const ServerConfig& server, Problems& problems) {
  if (server.probe_tool.empty()) return;
  const std::string place = server_place(server.name) + "/probe";
  require_read(config, {place, "probe", server.name, server.probe_tool}, problems);
  const auto tool = server.tools.find(server.probe_tool);
  if (tool != server.tools.end() && !tool->second.policy.path_arguments.empty())
    problems.add(place + "/tool", "probe names a tool whose path needs arguments",
                 "name a read that is called without any");
}

void check_fallback(const Config& config, const std::string& place, const ToolPolicy& policy,
                    Problems& problems) {
  if (!policy.fallback) return;
  if (policy.effect != Effect::read) {
    problems.add(place + "/fallback", "stands at a write, which might have happened",
                 "declare effect: read, or take the fallback out");
    return;
  }
  if (policy.fallback->source != FallbackRule::Source::tool) return;
  if (policy.fallback->server == policy.server && policy.fallback->tool == policy.tool)
    problems.add(place + "/fallback/tool/tool", "fallback names the tool itself", "name another tool");
  else
    require_read(config,
                 {place + "/fallback/tool", "fallback", policy.fallback->server, policy.fallback->tool},
                 problems);
}

void check_key(const std::string& place, const ServerConfig& server, const ToolConfig& tool,
               Problems& problems) {
  const auto& key = tool.policy.key;
  if (!key || key->place != KeyRule::Place::argument || server.transport != Transport::http) return;
  const auto& method = tool.request.method;
  const bool query = method == "GET" || method == "HEAD" || method == "DELETE";
  if (query && key->name.find('/', 1) != std::string::npos)
    problems.add(place + "/key/argument", "leads into a nested argument, which a query can't hold",
                 "name a member of the arguments, such as /idempotency_key");
}

void check_listener(const Config& config, const char* field, const std::string& address, Problems& problems) {
  const std::string place = std::string("/") + field;
  if (const auto fault = listen_fault(address); !fault.empty()) {
    problems.add(place, std::string(field) + " " + fault,
                 "write host:port, such as 127.0.0.1:4653 or [::1]:0, or unix:/run/holdfast/client.sock");
    return;
  }
  if (!is_loopback_listen(address) && config.tokens.empty())
    problems.add(place, std::string(field) + " is open to other machines and there is no token",
                 "add auth.tokens (holdfast token create), or listen on 127.0.0.1");
}

}  // namespace

void cross_check(const Config& config, Problems& problems) {
  check_listener(config, "listen", config.listen, problems);
  check_listener(config, "admin_listen", config.admin_listen, problems);
  for (const auto& [name, server] : config.servers) {
    check_probe(config, server, problems);
    for (const auto& [tool_name, tool] : server.tools) {
      const std::string place = tool_place(name, tool_name);
      if (tool.policy.check)
        require_read(config, {place + "/check", "check", tool.policy.check->server, tool.policy.check->tool},
                     problems);
      check_fallback(config, place, tool.policy, problems);
      check_key(place, server, tool, problems);
    }
  }
}

}  // namespace holdfast::tools::config
