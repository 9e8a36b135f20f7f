#include "http/head.h"

namespace holdfast::http {
namespace {

Refusal bad(std::string message) {
  return Refusal{.status = 400, .error = {"bad_request", std::move(message), ""}};
}

Refusal too_large(std::string message) {
  return Refusal{.status = 431, .error = {"header_too_large", std::move(message), ""}};
}

bool may_begin_method(char c) {
  return c >= 'A' && c <= 'Z';
}

}  // namespace

Response to_response(const Refusal& refusal) {
  Response response = problem(refusal.status, refusal.error, refusal.retry_after_s);
  for (const auto& header : refusal.headers) response.headers.push_back(header);
  return response;
}

std::optional<Refusal> HeadScanner::check_line(std::string_view buffer, std::size_t end) const {
  const std::size_t length = end - line_start_;
  if (length > kLineBytes) {
    if (lines_ > 0) return too_large("A header line is longer than 16 KiB.");
    return Refusal{.status = 414, .error = {"uri_too_long", "The request line is longer than 8 KiB.", ""}};
  }
  // Another protocol (TLS, noise) is told at its first byte, not after the header deadline.
  if (lines_ == 0 && length > 0 && !may_begin_method(buffer[line_start_]) && buffer[line_start_] != '\r') {
    return bad("This is not an HTTP request.");
  }
  return std::nullopt;
}

std::expected<std::size_t, Refusal> HeadScanner::scan(std::string_view buffer) {
  while (true) {
    const std::size_t newline = buffer.find('\n', scanned_);
    const std::size_t end = newline == std::string_view::npos ? buffer.size() : newline;
    if (auto refusal = check_line(buffer, end)) return std::unexpected(std::move(*refusal));
    scanned_ = end;
    if (end > kHeadBytes) return std::unexpected(too_large("The head of the request is larger than 64 KiB."));
    if (newline == std::string_view::npos) return 0;
    if (newline == line_start_ || buffer[newline - 1] != '\r') {
      return std::unexpected(bad("Lines of a request end with CR LF."));
    }
    const bool empty = newline - line_start_ == 1;
    scanned_ = line_start_ = newline + 1;
    if (empty && lines_ > 0) return newline + 1;
    if (empty) {
      if (start_ > 0) return std::unexpected(bad("The request line is missing."));
      start_ = newline + 1;
      continue;
    }
    if (++lines_ > kHeaders + 1) return std::unexpected(too_large("The request has more than 100 headers."));
  }
}

}  // namespace holdfast::http
