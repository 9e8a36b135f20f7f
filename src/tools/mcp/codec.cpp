#include "tools/mcp/codec.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::tools::mcp {
namespace {

constexpr std::string_view kClientInfo = R"({"name":"holdfast","version":"0.1.0"})";
constexpr std::array<std::string_view, 4> kLegacyRevisions = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                              "2024-11-05"};

void begin(json::Writer& w, std::string_view method) {
  w.begin_object();
  w.field("jsonrpc", "2.0");
  w.field("method", method);
}

/// The `_meta` member: the modern era's own members, and the key where it travels there. Left out when empty.
void write_meta(json::Writer& w, std::string& out, Era era, std::string_view name = {},
                std::string_view value = {}) {
  if (era == Era::legacy && name.empty()) return;
  w.name("_meta");
  w.begin_object();
  if (era == Era::modern) {
    w.field("io.modelcontextprotocol/protocolVersion", kModernRevision);
    w.raw_field("io.modelcontextprotocol/clientInfo", kClientInfo);
    w.raw_field("io.modelcontextprotocol/clientCapabilities", "{}");
  }
  if (!name.empty()) {
    w.string(name);  // the name may need escaping, which name() does not do
    out += ':';
    json::append_quoted(out, value);
  }
  w.end_object();
}

/// A request whose only parameter may be `_meta`.
std::string bare_request(Era era, std::int64_t id, std::string_view method) {
  std::string out;
  json::Writer w(out);
  begin(w, method);
  w.field("id", id);
  w.name("params");
  w.begin_object();
  write_meta(w, out, era);
  w.end_object();
  w.end_object();
  return out;
}

Evidence malformed(std::string detail) {
  Evidence e;
  e.phase = Phase::parsed;
  e.failure = Failure::malformed_rpc;
  e.detail = std::move(detail);
  e.over_mcp = true;
  return e;
}

std::string text_blocks(const json::Value& result) {
  std::string text;
  const json::Value* content = result.find("content");
  if (content == nullptr) return text;
  for (const json::Value& block : content->items) {
    const json::Value* piece = block.find("text");
    if (piece == nullptr || !piece->is(json::Kind::string)) continue;
    if (!text.empty()) text += '\n';
    text += piece->text();
    if (text.size() > kMaxTextBytes) break;
  }
  return clip(text);
}

Evidence read_error(const json::Value& error) {
  const json::Value* code = error.find("code");
  if (code == nullptr || !code->integer()) return malformed("the error has no integer code");
  Evidence e;
  e.phase = Phase::parsed;
  e.answer = Answer::rpc_error;
  e.rpc_code = code->integer();
  e.over_mcp = true;
  if (const json::Value* message = error.find("message")) e.text = clip(message->text());
  e.detail = "JSON-RPC error " + std::to_string(*e.rpc_code);
  return e;
}

Evidence read_result(const json::Value& result) {
  const json::Value* is_error = result.find("isError");
  if (is_error != nullptr && !is_error->is(json::Kind::boolean)) return malformed("isError is not a boolean");
  const json::Value* snake = result.find("is_error");
  const json::Value* type = result.find("resultType");
  if (type != nullptr && type->text() != "complete") {
    const std::string name = type->text();
    if (name == "input_required")
      return malformed("the tool asks for input, which this client does not give");
    if (name == "task") return malformed("the tool answered with a task, which this client did not offer");
    return malformed("unknown resultType");
  }
  Evidence e;
  e.phase = Phase::parsed;
  e.over_mcp = true;
  e.result = std::string(result.raw);
  e.text = text_blocks(result);
  const bool failed = (is_error != nullptr && is_error->is_true()) || (snake != nullptr && snake->is_true());
  e.answer = failed ? Answer::tool_error : Answer::result;
  if (failed) e.detail = is_error != nullptr && is_error->is_true() ? "isError is true" : "is_error is true";
  return e;
}

}  // namespace

bool is_legacy_revision(std::string_view revision) {
  return std::ranges::find(kLegacyRevisions, revision) != kLegacyRevisions.end();
}

std::string discover_message(std::int64_t id) {
  return bare_request(Era::modern, id, "server/discover");
}

std::string_view alive_method(Era era) {
  return era == Era::modern ? "server/discover" : "ping";
}

std::string alive_message(Era era, std::int64_t id) {
  return bare_request(era, id, alive_method(era));
}

std::string initialize_message(std::int64_t id) {
  std::string out;
  json::Writer w(out);
  begin(w, "initialize");
  w.field("id", id);
  w.name("params");
  w.begin_object();
  w.field("protocolVersion", kLegacyRevision);
  w.raw_field("capabilities", "{}");
  w.raw_field("clientInfo", kClientInfo);
  w.end_object();
  w.end_object();
  return out;
}

std::string initialized_message() {
  return R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
}

std::string list_message(Era era, std::int64_t id, const std::optional<std::string>& cursor) {
  std::string out;
  json::Writer w(out);
  begin(w, "tools/list");
  w.field("id", id);
  w.name("params");
  w.begin_object();
  if (cursor) w.field("cursor", *cursor);
  write_meta(w, out, era);
  w.end_object();
  w.end_object();
  return out;
}

std::string call_message(Era era, const CallParts& call) {
  std::string out;
  out.reserve(call.arguments.size() + 320);
  json::Writer w(out);
  begin(w, "tools/call");
  w.field("id", call.id);
  w.name("params");
  w.begin_object();
  w.field("name", call.tool);
  w.raw_field("arguments", call.arguments.empty() ? "{}" : call.arguments);
  write_meta(w, out, era, call.key.empty() ? std::string_view{} : call.meta_name, call.key);
  w.end_object();
  w.end_object();
  return out;
}

std::string cancelled_message(Era era, std::int64_t id, std::string_view reason) {
  std::string out;
  json::Writer w(out);
  begin(w, "notifications/cancelled");
  w.name("params");
  w.begin_object();
  w.field("requestId", id);
  w.field("reason", reason);
  write_meta(w, out, era);
  w.end_object();
  w.end_object();
  return out;
}

std::string reply_message(std::string_view raw_id, std::string_view method) {
  std::string out = R"({"jsonrpc":"2.0","id":)";
  out += raw_id;
  out += method == "ping" ? R"(,"result":{}})" : R"(,"error":{"code":-32601,"message":"not supported"}})";
  return out;
}

Result<Message> read_message(std::string_view text, std::uint32_t depth) {
  json::Limits limits;
  limits.depth = depth;
  Result<json::Value> root = json::parse(text, limits);
  if (!root) return std::unexpected(root.error());
  if (!root->is(json::Kind::object)) {
    return std::unexpected(Error{"bad_message", "a JSON-RPC message must be an object", ""});
  }
  Message message;
  message.root = std::move(*root);
  if (const json::Value* id = message.root.find("id")) {
    message.raw_id = id->raw;
    message.id = id->integer();
  }
  if (const json::Value* method = message.root.find("method")) {
    message.method = method->text();
    message.kind = message.raw_id.empty() ? Message::Kind::notification : Message::Kind::request;
  }
  return message;
}

Evidence read_answer(const Message& message) {
  const json::Value* result = message.root.find("result");
  const json::Value* error = message.root.find("error");
  if (message.kind != Message::Kind::answer) return malformed("a request came where an answer was due");
  if (result != nullptr && error != nullptr) return malformed("the answer has both result and error");
  if (result == nullptr && error == nullptr) return malformed("the answer has neither result nor error");
  if (error != nullptr) return read_error(*error);
  if (!result->is(json::Kind::object)) return malformed("the result is not an object");
  return read_result(*result);
}

Evidence unreadable_answer(const Error& error) {
  const bool over_limit = error.code == "too_deep" || error.code == "too_large";
  Evidence e = malformed("the answer is not readable: " + error.code);
  if (over_limit) e.failure = Failure::too_large;
  if (over_limit) e.detail = "the answer is over the limit of JSON depth or size";
  return e;
}

std::optional<std::int64_t> peek_id(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t begin_of_string = i++;
    while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    if (i >= text.size()) return std::nullopt;
    if (depth != 1 || text.substr(begin_of_string, i - begin_of_string + 1) != "\"id\"") continue;
    std::size_t at = text.find_first_not_of(" \t", i + 1);
    if (at == std::string_view::npos || text[at] != ':') continue;  // a value, not a name
    at = text.find_first_not_of(" \t", at + 1);
    if (at == std::string_view::npos) return std::nullopt;
    std::int64_t id = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + at, end, id);
    if (problem != std::errc{} || stop == end || (*stop != ',' && *stop != '}' && *stop != ' '))
      return std::nullopt;
    return id;
  }
  return std::nullopt;
}

std::string clip(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

}  // namespace holdfast::tools::mcp
