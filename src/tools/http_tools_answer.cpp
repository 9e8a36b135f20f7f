#include <array>

#include "core/ascii.h"
#include "holdfast/core/json.h"
#include "tools/http_client_address.h"
#include "tools/http_tools.h"

namespace holdfast::tools {
namespace {

constexpr std::size_t kTextBytes = 4096;
constexpr std::size_t kErrorBodyBytes = 64 * 1024;

std::string media_type(const HttpHeaders& headers) {
  const std::string_view type = headers.get("content-type");
  return ascii::lowered(ascii::trimmed(type.substr(0, type.find(';'))));
}

bool is_web_page(std::string_view type) {
  return type == "text/html" || type == "application/xhtml+xml";
}
bool is_json(std::string_view type) {
  return type == "application/json" || type == "text/json" || type.ends_with("+json");
}

// A markup document under a JSON label is still somebody else's page.
bool looks_like_markup(std::string_view body) {
  const std::size_t at = body.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && body[at] == '<';
}

// Cut at a character's border, so that valid UTF-8 stays valid.
std::string clipped(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  text.resize(most);
  return text;
}

// In JSON text a secret may be spelled with escapes.
std::string redact_json(std::string text, const std::vector<std::string>& secrets) {
  std::vector<std::string> spellings;
  for (const std::string& secret : secrets) {
    const std::string quoted = json::quote(secret);
    spellings.push_back(quoted.substr(1, quoted.size() - 2));
  }
  return redact(redact(std::move(text), secrets), spellings);
}

std::string redacted_result(std::string_view raw, const std::vector<std::string>& secrets,
                            const json::Limits& limits) {
  if (secrets.empty()) return std::string(raw);
  std::string out = redact_json(std::string(raw), secrets);
  // A secret that stood there as a number leaves no JSON behind.
  if (out != raw && !json::parse(out, limits)) return json::quote(out);
  return out;
}

void fail(Evidence& evidence, Failure failure, std::string why) {
  evidence.failure = failure;
  evidence.phase = Phase::parsed;
  evidence.answer = Answer::none;
  evidence.detail = std::move(why) + "; status " + std::to_string(evidence.http_status);
}

void succeed(Evidence& evidence, std::string result) {
  evidence.answer = Answer::http;
  evidence.phase = Phase::parsed;
  evidence.result = std::move(result);
}

void read_result(Evidence& evidence, const HttpOutcome& outcome, const json::Limits& limits,
                 const std::vector<std::string>& secrets) {
  if (outcome.body.empty()) return succeed(evidence, "null");
  const std::string type = media_type(outcome.headers);
  if (is_web_page(type)) return fail(evidence, Failure::foreign, "a web page came where JSON was agreed");
  const auto value = json::parse(outcome.body, limits);
  if (value) return succeed(evidence, redacted_result(value->raw, secrets, limits));
  const std::string& code = value.error().code;
  if (code == "too_deep")
    return fail(evidence, Failure::too_large,
                "the answer is nested deeper than the limit of " + std::to_string(limits.depth));
  if (code == "too_large")
    return fail(evidence, Failure::too_large,
                "the answer has more values than the limit of " + std::to_string(limits.nodes));
  if (is_json(type)) {
    if (looks_like_markup(outcome.body))
      return fail(evidence, Failure::foreign, "markup came where JSON was agreed");
    return fail(evidence, Failure::body_unreadable, "the answer is no valid JSON: " + value.error().message);
  }
  if (!json::is_utf8(outcome.body))
    return fail(evidence, Failure::body_unreadable, "the answer is neither JSON nor UTF-8 text");
  succeed(evidence, json::quote(redact(outcome.body, secrets)));
}

std::string own_words(const json::Value& body) {
  static constexpr std::array<std::string_view, 3> kMembers{"error", "message", "detail"};
  for (const std::string_view name : kMembers) {
    const json::Value* value = body.find(name);
    if (value && value->is(json::Kind::object)) value = value->find("message");
    if (value && value->is(json::Kind::string)) return value->text();
  }
  return {};
}

// Secrets go before anything is cut, else the cut could leave a part of one.
std::string error_text(const std::string& body, const std::vector<std::string>& secrets) {
  const std::string head = clipped(body, kErrorBodyBytes);
  std::string words;
  if (const auto value = json::parse(head, {.depth = 16, .nodes = 10'000})) words = own_words(*value);
  if (words.empty())
    words = json::is_utf8(head) ? head : std::to_string(body.size()) + " bytes that are no UTF-8 text";
  return clipped(redact_json(std::move(words), secrets), kTextBytes);
}

void read_location(Evidence& evidence, const HttpHeaders& headers, const std::vector<std::string>& secrets) {
  const std::string_view location = headers.get("location");
  if (location.empty()) return;
  if (has_control_bytes(location) || !json::is_utf8(location))
    return fail(evidence, Failure::bad_framing, "the answer's Location holds bytes that no address has");
  evidence.location = clipped(redact(std::string(location), secrets), kTextBytes);
  if (evidence.http_status >= 300 && evidence.http_status < 400)
    evidence.detail += ", Location: " + evidence.location;
}

void read_answer(Evidence& evidence, const HttpOutcome& outcome, const json::Limits& limits,
                 const std::vector<std::string>& secrets) {
  evidence.detail = "status " + std::to_string(outcome.status);
  read_location(evidence, outcome.headers, secrets);
  if (evidence.failure != Failure::none) return;
  if (outcome.status >= 200 && outcome.status < 300) return read_result(evidence, outcome, limits, secrets);
  evidence.text = error_text(outcome.body, secrets);
  std::string result;
  if (outcome.status == 303) result = "{\"location\":" + json::quote(evidence.location) + "}";
  succeed(evidence, std::move(result));
}

}  // namespace

Evidence read_http_answer(HttpOutcome outcome, const json::Limits& limits,
                          const std::vector<std::string>& secrets) {
  Evidence evidence;
  evidence.phase = outcome.phase;
  evidence.failure = outcome.failure;
  evidence.http_status = outcome.status;
  evidence.bytes_sent = outcome.bytes_sent;
  evidence.bytes_received = outcome.bytes_received;
  evidence.reused_connection = outcome.reused_connection;
  evidence.detail = std::move(outcome.detail);
  evidence.retry_after = clipped(redact(outcome.headers.all("retry-after"), secrets), kTextBytes);
  evidence.date = clipped(std::string(outcome.headers.get("date")), 128);
  if (evidence.failure == Failure::none)
    read_answer(evidence, outcome, limits, secrets);
  else if (outcome.phase >= Phase::rx_head && outcome.status >= 300)
    evidence.text = error_text(outcome.body, secrets);
  evidence.detail = redact(std::move(evidence.detail), secrets);
  return evidence;
}

}  // namespace holdfast::tools
