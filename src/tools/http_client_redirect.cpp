#include "tools/http_client_redirect.h"

#include "tools/http_client_address.h"

namespace holdfast::tools {
namespace {

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void become_get(HttpRequest& request) {
  if (request.method != "HEAD") request.method = "GET";
  request.body.clear();
  request.has_body = false;
}

void forget_hop(Exchange& exchange) {
  exchange.earlier_sent += exchange.seen.sent;
  exchange.earlier_received += exchange.seen.received;
  exchange.seen = {};
  leave_socket(exchange);
  exchange.opened.clear();
}

}  // namespace

Hop follow(Exchange& exchange, const HttpOutcome& outcome) {
  HttpRequest& request = exchange.request;
  if (!request.follow_redirects || !is_redirect(outcome.status)) return Hop::none;
  const auto from = origin_of(request.url);
  const auto place = resolve_location(request.url, std::string(outcome.headers.get("location")));
  const auto to = place ? origin_of(*place) : std::nullopt;
  if (!from || !to) return Hop::none;
  const bool same = *from == *to;
  const bool keeps_body = outcome.status != 303 && (request.has_body || !request.body.empty());
  // Arguments in a body are no more for another origin than credentials are, and nothing goes from TLS into
  // the clear.
  if (!same && (keeps_body || (from->scheme == "https" && to->scheme == "http"))) return Hop::none;
  if (exchange.hop >= kMostHops) return Hop::limit;
  ++exchange.hop;
  if (outcome.status == 303) become_get(request);
  // An address in a Location is a server's word, not the configuration's: it is taken as meant only at the
  // same host.
  exchange.keep_literals = exchange.keep_literals && from->host == to->host;
  exchange.other_origin = exchange.other_origin || !same;
  request.url = *place;
  forget_hop(exchange);
  return Hop::next;
}

}  // namespace holdfast::tools
