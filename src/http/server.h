#pragma once
// The bounded connection layer: everything that a listener does before and after a handler runs. cpp-httplib
// is behind it and in no header that other layers include.
#include <any>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/time.h"

namespace holdfast::http {

/// Who is asking. Without configured tokens everybody is an operator with the empty name.
struct Identity {
  std::string name;
  bool operate = true;
};

struct Request {
  std::string method;
  std::string path;                               // decoded, without query
  std::map<std::string, std::string> parameters;  // {id} of the route
  std::multimap<std::string, std::string> query;
  std::multimap<std::string, std::string> headers;  // names lower-case
  std::string body;
  std::string remote_address;
  Identity identity;

  /// Set before the handler runs again for a parked request.
  bool resumed = false;
  bool waited_out = false;    // the park's `until` has come
  std::any* state = nullptr;  // the handler's own, kept while the request is parked
  /// Registers interest before the handler looks: a wake() of this topic after this call and before the
  /// handler returns Park is not lost.
  std::function<void(std::string_view topic)> watch;

  [[nodiscard]] std::optional<std::string> header(std::string_view lower_name) const;  // first value
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;   // first value
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type = "application/json";
  std::string body;
  std::shared_ptr<const std::string> shared_body;  // goes after `body`: a long text that many answers share
};

/// Nothing to say yet: the connection waits without a thread until wake(topic) for a watched topic, or
/// `until`; then the handler runs again.
struct Park {
  Instant until;
};

/// A piece of an endless answer (SSE): sent at once, then parked like Park. `end` closes the stream after it.
struct Stream {
  std::string content_type = "text/event-stream";  // of the first piece
  std::string data;
  Instant until;
  bool end = false;
};

using Outcome = std::variant<Response, Park, Stream>;
using Handler = std::function<Outcome(Request&)>;
/// What a handler can say from memory. nullopt: it takes more than that, and the handler runs; so a glance takes nothing that the
/// handler needs. It runs on the thread that owns every connection of its listener: it never reads a file, waits for
/// nothing, renders nothing large, and is over in well under a millisecond.
using Glance = std::function<std::optional<Outcome>(Request&)>;

/// problem+json (RFC 9457): type (`/errors/<code>`, relative to the request's address), title, status, detail, code, pointer
/// (null where there is none). Retry-After, in seconds, where `retry_after_s` > 0.
[[nodiscard]] Response problem(int status, const Error& error, int retry_after_s = 0);

enum class Access { open, client, operate };  // open: no token needed

struct Options {
  std::string name;                    // "client" or "admin": its threads are "client listener" and "client worker"
  std::string listen;                  // "127.0.0.1:4653", "[::1]:0", "unix:/path"; port 0 picks a free one
  unsigned socket_mode = 0600;         // of a unix socket's file
  std::uint64_t body_bytes = 1 << 20;  // a longer body is refused (413) before it is read
  std::uint32_t connections = 1024;    // open at a time; more are answered 503
  /// The same for one address (IPv6: one /64). nullopt: a quarter of `connections`, and no cap for loopback and unix
  /// sockets, where a proxy stands for everybody.
  std::optional<std::uint32_t> connections_per_address;
  std::uint32_t threads = 32;          // most handlers at a time
  Duration header_time{10'000}, body_time{30'000}, write_time{30'000}, idle_time{75'000};
  /// How long the worker that has just answered a request, while none waits, waits for the client's next one, before the
  /// connection goes back to the listener's thread. A client that asks again and again is spared two wake-ups each time. 0: not at all.
  std::chrono::microseconds keep_time{200};
  /// nullopt: unknown token. Empty function: no tokens are configured, everybody passes.
  std::function<std::optional<Identity>(std::string_view bearer)> authenticate;
};

class Server {
 public:
  virtual ~Server() = default;
  /// `pattern`: "/v1/runs/{id}/steps/{step}". Before listen() only. A path that exists under another method
  /// is 405, no path 404. With a `glance` the handler runs only for what that has no answer to.
  virtual void route(std::string method, std::string pattern, Access access, Handler handler, Glance glance = {}) = 0;
  /// Binds and serves on threads of its own. Returns the address with the real port. Error `listen_failed`
  /// (in use, not of this machine, malformed). Once only.
  [[nodiscard]] virtual Result<std::string> listen() = 0;
  /// Parked requests that watch `topic` run again. Thread-safe, never blocks.
  virtual void wake(std::string_view topic) = 0;
  /// No new connection is accepted, idle ones are closed; requests in hand go on. Returns at once.
  /// Thread-safe.
  virtual void stop_accepting() = 0;
  /// Ends everything and joins the threads; parked requests are answered by a last run with waited_out.
  /// Idempotent.
  virtual void stop() = 0;
};

/// `clock` must outlive the server.
[[nodiscard]] std::unique_ptr<Server> make_server(const Clock& clock, Options options);

}  // namespace holdfast::http
