// The head of a tool's answer, line by line as libcurl hands it on, and the requests that follow from it: in a session, resuming a stream, and where a
// Location leads. The first byte says what was asked.
#include "fuzz.h"
#include "holdfast/policy/retry.h"
#include "tools/http_client_address.h"
#include "tools/http_client_callbacks.h"
#include "tools/http_client_redirect.h"
#include "tools/http_tools.h"
#include "tools/mcp/http_messages.h"

using namespace holdfast;

namespace {

constexpr std::string_view kSecret = "secret-of-ours";
constexpr std::size_t kMostHeadBytes = 2048;
constexpr std::uint8_t kOverTls = 1, kWithBody = 2;

struct Host final : tools::ExchangeHost {
  void stopped(tools::Exchange&) override {}
};

std::size_t bytes_of(const tools::HttpHeaders& headers) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : headers.list) bytes += name.size() + value.size();
  return bytes;
}

/// As libcurl does it: a line at a time, with its end. False when the exchange was ended.
bool take_head(tools::Exchange& exchange, std::string_view text) {
  while (!text.empty()) {
    std::string line(text.substr(0, text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1));
    text.remove_prefix(line.size());
    if (tools::on_header(line.data(), 1, line.size(), &exchange) != line.size()) return false;
  }
  return true;
}

/// What leaves, a line each: nothing ends a line early or adds one.
void check_lines(const tools::Exchange& exchange, std::size_t fewest, std::size_t most) {
  HOLDS(exchange.header_nodes.size() >= fewest && exchange.header_nodes.size() <= most);
  for (const curl_slist& node : exchange.header_nodes) HOLDS(!tools::has_control_bytes(node.data));
}

void check_leaves(tools::Exchange& exchange, tools::HttpRequest request) {
  tools::reset(exchange);
  const std::size_t lines = request.headers.size();
  exchange.request = std::move(request);
  HOLDS(!tools::prepare(exchange, Duration{1'000}));
  check_lines(exchange, lines, lines + 3);
}

void check_later_requests(tools::Exchange& exchange, const tools::HttpHeaders& headers) {
  tools::ServerConfig server;
  server.url = "https://tool.example/mcp";
  server.headers.emplace_back("Authorization", kSecret);
  tools::mcp::Protocol protocol{tools::mcp::Era::legacy, "2025-11-25", headers.all("mcp-session-id")};
  if (!tools::mcp::is_session_id(protocol.session)) protocol.session.clear();
  HOLDS(protocol.session.size() <= 1024);
  check_leaves(exchange, tools::mcp::post_request(server, protocol, "tools/call", "tool", "{}"));
  const std::string_view event = headers.get("last-event-id");
  if (tools::mcp::is_event_id(event)) check_leaves(exchange, tools::mcp::resume_request(server, protocol, event));
}

/// Where the answer leads: never into the clear, never with what is configured for another place, never for long.
void check_redirects(tools::Exchange& exchange, const tools::HttpRequest& request, const tools::HttpOutcome& outcome) {
  tools::reset(exchange);
  exchange.request = request;
  const auto from = tools::origin_of(request.url);
  bool left = false;
  int hops = 0;
  while (tools::follow(exchange, outcome) == tools::Hop::next) {
    HOLDS(++hops <= tools::kMostHops);
    const auto to = tools::origin_of(exchange.request.url);
    HOLDS(to && (to->scheme == "https" || (to->scheme == "http" && from->scheme == "http")));
    left |= *to != *from;
    HOLDS(!left || exchange.request.body.empty());
    if (tools::prepare(exchange, Duration{1'000})) return;  // it is not sent
    check_lines(exchange, 1, request.headers.size() + 3);
    for (const curl_slist& node : exchange.header_nodes) HOLDS(!left || std::string_view(node.data).find(kSecret) == std::string_view::npos);
  }
}

void check_evidence(const Evidence& evidence) {
  HOLDS(evidence.retry_after.size() <= 2 * kMostHeadBytes && evidence.location.size() <= kMostHeadBytes);
  for (const Instant now : {Instant{0}, Instant{1'788'955'200'200}})
    if (const auto wait = retry_after_wait(evidence.retry_after, evidence.date, now)) HOLDS(wait->count() > 0 && *wait <= kLongestDuration);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static Host host;
  static tools::Exchange exchange(host);
  tools::reset(exchange);
  tools::HttpRequest request;
  request.url = (data[0] & kOverTls) ? "https://tool.example/v1/notes?page=2" : "http://tool.example/v1/notes?page=2";
  request.method = (data[0] & kWithBody) ? "POST" : "GET";
  if (data[0] & kWithBody) request.body = "{}";
  request.headers = {{"Authorization", std::string(kSecret)}, {"Accept", "application/json"}};
  request.follow_redirects = true;
  request.max_header_bytes = kMostHeadBytes;
  exchange.request = request;
  HOLDS(!tools::prepare(exchange, Duration{1'000}));

  const bool taken = take_head(exchange, fuzz::text_of(data + 1, size - 1));
  HOLDS(bytes_of(exchange.seen.headers) <= kMostHeadBytes);
  HOLDS(taken || exchange.seen.too_large || exchange.seen.bad_framing);
  HOLDS(exchange.seen.body.capacity() <= request.max_body_bytes);
  if (!taken || !exchange.seen.head_complete) return 0;

  tools::HttpOutcome outcome;
  outcome.phase = Phase::rx_all;
  outcome.status = exchange.seen.status;
  outcome.headers = exchange.seen.headers;
  outcome.body = R"({"jsonrpc":"2.0","id":7,"result":{"content":[]}})";
  check_evidence(tools::mcp::judge(outcome, 7, {}));
  check_evidence(tools::read_http_answer(outcome, {}, {std::string(kSecret)}));
  check_later_requests(exchange, outcome.headers);
  check_redirects(exchange, request, outcome);
  return 0;
}
