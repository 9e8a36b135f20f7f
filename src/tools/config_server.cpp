
#include "config_parts.h"
#include "config_values.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/json.h"

namespace holdfast::tools::config {
namespace {

using Transport = ServerConfig::Transport;

void read_url(Section& part, const char* name, bool query_allowed, std::string& out) {
  if (!read_text(part, name, out)) {
    part.problem(name, "is missing", "give a URL such as http://127.0.0.1:9001/mcp");
    return;
  }
  if (const auto fault = url_fault(out, query_allowed); !fault.empty())
    part.problem(name, fault, "give a URL such as http://127.0.0.1:9001/mcp");
  if (out.size() > 1 && out.ends_with('/') && !query_allowed) out.pop_back();
}

void check_environment(Section& part, const std::vector<std::pair<std::string, std::string>>& environment) {
  for (const auto& [name, value] : environment) {
    const bool usable = !name.empty() &&
                        name.find_first_of(std::string_view("=\0", 2)) == std::string::npos &&
                        value.find('\0') == std::string::npos;
    if (!usable)
      part.problem("env", "holds a name or value that no process can be given", "names are words without =");
  }
}

void read_command(Section& part, ServerConfig& server) {
  server.transport = Transport::mcp_stdio;
  read_texts(part, "command", server.command);
  if (server.command.empty())
    part.problem("command", "is empty", "give the program and its arguments as a list");
  read_pairs(part, "env", server.environment);
  check_environment(part, server.environment);
}

void read_mcp(Section& part, ServerConfig& server) {
  const bool url = part.find("url") != nullptr, command = part.find("command") != nullptr;
  if (url == command) {
    part.problems().add(part.pointer(), "names no single way to reach the server",
                        "give exactly one of url and command");
  } else if (url) {
    server.transport = Transport::mcp_http;
    read_url(part, "url", true, server.url);
    if (part.find("env"))
      part.problem("env", "has no meaning for a URL", "env belongs to a command; take it out");
  } else {
    read_command(part, server);
  }
  part.finish();
}

void read_transport(Section& section, const ServerConfig* imported, ServerConfig& server) {
  auto http = read_section(section, "http");
  auto mcp = read_section(section, "mcp");
  const int ways = (http ? 1 : 0) + (mcp ? 1 : 0) + (imported ? 1 : 0);
  if (ways != 1) {
    const std::string all = imported ? "http, mcp and servers_from" : "http and mcp";
    section.problems().add(section.pointer(), ways == 0 ? "has no transport" : "has more than one transport",
                           "server " + server.name + " needs exactly one of " + all);
    return;
  }
  if (mcp) {
    read_mcp(*mcp, server);
  } else if (http) {
    server.transport = Transport::http;
    read_url(*http, "base_url", false, server.url);
    http->finish();
  } else {
    server.transport = imported->transport;
    server.url = imported->url;
    server.command = imported->command;
    server.environment = imported->environment;
    server.headers = imported->headers;
  }
}

void read_headers(Section& section, ServerConfig& server) {
  if (!read_pairs(section, "headers", server.headers)) return;
  if (server.transport == Transport::mcp_stdio && !server.headers.empty())
    section.problem("headers", "have no meaning over stdio", "give a secret to a command by env");
  for (const auto& [name, value] : server.headers) {
    if (!is_token(name) || is_reserved_header(name))
      section.problem("headers", "`" + name.substr(0, 80) + "` is no header name that can be set",
                      "names are words such as Authorization");
    else if (!is_header_value(value))
      section.problem("headers", "the value of " + name + " holds a control character",
                      "a header's value is one line of text");
  }
}

ServerConfig read_server(Problems& problems, const Node& node, const std::string& name, const Rules& defaults,
                         const ServerConfig* imported) {
  Section section(problems, node, server_place(name));
  ServerConfig server;
  server.name = name;
  read_transport(section, imported, server);
  read_headers(section, server);
  read_whole(section, "max_in_flight", server.max_in_flight, 1, 1'000'000);
  read_flag(section, "allow_private", server.allow_private);
  read_flag(section, "trust_annotations", server.trust_annotations);
  Rules rules = defaults;
  read_rules(section, Source::server, rules);
  server.breaker = rules.breaker;
  if (auto probe = read_section(section, "probe")) {
    if (!read_text(*probe, "tool", server.probe_tool))
      probe->problem("tool", "is missing", "name a read tool of this server");
    probe->finish();
  }
  server.fallback_tool = unnamed_tool(server, rules);
  server.fallback_tool.policy.declared = false;
  if (auto tools = read_section(section, "tools")) {
    for (const auto& [tool, described] : tools->members()) {
      if (!is_name(tool))
        tools->problem(tool, "is no tool name", "1 to 128 of A-Z a-z 0-9 _ . - are allowed");
      server.tools[tool] = read_tool(problems, described, tool_place(name, tool), server, tool, rules);
    }
  }
  section.finish();
  return server;
}

}  // namespace

std::string server_place(const std::string& server) {
  return "/servers/" + json::escape_token(server);
}

std::string tool_place(const std::string& server, const std::string& tool) {
  return server_place(server) + "/tools/" + json::escape_token(tool);
}

void read_servers(Section& root, const Rules& rules, const std::map<std::string, ServerConfig>& imported,
                  Config& config) {
  const Node nothing;
  auto servers = read_section(root, "servers");
  if (servers) {
    for (const auto& [name, node] : servers->members()) {
      if (!is_name(name))
        servers->problem(name, "is no server name", "1 to 128 of A-Z a-z 0-9 _ . - are allowed");
      const auto found = imported.find(name);
      config.servers[name] =
          read_server(root.problems(), node, name, rules, found == imported.end() ? nullptr : &found->second);
    }
  }
  for (const auto& [name, server] : imported) {
    if (!config.servers.contains(name))
      config.servers[name] = read_server(root.problems(), nothing, name, rules, &server);
  }
}

namespace {

/// One entry of an MCP client's file. Other programs' fields are left alone, except where ignoring them would
/// call something else than the entry means.
void read_client_entry(Section& entry, ServerConfig& server) {
  const bool command = entry.find("command") != nullptr, url = entry.find("url") != nullptr;
  if (command == url) {
    entry.problems().add(entry.pointer(), "names no single way to reach the server",
                         "an entry has exactly one of command and url");
    return;
  }
  if (entry.find("cwd"))
    entry.problem("cwd", "is not supported", "name the folder in args, or start the program by a script");
  if (url) {
    std::string type;
    if (read_text(entry, "type", type) && type == "sse")
      entry.problem("type", "the sse transport is not supported",
                    "use the server's streamable HTTP endpoint");
    server.transport = Transport::mcp_http;
    read_url(entry, "url", true, server.url);
    read_headers(entry, server);
    return;
  }
  server.transport = Transport::mcp_stdio;
  std::string program;
  std::vector<std::string> args;
  read_text(entry, "command", program);
  if (const auto* list = read_list(entry, "args")) {
    for (const auto& item : list->items) {
      if (item.kind != Node::Kind::scalar)
        entry.problem("args", "holds something that is no text", "arguments are texts");
      args.push_back(item.text);
    }
  }
  server.command.push_back(program);
  server.command.insert(server.command.end(), args.begin(), args.end());
  read_pairs(entry, "env", server.environment);
  check_environment(entry, server.environment);
}

}  // namespace

std::map<std::string, ServerConfig> read_client_file(Problems& problems, const Node& document) {
  std::map<std::string, ServerConfig> imported;
  Section root(problems, document, "");
  auto servers = read_section(root, "mcpServers");
  if (!servers) {
    root.problem("mcpServers", "is missing", "the configuration of an MCP client has an mcpServers object");
    return imported;
  }
  for (const auto& [name, node] : servers->members()) {
    Section entry(problems, node, servers->place(name));
    bool disabled = false;
    read_flag(entry, "disabled", disabled);
    if (disabled) continue;
    if (!is_name(name))
      servers->problem(name, "is no server name", "1 to 128 of A-Z a-z 0-9 _ . - are allowed");
    imported[name].name = name;
    read_client_entry(entry, imported[name]);
  }
  return imported;
}

}  // namespace holdfast::tools::config
