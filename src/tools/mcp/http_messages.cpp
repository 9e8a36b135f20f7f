#include "tools/mcp/http_messages.h"

#include <algorithm>
#include <array>

#include "core/ascii.h"
#include "tools/mcp/sse.h"

namespace holdfast::tools::mcp {
namespace {

constexpr std::size_t kMaxSessionBytes = 1024;
/// Names that the protocol owns; configured headers of the same name are not sent.
constexpr std::array<std::string_view, 8> kOwnHeaders = {
    "accept",     "content-type", "content-length", "mcp-protocol-version",
    "mcp-method", "mcp-name",     "mcp-session-id", "last-event-id"};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return ascii::lower(x) == ascii::lower(y); });
}

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  return !std::ranges::search(text, word, [](char x, char y) {
            return ascii::lower(x) == ascii::lower(y);
          }).empty();
}

void add_headers(HttpRequest& request, const ServerConfig& server, const Protocol& protocol) {
  for (const auto& [name, value] : server.headers) {
    const bool own =
        std::ranges::any_of(kOwnHeaders, [&](std::string_view h) { return equal_ignoring_case(h, name); });
    if (!own) request.headers.emplace_back(name, value);
  }
  if (!protocol.revision.empty()) request.headers.emplace_back("MCP-Protocol-Version", protocol.revision);
  if (!protocol.session.empty()) request.headers.emplace_back("Mcp-Session-Id", protocol.session);
}

std::string_view media_type(const HttpHeaders& headers) {
  std::string_view type = headers.get("content-type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return type;
}

Evidence failed(Failure failure, std::string detail) {
  Evidence e;
  e.phase = Phase::parsed;
  e.failure = failure;
  e.detail = std::move(detail);
  e.over_mcp = true;
  return e;
}

/// A 4xx, 5xx or 3xx: the status and, where there is one, the JSON-RPC error in the body.
Evidence judge_refusal(const HttpOutcome& outcome, const Limits& limits) {
  Evidence e;
  e.over_mcp = true;
  e.phase = Phase::parsed;
  e.answer = Answer::http;
  e.text = clip(outcome.body);
  e.detail = "HTTP status " + std::to_string(outcome.status);
  const Result<Message> message = read_message(outcome.body, limits.json_depth);
  if (!message) return e;
  const json::Value* error = message->root.find("error");
  if (error == nullptr) return e;
  if (error->is(json::Kind::string)) e.text = clip(error->text());
  if (error->is(json::Kind::object)) {
    Evidence rpc = read_answer(*message);
    if (rpc.answer == Answer::rpc_error) {
      rpc.detail = e.detail + ", " + rpc.detail;
      return rpc;
    }
  }
  return e;
}

Evidence judge_text(std::string_view body, std::int64_t id, std::uint32_t depth) {
  const Result<Message> message = read_message(body, depth);
  if (!message) return unreadable_answer(message.error());
  if (message->kind == Message::Kind::answer && message->id == id) return read_answer(*message);
  const bool without_id = message->raw_id.empty() || message->raw_id == "null";
  const bool error = message->root.find("error") != nullptr && message->root.find("result") == nullptr;
  // A server that could not read the request cannot know its id.
  if (without_id && error) {
    Evidence e = read_answer(*message);
    if (e.rpc_code == -32700 || e.rpc_code == -32600) return e;
  }
  if (without_id) return failed(Failure::malformed_rpc, "the answer has no id");
  return failed(Failure::bad_framing, "the answer belongs to another request");
}

Evidence judge_stream_body(const HttpOutcome& outcome, std::int64_t id, const Limits& limits) {
  SseParser parser(limits.result_bytes);
  std::optional<Evidence> answer;
  parser.feed(outcome.body, [&](const SseEvent& event) {
    answer = judge_event(event.data, id, limits.json_depth);
    return !answer;
  });
  if (answer) return *answer;
  if (parser.over_limit()) return failed(Failure::too_large, "an event is over the limit");
  return failed(Failure::stream_ended, "the stream ended without the result");
}

}  // namespace

HttpRequest post_request(const ServerConfig& server, const Protocol& protocol, std::string_view method,
                         std::string_view tool, std::string body) {
  HttpRequest request;
  request.url = server.url;
  request.body = std::move(body);
  request.has_body = true;
  request.allow_private = server.allow_private;
  request.headers.reserve(server.headers.size() + 6);
  request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Accept", "application/json, text/event-stream");
  add_headers(request, server, protocol);
  if (protocol.era == Era::modern) {
    request.headers.emplace_back("Mcp-Method", method);
    if (!tool.empty()) request.headers.emplace_back("Mcp-Name", tool);
  }
  return request;
}

HttpRequest resume_request(const ServerConfig& server, const Protocol& protocol,
                           std::string_view last_event_id) {
  HttpRequest request;
  request.method = "GET";
  request.url = server.url;
  request.allow_private = server.allow_private;
  request.headers.emplace_back("Accept", "text/event-stream");
  add_headers(request, server, protocol);
  request.headers.emplace_back("Last-Event-ID", last_event_id);
  return request;
}

bool is_event_stream(const HttpHeaders& headers) {
  return equal_ignoring_case(media_type(headers), "text/event-stream");
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

Evidence exchange_evidence(const HttpOutcome& outcome) {
  Evidence e;
  e.phase = outcome.phase;
  e.failure = outcome.failure;
  e.http_status = outcome.status;
  e.retry_after = outcome.headers.all("retry-after");
  e.date = outcome.headers.get("date");
  e.location = outcome.headers.get("location");
  e.detail = outcome.detail;
  e.bytes_sent = outcome.bytes_sent;
  e.bytes_received = outcome.bytes_received;
  e.reused_connection = outcome.reused_connection;
  e.over_mcp = true;
  return e;
}

Evidence with_answer(Evidence exchange, Evidence answer) {
  exchange.phase = answer.phase;
  exchange.failure = answer.failure;
  exchange.answer = answer.answer;
  exchange.rpc_code = answer.rpc_code;
  exchange.result = std::move(answer.result);
  exchange.text = std::move(answer.text);
  if (!answer.detail.empty() || answer.failure == Failure::none) exchange.detail = std::move(answer.detail);
  return exchange;
}

Evidence judge(const HttpOutcome& outcome, std::int64_t id, const Limits& limits) {
  Evidence exchange = exchange_evidence(outcome);
  if (outcome.failure != Failure::none) return exchange;
  if (!is_success(outcome.status)) return with_answer(std::move(exchange), judge_refusal(outcome, limits));
  if (is_event_stream(outcome.headers)) {
    return with_answer(std::move(exchange), judge_stream_body(outcome, id, limits));
  }
  const std::string_view type = media_type(outcome.headers);
  if (equal_ignoring_case(type, "text/html") || equal_ignoring_case(type, "application/xhtml+xml")) {
    return with_answer(std::move(exchange),
                       failed(Failure::foreign, "a web page came where JSON was agreed"));
  }
  if (outcome.status == 202 || outcome.status == 204 || outcome.body.empty()) {
    return with_answer(std::move(exchange),
                       failed(Failure::malformed_rpc, "HTTP status " + std::to_string(outcome.status) +
                                                          " without an answer to the request"));
  }
  return with_answer(std::move(exchange), judge_text(outcome.body, id, limits.json_depth));
}

std::optional<Evidence> judge_event(std::string_view data, std::int64_t id, std::uint32_t depth) {
  if (data.empty()) return std::nullopt;
  const Result<Message> message = read_message(data, depth);
  if (message) {
    const bool ours = message->kind == Message::Kind::answer && message->id == id;
    return ours ? std::optional(read_answer(*message)) : std::nullopt;
  }
  return peek_id(data) == id ? std::optional(unreadable_answer(message.error())) : std::nullopt;
}

bool says_session_dead(const Evidence& evidence, bool session_in_use) {
  if (!session_in_use || evidence.failure != Failure::none) return false;
  const bool refused = evidence.http_status == 400 || evidence.http_status == 404;
  if (!refused) return false;
  const bool session_code = evidence.rpc_code == -32000 || evidence.rpc_code == -32001;
  if (session_code && contains_ignoring_case(evidence.text, "session")) return true;
  return evidence.http_status == 404 && evidence.rpc_code != -32601 && evidence.rpc_code != -32602;
}

bool doubts_session(const Evidence& evidence, bool session_in_use) {
  const bool answered = evidence.answer == Answer::result || evidence.answer == Answer::tool_error;
  if (!session_in_use || evidence.failure != Failure::none || answered) return false;
  return evidence.http_status == 410 || contains_ignoring_case(evidence.text, "session") ||
         contains_ignoring_case(evidence.text, "not initialized");
}

bool is_session_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxSessionBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

bool is_event_id(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7F;
  });
}

Discovery read_discovery(const Evidence& answer) {
  if (answer.answer == Answer::result) {
    const Result<json::Value> result = json::parse(answer.result);
    if (!result) return Discovery::legacy;
    const json::Value* versions = result->find("supportedVersions");
    if (versions == nullptr) return Discovery::legacy;
    const bool supported = std::ranges::any_of(versions->items, [](const json::Value& v) {
      return v.is(json::Kind::string) && v.text() == kModernRevision;
    });
    return supported ? Discovery::modern : Discovery::legacy;
  }
  if (answer.answer != Answer::rpc_error || !answer.rpc_code) return Discovery::legacy;
  const bool modern_code = *answer.rpc_code <= -32020 && *answer.rpc_code >= -32022;
  const bool about_meta = *answer.rpc_code == -32602 && contains_ignoring_case(answer.text, "_meta");
  return modern_code || about_meta ? Discovery::modern : Discovery::legacy;
}

Result<std::string> read_revision(std::string_view result) {
  const Result<json::Value> root = json::parse(result);
  if (!root) return std::unexpected(root.error());
  const json::Value* revision = root->find("protocolVersion");
  const std::string text = revision == nullptr ? std::string{} : revision->text();
  if (is_legacy_revision(text)) return text;
  return std::unexpected(
      Error{"bad_revision", "the server did not agree to a protocol revision known here", ""});
}

Evidence handshake_evidence(const Evidence& cause, std::string_view step) {
  Evidence e;
  e.over_mcp = true;
  e.http_status = cause.http_status;
  e.retry_after = cause.retry_after;
  e.date = cause.date;
  e.text = cause.text;
  e.detail = "connect failed at " + std::string(step) + ", the call was not sent";
  if (!cause.detail.empty()) e.detail += ": " + cause.detail;
  // Who we are or how often we ask was refused: the call would be told the same.
  const bool refused = cause.http_status == 401 || cause.http_status == 403 || cause.http_status == 429;
  if (refused && cause.failure == Failure::none) {
    e.phase = Phase::parsed;
    e.answer = Answer::http;
    return e;
  }
  const bool before_first_byte = cause.phase < Phase::tx_part && cause.failure != Failure::none &&
                                 cause.failure != Failure::timeout && cause.failure != Failure::cancelled;
  const bool named = before_first_byte || cause.failure == Failure::bad_session;
  e.failure = named ? cause.failure : Failure::handshake;
  e.phase = before_first_byte ? cause.phase : Phase::tx0;
  return e;
}

}  // namespace holdfast::tools::mcp
