#include <array>

#include "holdfast/policy/classify.h"

namespace holdfast {
namespace {

// The letters of docs/policy.md, so that a row here reads like a row there.
constexpr auto N = Verdict::not_sent;
constexpr auto R = Verdict::refused;
constexpr auto A = Verdict::ambiguous;
constexpr auto H = Verdict::landed;
constexpr auto OK = Verdict::ok;

constexpr auto DONE = Action::done;
constexpr auto RT = Action::retry;
constexpr auto RT1 = Action::retry_once;
constexpr auto RS = Action::resend;
constexpr auto RS1 = Action::resend_once;
constexpr auto WAIT = Action::wait_once;
constexpr auto WRS = Action::wait_resend;
constexpr auto PB = Action::check;
constexpr auto UNK = Action::unknown;
constexpr auto STOP = Action::stop;
constexpr auto LOST = Action::result_lost;
constexpr auto LARGE = Action::result_too_large;
constexpr auto REPAIR = Action::repair_session;

constexpr Strikes none{};
constexpr Strikes S{.server = true};
constexpr Strikes T{.tool = true};
constexpr Strikes G{.gate = true};
constexpr Strikes ST{.server = true, .tool = true};
constexpr Strikes GT{.tool = true, .gate = true};

using C = AttemptClass;
using F = Reason;

// clang-format off
constexpr std::array kRows{
  // A. Before or at the first byte
  Row{"A1", "local refusal: tool not listed, argument invalid, cancelled before the first byte", N, STOP, STOP, STOP, STOP, none, C::connect, F::none, F::none},
  Row{"A2", "name lookup failed for now or timed out", N, RT, RT, RT, RT, S, C::dns, F::none, F::none},
  Row{"A3", "name does not exist", N, RT1, RT1, RT1, RT1, S, C::dns, F::unreachable, F::none},
  Row{"A4", "connection refused, host or network unreachable, connect timeout, MCP handshake failed", N, RT, RT, RT, RT, S, C::connect, F::none, F::none},
  Row{"A5", "no descriptors or ports left here", N, RT, RT, RT, RT, none, C::connect, F::none, F::none},
  Row{"A6", "proxy refused or timed out (407: stop)", N, RT, RT, RT, RT, S, C::connect, F::unreachable, F::none},
  Row{"A7", "TLS handshake reset or timed out", N, RT, RT, RT, RT, S, C::tls, F::none, F::none},
  Row{"A8", "TLS certificate, name or version error; address refused by the settings", N, STOP, STOP, STOP, STOP, S, C::tls, F::unreachable, F::none},
  Row{"A9", "write failed with no byte accepted", N, RT, RT, RT, RT, none, C::reset, F::none, F::none},
  Row{"A10", "HTTP/2 or HTTP/3: stream refused or never opened", N, RT, RT, RT, RT, none, C::reset, F::none, F::none},
  Row{"A11", "HTTP/2: HTTP_1_1_REQUIRED", R, RT1, RT1, RT1, RT1, none, C::reset, F::tool_refused, F::none},
  Row{"A13", "stdio process cannot start, or its pipe broke with nothing written", N, RT, RT, RT, RT, S, C::connect, F::none, F::none},

  // B. Bytes were sent, no final answer
  Row{"B1", "reset or write error after part of the request", A, RT, RS, PB, UNK, S, C::reset, F::none, F::connection_lost},
  Row{"B2", "all sent, then end of stream or reset without a byte, fresh connection", A, RT, RS, PB, UNK, ST, C::reset, F::none, F::connection_lost},
  Row{"B3", "the same on a reused connection", A, RT, RS, PB, UNK, none, C::reset, F::none, F::connection_lost},
  Row{"B4", "deadline or cancel before the answer", A, RT, RS, PB, UNK, T, C::timeout, F::none, F::timed_out},
  Row{"B5", "cut or timed out inside status line or headers", A, RT, RS, PB, UNK, ST, C::reset, F::none, F::connection_lost},
  Row{"B6", "HTTP/2 or HTTP/3: stream reset or cancelled after the request", A, RT, RS, PB, UNK, S, C::reset, F::none, F::connection_lost},
  Row{"B7", "HTTP/2: ENHANCE_YOUR_CALM", A, WAIT, WRS, PB, UNK, G, C::reset, F::none, F::connection_lost},
  Row{"B8", "TLS alert that asks for a client certificate", R, STOP, STOP, STOP, STOP, S, C::tls, F::unreachable, F::none},
  Row{"B9", "not HTTP, conflicting lengths, surplus bytes, answer to another request", A, RT1, RS, PB, UNK, S, C::malformed, F::malformed_answer, F::malformed_answer},
  Row{"B10", "web page where JSON was agreed", A, RT1, RS1, PB, UNK, S, C::malformed, F::malformed_answer, F::malformed_answer},
  Row{"B11", "stdio process ended after the whole request was written", A, RT, RS, PB, UNK, S, C::reset, F::none, F::connection_lost},
  Row{"B12", "this process ended while the call was out", A, RT, RS, PB, UNK, none, C::crashed, F::none, F::crashed},
  Row{"B13", "event stream or MCP answer ended before the result", A, RT, RS, PB, UNK, S, C::reset, F::none, F::connection_lost},

  // C. 2xx and 3xx
  Row{"C1", "plain HTTP: 2xx seen, body cut, reset or slower than the deadline", H, RT, RS, PB, LOST, T, C::reset, F::result_lost, F::none},
  Row{"C2", "plain HTTP: 2xx, body not readable as agreed", H, RT1, RS, PB, LOST, T, C::malformed, F::result_lost, F::none},
  Row{"C3", "2xx, answer over a size, depth or block limit", H, STOP, LARGE, LARGE, LARGE, none, C::too_large, F::result_too_large, F::none},
  Row{"C4", "plain HTTP: complete 2xx", OK, DONE, DONE, DONE, DONE, none, C::ok, F::none, F::none},
  Row{"C5", "plain HTTP: complete 207", OK, DONE, DONE, DONE, DONE, none, C::ok, F::none, F::none},
  Row{"C6", "301, 302; a read's sixth hop", A, STOP, PB, PB, UNK, none, C::redirect, F::tool_refused, F::ambiguous_answer},
  Row{"C7", "303", H, STOP, DONE, DONE, DONE, none, C::redirect, F::tool_refused, F::none},
  Row{"C8", "307, 308", R, STOP, STOP, STOP, STOP, none, C::redirect, F::tool_refused, F::none},
  Row{"C9", "304, or an interim status as the end", A, RT1, RS, PB, UNK, none, C::redirect, F::malformed_answer, F::ambiguous_answer},

  // D. 4xx
  Row{"D1", "400, 402, 404, 405, 406, 410, 411, 413 to 416, 424, 426, 428, 431, 451", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D2", "401", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D3", "403 (with a Retry-After: waited for once)", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D4", "the server forgot the MCP session", R, REPAIR, REPAIR, REPAIR, REPAIR, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D5", "408", A, RT, RS, PB, UNK, T, C::http_4xx, F::none, F::ambiguous_answer},
  Row{"D6", "409: the key is in flight", R, STOP, WRS, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D7", "409: the key was used with another payload", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D8", "409: version or lock conflict, or no word about the key", R, RT1, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D9", "409: already exists", R, RT1, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D10", "412", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D11", "417", R, RT1, RT1, RT1, RT1, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D12", "421", R, RT1, RT1, RT1, RT1, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D13", "422: not valid", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D14", "422: the key was used with another payload", R, STOP, STOP, STOP, STOP, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D15", "423", R, RT, RS, RT, RT1, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D16", "425", R, RT1, RT1, RT1, RT1, none, C::http_4xx, F::tool_refused, F::none},
  Row{"D17", "429 with a Retry-After", R, WAIT, WAIT, WAIT, WAIT, G, C::http_429, F::rate_limited, F::none},
  Row{"D18", "429 without a usable time: own backoff within the budgets", R, WAIT, WAIT, WAIT, WAIT, G, C::http_429, F::none, F::none},
  Row{"D19", "429 beyond the deadline", R, STOP, STOP, STOP, STOP, G, C::http_429, F::rate_limited, F::none},
  Row{"D20", "499, 460", A, RT, RS, PB, UNK, T, C::http_4xx, F::none, F::ambiguous_answer},

  // E. 5xx
  Row{"E1", "500", A, RT, RS, PB, UNK, T, C::http_5xx, F::none, F::server_error},
  Row{"E2", "501, 505", R, STOP, STOP, STOP, STOP, none, C::http_5xx, F::tool_refused, F::none},
  Row{"E3", "502", A, RT, RS, PB, UNK, ST, C::http_5xx, F::none, F::server_error},
  Row{"E4", "503 (a Retry-After is honoured)", A, WRS, WRS, PB, UNK, ST, C::http_5xx, F::none, F::server_error},
  Row{"E5", "504", A, RT, RS, PB, UNK, T, C::http_5xx, F::none, F::server_error},
  Row{"E6", "506, 508, 510", A, STOP, UNK, PB, UNK, none, C::http_5xx, F::tool_refused, F::server_error},
  Row{"E7", "507", A, STOP, RS1, PB, UNK, T, C::http_5xx, F::tool_refused, F::server_error},
  Row{"E8", "511", A, STOP, RS, PB, UNK, S, C::http_5xx, F::tool_refused, F::server_error},
  Row{"E9", "520", A, RT, RS, PB, UNK, ST, C::http_5xx, F::none, F::server_error},
  Row{"E10", "521, 523", A, RT, RS, PB, UNK, S, C::http_5xx, F::none, F::server_error},
  Row{"E11", "522", A, RT, RS, PB, UNK, S, C::http_5xx, F::none, F::server_error},
  Row{"E12", "524", A, RT, RS, PB, UNK, T, C::http_5xx, F::none, F::server_error},
  Row{"E13", "525, 526", A, RT, RS, PB, UNK, S, C::http_5xx, F::none, F::server_error},
  Row{"E14", "527, 530, 598, 599, any other 5xx", A, RT, RS, PB, UNK, ST, C::http_5xx, F::none, F::server_error},
  Row{"E15", "529", A, RT, RS, PB, UNK, GT, C::http_5xx, F::none, F::server_error},

  // F. MCP and JSON-RPC
  Row{"F1", "-32700", R, RT1, RS1, STOP, STOP, none, C::rpc_error, F::tool_refused, F::none},
  Row{"F2", "-32600", R, STOP, STOP, STOP, STOP, none, C::rpc_error, F::tool_refused, F::none},
  Row{"F3", "-32601", R, STOP, STOP, STOP, STOP, none, C::rpc_error, F::tool_not_found, F::none},
  Row{"F4", "-32602", R, STOP, STOP, STOP, STOP, none, C::rpc_error, F::tool_refused, F::none},
  Row{"F5", "-32603", A, RT1, RS, PB, UNK, T, C::rpc_error, F::none, F::server_error},
  Row{"F6", "-32001 raised by our own timer", A, RT, RS, PB, UNK, T, C::timeout, F::none, F::timed_out},
  Row{"F7", "-32000 to -32019 from the server", A, RT1, RS, PB, UNK, T, C::rpc_error, F::none, F::server_error},
  Row{"F8", "-32042", R, STOP, STOP, STOP, STOP, none, C::rpc_error, F::tool_refused, F::none},
  Row{"F9", "-32020, -32021, -32022", R, RT1, RT1, RT1, RT1, none, C::rpc_error, F::tool_refused, F::none},
  Row{"F10", "-32800", A, STOP, RS, PB, UNK, none, C::rpc_error, F::tool_refused, F::ambiguous_answer},
  Row{"F11", "tool error that matches errors.business", R, STOP, STOP, STOP, STOP, none, C::tool_error, F::tool_error, F::none},
  Row{"F12", "tool error that matches errors.rate_limit (single_step: refused, waited for once)", A, WAIT, WRS, PB, UNK, G, C::tool_error, F::rate_limited, F::ambiguous_answer},
  Row{"F13", "tool error that matches errors.ambiguous", A, RT1, RS, PB, UNK, T, C::tool_error, F::tool_error, F::ambiguous_answer},
  Row{"F13b", "any other tool error", R, STOP, STOP, STOP, STOP, T, C::tool_error, F::tool_error, F::none},
  Row{"F15", "unknown resultType, missing or doubled id, both or neither of result and error, 202 or 204 to a request", A, RT1, RS, PB, UNK, S, C::malformed, F::malformed_answer, F::malformed_answer},
  Row{"F16", "result that fails the declared schema", H, RT1, DONE, DONE, DONE, T, C::malformed, F::malformed_answer, F::none},

  // What no row names
  Row{"other", "anything else", A, RT1, RS, PB, UNK, none, C::malformed, F::none, F::ambiguous_answer},
};
// clang-format on

}  // namespace

std::span<const Row> failure_table() {
  return kRows;
}

}  // namespace holdfast
