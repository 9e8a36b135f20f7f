#pragma once
// What one attempt showed. A transport fills it in and judges nothing.
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/policy/words.h"

namespace holdfast {

/// How the exchange ended, when it did not end with a complete answer of the agreed kind.
enum class Failure {
  none,             // a complete answer: see `answer`
  dns_temporary,    // A2: name lookup failed for now or timed out
  dns_not_found,    // A3
  address_refused,  // the name resolves to an address that the server's settings forbid: no retry
  connect,          // A4: refused, unreachable, connect timeout
  local_resource,   // A5: descriptors or ports exhausted here
  proxy,            // A6
  proxy_auth,       // A6, 407
  tls_handshake,    // A7: reset or timeout
  tls_certificate,  // A8: certificate, name, version
  dead_connection,  // A9: write failed with no byte accepted
  process_start,    // A13: stdio child cannot start, or EPIPE with nothing written
  handshake,  // MCP connect (discover, initialize, list) failed or timed out before the call left: never sent
  bad_session,             // MCP handshake answered unusably (a session id with control bytes): never sent
  send_cut,                // B1: reset after part of the request
  connection_lost,         // B2, B3, B5: end of stream or reset before the answer's head was complete
  timeout,                 // our deadline ran out; `phase` says where
  cancelled,               // we gave up on the operator's or client's word
  bad_framing,             // B9: not HTTP, conflicting lengths, surplus bytes, answer to another id
  foreign,                 // B10: a web page where JSON was agreed
  tls_client_certificate,  // B8: alert decoded
  process_exit,            // B11: stdio child ended after the whole line was written
  stream_ended,            // B13: SSE stream ended without the result
  body_cut,                // C1: status seen, body truncated or reset
  body_unreadable,  // C2: status seen, body not readable as agreed (gzip, JSON, UTF-8, duplicate names)
  too_large,        // C3: over a size, depth or block limit
  session_lost,     // D4: the server refused the call because it forgot our MCP session
  redirect_limit,   // a read's sixth hop
  malformed_rpc,    // F15: unknown resultType, missing or duplicate id, both or neither of result and error,
                    // isError no boolean, 202 or 204 to a request
  not_listed,       // the MCP server does not list the tool: never sent
  crashed,          // B12: our own process ended while the attempt was out
};

/// What a complete answer was.
enum class Answer {
  none,
  http,        // plain HTTP: see http_status and body
  result,      // MCP: `result` without isError
  tool_error,  // MCP: isError or is_error true
  rpc_error,   // MCP: `error`, see rpc_code
};

struct Evidence {
  Phase phase = Phase::local;
  Failure failure = Failure::none;
  Answer answer = Answer::none;
  int http_status = 0;  // 0: none seen
  std::optional<std::int64_t> rpc_code;
  std::string
      result;        // the step's result as JSON text, as received; for a tool error the whole result object
  std::string text;  // the tool's own words (error message, text blocks, error body), at most 4 KiB
  std::string retry_after;  // the header's values joined by ", "
  std::string date;         // the answer's own Date header
  std::string location;     // of a redirect
  std::string detail;       // one sentence on what was seen, with numbers; never a secret, never a body
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  bool reused_connection = false;
  bool over_mcp = false;  // C rows: over MCP the verdict is inside the body
};

}  // namespace holdfast
