#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"

namespace holdfast::api {
namespace {

http::Outcome list_breakers(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {"limit", "cursor"}); !ok) return failure(ok.error());
  const auto breakers = service.reader.breakers();
  if (!breakers) return failure(breakers.error());
  const auto part = slice(request, 'b', breakers->size());
  if (!part) return failure(part.error());
  return json_response(
      render_page(part->end - part->begin, part->next_cursor,
                  [&](json::Writer& w, std::size_t i) { render_breaker(w, (*breakers)[part->begin + i]); }));
}

http::Outcome force(const Service& service, const http::Request& request, bool open) {
  if (auto ok = check_query(request, {}); !ok) return failure(ok.error());
  const auto body = read_body(request, service.catalog.config().limits.json_depth);
  if (!body) return failure(body.error());
  const json::Value& root = (*body)->root;
  const auto members = open ? check_members(root, {"reason", "for"}) : check_members(root, {"reason"});
  if (!members) return failure(members.error());
  auto reason = read_text(root, "reason");
  if (!reason) return failure(reason.error());
  if (reason->find_first_not_of(" \t\r\n") == std::string::npos) {
    return failure(Error{"reason_required", "reason must say why the circuit is forced", "/reason"});
  }
  const auto span = read_duration(root, "for");
  if (!span) return failure(span.error());
  const auto tool = request.parameters.find("tool");
  const auto breaker = service.commands.force_breaker(request.parameters.at("server"),
                                                      tool == request.parameters.end() ? "" : tool->second,
                                                      open, who(request.identity), std::move(*reason), *span);
  if (!breaker) return failure(breaker.error());
  std::string out;
  json::Writer w(out);
  render_breaker(w, *breaker);
  return json_response(std::move(out));
}

}  // namespace

void add_breaker_routes(http::Server& server, const Service& service) {
  const auto opens = [&service](http::Request& r) { return force(service, r, true); };
  const auto closes = [&service](http::Request& r) { return force(service, r, false); };
  server.route("GET", "/v1/breakers", http::Access::operate,
               [&service](http::Request& r) { return list_breakers(service, r); });
  server.route("POST", "/v1/breakers/{server}/open", http::Access::operate, opens);
  server.route("POST", "/v1/breakers/{server}/close", http::Access::operate, closes);
  server.route("POST", "/v1/breakers/{server}/{tool}/open", http::Access::operate, opens);
  server.route("POST", "/v1/breakers/{server}/{tool}/close", http::Access::operate, closes);
}

}  // namespace holdfast::api
