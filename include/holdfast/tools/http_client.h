#pragma once
// Outbound HTTP for the transports: one libcurl multi handle on one thread, with the evidence that the
// failure table asks for.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/policy/evidence.h"

namespace holdfast::tools {

struct HttpRequest {
  std::string method = "POST";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool has_body = false;  // POST with an empty body still says Content-Length: 0
  Instant deadline{};     // total
  Duration linger{0};  // after the deadline or a cancel: report it, but keep reading this long (needs `late`)
  bool fresh_connection = false;                 // never send on a reused connection, never leave one behind
  bool follow_redirects = false;                 // at most 5 hops; credentials never to another origin
  bool allow_private = false;                    // a host *name* may resolve to a private or loopback address
  std::size_t max_body_bytes = 8 * 1024 * 1024;  // after decompression
  std::size_t max_header_bytes = 64 * 1024;
};

struct HttpHeaders {
  std::vector<std::pair<std::string, std::string>> list;  // names lower-case; of the final answer
  /// First value, empty when absent.
  [[nodiscard]] std::string_view get(std::string_view lower_name) const;
  /// All values joined by ", ".
  [[nodiscard]] std::string all(std::string_view lower_name) const;
};

/// How one exchange ended, before anybody has looked into the body.
struct HttpOutcome {
  Phase phase = Phase::local;
  Failure failure = Failure::none;  // none: a complete answer, body within the limits
  int status = 0;
  HttpHeaders headers;
  std::string body;    // decompressed; partial when the failure is body_cut, timeout, …
  std::string detail;  // one sentence with numbers, no secret
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  bool reused_connection = false;
};

using RequestId = std::uint64_t;

/// Called on the client's thread; must not block.
struct HttpCallbacks {
  /// Once, always.
  std::function<void(HttpOutcome)> done;
  /// With `linger`: the answer, or as much of it as came before it broke off (then with a failure), after `done` had
  /// reported the timeout or the cancel. At most once, and only where the whole request had left by then: what has
  /// not is not sent any more.
  std::function<void(HttpOutcome)> late;
  /// When set and the answer's head has come with a 2xx status: decides whether the body is streamed to
  /// `chunk` instead of collected.
  std::function<bool(int status, const HttpHeaders&)> stream;
  /// A piece of a streamed body (decompressed). Return false to end the exchange: done() follows with what
  /// was seen, failure none.
  std::function<bool(std::string_view piece)> chunk;
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// Thread-safe, never blocks; callbacks never run inside.
  virtual RequestId start(HttpRequest request, HttpCallbacks callbacks) = 0;
  /// done() follows with failure `cancelled` unless it has already run; where it has, lingering ends.
  /// Thread-safe.
  virtual void cancel(RequestId id) = 0;
  /// Runs `task` on the client's thread, no earlier than `at`. Thread-safe.
  virtual void at(Instant at, std::function<void()> task) = 0;
  /// Ends every exchange without callbacks and joins the thread.
  virtual void stop() = 0;
};

/// The real one, on a thread of its own.
[[nodiscard]] std::unique_ptr<HttpClient> make_curl_client(const Clock& clock);

}  // namespace holdfast::tools
