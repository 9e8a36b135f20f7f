// Tools, the audit log, metrics and backups.
#include "api/cursor.h"
#include "api/metrics.h"
#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"

namespace holdfast::api {
namespace {

/// Every tool of the configuration, and the ones of live servers that were called without being named there.
std::vector<const tools::ToolConfig*> known_tools(const Service& service) {
  std::map<std::pair<std::string, std::string>, const tools::ToolConfig*> found;
  for (const auto& [server_name, server] : service.catalog.config().servers) {
    for (const auto& [tool_name, tool] : server.tools) found[{server_name, tool_name}] = &tool;
  }
  for (const auto& [server, tool] : service.latencies.tools()) {
    if (found.contains({server, tool})) continue;
    const tools::ToolConfig* config = service.catalog.find(server, tool);
    // The rules of unnamed tools are shared by all of a server's: only an entry that carries this name can be
    // shown under it.
    if (config && config->policy.tool == tool) found[{server, tool}] = config;
  }
  std::vector<const tools::ToolConfig*> out;
  for (const auto& [name, tool] : found) out.push_back(tool);
  return out;
}

http::Outcome list_tools(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {"limit", "cursor"}); !ok) return failure(ok.error());
  const auto all = known_tools(service);
  const auto part = slice(request, 't', all.size());
  if (!part) return failure(part.error());
  return json_response(
      render_page(part->end - part->begin, part->next_cursor, [&](json::Writer& w, std::size_t i) {
        const tools::ToolConfig& tool = *all[part->begin + i];
        const ToolPolicy& policy = tool.policy;
        render_tool(w, tool,
                    service.latencies.summary(policy.server, policy.tool, policy.kind(), service.clock.now()),
                    service.latencies.in_force(policy));
      }));
}

http::Outcome list_audit(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {"limit", "cursor"}); !ok) return failure(ok.error());
  const auto limit = read_limit(request);
  if (!limit) return failure(limit.error());
  std::int64_t before = 0;
  if (const auto cursor = request.query_value("cursor")) {
    const auto numbers = read_cursor('o', 1, *cursor);
    if (!numbers) return failure(numbers.error());
    before = numbers->front();
  }
  const auto entries = service.reader.audit(before, *limit);
  if (!entries) return failure(entries.error());
  const std::string next = entries->size() < *limit ? "" : make_cursor('o', {entries->back().seq});
  return json_response(render_page(entries->size(), next,
                                   [&](json::Writer& w, std::size_t i) { render_audit(w, (*entries)[i]); }));
}

http::Outcome show_metrics(const Service& service) {
  http::Response response = json_response(service.metrics.text());
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

http::Outcome make_backup(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {}); !ok) return failure(ok.error());
  const auto body = read_body(request, service.catalog.config().limits.json_depth);
  if (!body) return failure(body.error());
  if (auto ok = check_members((*body)->root, {"path"}); !ok) return failure(ok.error());
  const auto path = read_text((*body)->root, "path");
  if (!path) return failure(path.error());
  if (path->empty() || path->front() != '/') {
    return failure(
        Error{"bad_request", "path must be the absolute path of a file that does not exist yet", "/path"});
  }
  // Before the copy, so that a copy is never made without an entry.
  if (const auto noted = service.commands.note(who(request.identity), "backup", *path, ""); !noted)
    return failure(noted.error());
  if (const auto done = service.commands.backup(*path); !done) return failure(done.error());
  std::string out;
  json::Writer w(out);
  w.begin_object();
  w.field("path", *path);
  w.end_object();
  return json_response(std::move(out));
}

}  // namespace

void add_operator_routes(http::Server& server, const Service& service) {
  server.route("GET", "/v1/tools", http::Access::operate,
               [&service](http::Request& r) { return list_tools(service, r); });
  server.route("GET", "/v1/audit", http::Access::operate,
               [&service](http::Request& r) { return list_audit(service, r); });
  server.route("GET", "/metrics", http::Access::operate,
               [&service](http::Request&) { return show_metrics(service); });
  server.route("POST", "/v1/backup", http::Access::operate,
               [&service](http::Request& r) { return make_backup(service, r); });
}

}  // namespace holdfast::api
