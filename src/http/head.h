#pragma once
// The strict reader of request heads. It is stricter than RFC 9112 where leniency has been used to smuggle
// requests: CRLF only, no folding, one Host, one length, no transfer encoding.
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"

namespace holdfast::http {

inline constexpr std::size_t kHeadBytes = 64 * 1024;
inline constexpr std::size_t kLineBytes = 16 * 1024;
inline constexpr std::size_t kTargetBytes =
    8 * 1024 - 64;  // what fits the request line of the library behind
inline constexpr std::size_t kHeaders = 100;
inline constexpr std::size_t kQueryFields = 100;

/// Why a request is turned away before a handler sees it.
struct Refusal {
  int status = 400;
  Error error;
  std::vector<std::pair<std::string, std::string>> headers = {};
  int retry_after_s = 0;
};

[[nodiscard]] Response to_response(const Refusal& refusal);

/// Finds the end of a head in a buffer that grows, looking at every byte once. Bounded by the limits above.
class HeadScanner {
 public:
  /// The length of the head with its blank line once it is complete, 0 while it is not; a refusal when it
  /// never can be.
  [[nodiscard]] std::expected<std::size_t, Refusal> scan(std::string_view buffer);
  /// Where the request line begins: one empty line before it is tolerated.
  [[nodiscard]] std::size_t start() const { return start_; }

 private:
  [[nodiscard]] std::optional<Refusal> check_line(std::string_view buffer, std::size_t end) const;

  std::size_t start_ = 0;
  std::size_t line_start_ = 0;
  std::size_t scanned_ = 0;
  std::size_t lines_ = 0;
};

struct Head {
  Request request;                    // method, path, query and headers
  std::string sent_path;              // as on the wire, without query
  std::vector<std::string> segments;  // of the path, decoded one by one
  std::uint64_t content_length = 0;
  bool http_1_0 = false;
  bool close = false;  // the client wants no further request on this connection
  bool expect_continue = false;
};

/// Reads a complete head: from the request line to the blank line, which may be missing.
[[nodiscard]] std::expected<Head, Refusal> parse_head(std::string_view text);

/// nullopt for a broken escape.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

}  // namespace holdfast::http
