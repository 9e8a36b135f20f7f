#include <algorithm>
#include <array>

#include "core/ascii.h"
#include "http/head.h"

namespace holdfast::http {
namespace {

Refusal refuse(int status, std::string code, std::string message) {
  return Refusal{.status = status, .error = {std::move(code), std::move(message), ""}};
}

Refusal bad(std::string message) {
  return refuse(400, "bad_request", std::move(message));
}

using Check = std::optional<Refusal>;

constexpr std::array<std::string_view, 7> kMethods = {"GET",   "HEAD",   "POST",   "PUT",
                                                      "PATCH", "DELETE", "OPTIONS"};

bool is_token_char(unsigned char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

bool is_value_char(unsigned char c) {
  return c == '\t' || (c >= 0x20 && c != 0x7f);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = ascii::lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Check read_path(std::string_view path, Head& head) {
  head.sent_path = path;
  path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    auto segment = percent_decode(path.substr(0, slash), false);
    if (!segment || segment->find('\0') != std::string::npos) return bad("The path has a broken escape.");
    head.request.path += '/';
    head.request.path += *segment;
    head.segments.push_back(std::move(*segment));
    if (slash == std::string_view::npos) return std::nullopt;
    path.remove_prefix(slash + 1);
  }
}

Check read_query(std::string_view query, Request& request) {
  while (!query.empty()) {
    const std::size_t ampersand = query.find('&');
    const std::string_view field = query.substr(0, ampersand);
    query.remove_prefix(ampersand == std::string_view::npos ? query.size() : ampersand + 1);
    if (field.empty()) continue;
    if (request.query.size() == kQueryFields) return bad("The query has more than 100 fields.");
    const std::size_t equals = field.find('=');
    auto name = percent_decode(field.substr(0, equals), true);
    auto value = percent_decode(equals == std::string_view::npos ? "" : field.substr(equals + 1), true);
    if (!name || !value) return bad("The query has a broken escape.");
    request.query.emplace(std::move(*name), std::move(*value));
  }
  return std::nullopt;
}

Check read_target(std::string_view target, Head& head) {
  if (target.size() > kTargetBytes) return refuse(414, "uri_too_long", "The address is longer than 8 KiB.");
  for (const unsigned char c : target) {
    if (c <= 0x20 || c >= 0x7f) return bad("The address has characters that must be escaped.");
  }
  if (target.starts_with("http://")) {
    target.remove_prefix(7);
    const std::size_t slash = target.find('/');
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (!target.starts_with('/')) return bad("The address must begin with a slash.");
  const std::size_t mark = target.find('?');
  if (auto refusal = read_path(target.substr(0, mark), head)) return refusal;
  return mark == std::string_view::npos ? std::nullopt : read_query(target.substr(mark + 1), head.request);
}

Check read_request_line(std::string_view line, Head& head) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return bad("The request line is not complete.");
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (!version.starts_with("HTTP/")) return bad("The request line names no version of HTTP.");
    return refuse(505, "version_not_supported", "HTTP/1.1 is spoken here.");
  }
  head.http_1_0 = version == "HTTP/1.0";
  if (std::ranges::find(kMethods, method) == kMethods.end()) {
    return refuse(501, "method_unknown", "The method is not known here.");
  }
  head.request.method = method;
  return read_target(line.substr(first + 1, last - first - 1), head);
}

Check read_header(std::string_view line, Request& request) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return bad("A header line has no name.");
  const std::string_view name = line.substr(0, colon);
  // A folded line begins with a blank, so it fails here as well.
  if (!std::ranges::all_of(name, is_token_char))
    return bad("A header name has characters that are not allowed.");
  const std::string_view value = ascii::trimmed(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_value_char)) return bad("A header value has control characters.");
  request.headers.emplace(ascii::lowered(name), std::string(value));
  return std::nullopt;
}

Check read_length(Head& head) {
  const auto [first, last] = head.request.headers.equal_range("content-length");
  if (first == last) return std::nullopt;
  if (std::next(first) != last) return bad("Content-Length must be given once.");
  const std::string& text = first->second;
  if (text.empty() || text.size() > 18) return bad("Content-Length is not a length.");
  for (const char c : text) {
    if (c < '0' || c > '9') return bad("Content-Length is not a length.");
    head.content_length = head.content_length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return std::nullopt;
}

/// What says where this message ends: anything doubtful is how two parsers come to see two different
/// requests.
Check check_framing(Head& head) {
  const auto& headers = head.request.headers;
  if (headers.contains("transfer-encoding")) {
    if (headers.contains("content-length"))
      return bad("Content-Length and Transfer-Encoding exclude each other.");
    return refuse(411, "length_required",
                  "Send the body with a Content-Length; transfer encodings are not accepted.");
  }
  const auto hosts = headers.count("host");
  if (hosts > 1 || (hosts == 0 && !head.http_1_0)) return bad("Exactly one Host header is required.");
  if (headers.count("authorization") > 1) return bad("Authorization must be given once.");
  return read_length(head);
}

Check check_content(const Request& request) {
  const auto encoding = request.header("content-encoding");
  if (encoding && ascii::lowered(*encoding) != "identity") {
    return refuse(415, "unsupported_media_type", "Send the body without a content encoding.");
  }
  const auto type = request.header("content-type");
  if (type && ascii::lowered(*type).starts_with("multipart/")) {
    return refuse(415, "unsupported_media_type", "Multipart bodies are not accepted; send JSON.");
  }
  return std::nullopt;
}

Check read_connection(Head& head) {
  const auto connection = head.request.header("connection");
  const std::string options = connection ? ascii::lowered(*connection) : "";
  head.close = options.find("close") != std::string::npos ||
               (head.http_1_0 && options.find("keep-alive") == std::string::npos);
  if (const auto expect = head.request.header("expect")) {
    if (ascii::lowered(*expect) != "100-continue")
      return refuse(417, "expectation_failed", "Only 100-continue is known.");
    head.expect_continue = !head.http_1_0;
  }
  return std::nullopt;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  return line;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::expected<Head, Refusal> parse_head(std::string_view text) {
  Head head;
  if (auto refusal = read_request_line(take_line(text), head)) return std::unexpected(std::move(*refusal));
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    if (auto refusal = read_header(line, head.request)) return std::unexpected(std::move(*refusal));
  }
  for (const auto check : {check_framing, read_connection}) {
    if (auto refusal = check(head)) return std::unexpected(std::move(*refusal));
  }
  if (auto refusal = check_content(head.request)) return std::unexpected(std::move(*refusal));
  return head;
}

}  // namespace holdfast::http
