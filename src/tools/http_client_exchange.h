#pragma once
// One HTTP exchange on a libcurl easy handle: set-up, and what was seen of it. Lives on the client's thread.
#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/tools/http_client.h"
#include "tools/http_client_encoding.h"

namespace holdfast::tools {

/// Facts of one exchange, gathered by callbacks. Bytes count what the kernel accepted or delivered.
struct Seen {
  bool socket_opened = false;    // the name was resolved and a socket made for it
  bool address_refused = false;  // a resolved address was forbidden
  bool local_resource = false;   // no descriptor or buffer for a socket
  bool tls_started = false;      // connected, the first handshake message is out
  bool ready = false;            // connected, handshake done, about to send
  bool reused = false;
  bool resend_stopped = false;  // libcurl wanted to send the request once more on another connection
  std::uint64_t sent = 0;
  std::uint64_t body_sent = 0;
  int head_end = 0;  // how much of CR LF CR LF the last sent bytes match; 4: the head is out
  std::uint64_t received = 0;
  bool raw_received = false;  // the kernel delivered bytes, though libcurl may have shown none
  std::size_t header_bytes = 0;
  bool in_head = false;
  bool head_complete = false;  // of the final answer
  int status = 0;
  HttpHeaders headers;
  std::unique_ptr<BodyDecoder> decoder;  // of an encoded body
  std::string body;
  std::uint64_t body_bytes = 0;  // decompressed
  bool too_large = false;
  bool bad_framing = false;
  std::string problem;  // one sentence for the two above
  bool streaming = false;
  bool stopped = false;  // chunk() wanted no more
  std::uint64_t drained = 0;
};

struct Exchange;

/// What exchanges need from the client that owns them.
class ExchangeHost {
 public:
  virtual ~ExchangeHost() = default;
  /// chunk() wanted no more: report, and let the connection drain.
  virtual void stopped(Exchange& exchange) = 0;

  struct Socket {
    RequestId maker = 0;       // descriptors' numbers come back
    Exchange* user = nullptr;  // the exchange that it serves now
    std::string route;         // its key in `routes` once it is connected
  };
  /// Every open socket, and how to find it by both ends' addresses: all that libcurl tells about a connection
  /// that it reuses.
  std::unordered_map<curl_socket_t, Socket> sockets;
  std::unordered_map<std::string, curl_socket_t> routes;
};

struct Exchange {
  enum class State { idle, running, lingering, draining };
  using Timers = std::multimap<std::int64_t, Exchange*>;

  explicit Exchange(ExchangeHost& owner);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  ExchangeHost& host;
  CURL* easy = nullptr;
  RequestId id = 0;
  HttpRequest request;
  HttpCallbacks callbacks;
  State state = State::idle;
  Instant started{};
  Timers::node_type timer_node;  // kept between uses
  Timers::iterator timer;
  curl_socket_t socket = CURL_SOCKET_BAD;  // plain HTTP only, from the moment that it is ready
  std::vector<curl_socket_t> opened;       // sockets made for it
  std::uint64_t socket_baseline = 0;       // bytes that the socket had received before this exchange
  int hop = 0;                             // redirects followed
  bool other_origin = false;               // no configured header may go there
  bool keep_literals = true;               // literal addresses in the URL are taken as meant
  // Kept between uses, since calls of one tool often go to the same URL: `judged_url` in parts (nullptr when libcurl can't read it), and whether its
  // host is an address.
  std::string judged_url;
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url_parts{nullptr, curl_url_cleanup};
  bool literal_host = false;
  Seen seen;
  std::uint64_t earlier_sent = 0, earlier_received = 0;  // of the hops before this one
  bool looking_up = false;                               // a second lookup asks why the first one failed
  std::array<char, CURL_ERROR_SIZE> error{};

  // The header list is built in place: nodes point into header_text.
  std::string header_text;
  std::vector<curl_slist> header_nodes;
};

/// Checks the request and sets the handle up for the current hop; an error sentence when the request must not
/// leave.
[[nodiscard]] std::optional<std::string> prepare(Exchange& exchange, Duration time_left);
/// Forgets everything of the last request.
void reset(Exchange& exchange);
[[nodiscard]] bool is_tls(const Exchange& exchange);
/// How far the exchange has come, by the failure table's ladder.
[[nodiscard]] Phase phase_of(const Exchange& exchange);
/// All of the request has been accepted by the kernel.
[[nodiscard]] bool all_sent(const Exchange& exchange);
/// The exchange no longer uses its socket.
void leave_socket(Exchange& exchange);
/// Makes the kernel forget what it has accepted and not sent yet, once the connection is closed.
void drop_unsent(Exchange& exchange);
/// Asks the kernel what libcurl does not tell: whether bytes of an unfinished status line have come.
void look_at_socket(Exchange& exchange);

/// The outcome of a transfer that libcurl has ended with `code`. Moves headers and body out.
[[nodiscard]] HttpOutcome outcome_of(Exchange& exchange, CURLcode code);
/// The outcome when our own timer or a cancel ends it. Copies, because a lingering exchange goes on.
[[nodiscard]] HttpOutcome cut_outcome(Exchange& exchange, Failure failure, Instant now);

}  // namespace holdfast::tools
