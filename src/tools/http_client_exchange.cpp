#include "tools/http_client_exchange.h"

#include <algorithm>
#include <cstring>

#include "core/ascii.h"
#include "tools/http_client_address.h"
#include "tools/http_client_callbacks.h"

namespace holdfast::tools {
namespace {

// Half of what makes libcurl ask for permission (Expect: 100-continue) by itself. Each line of ours costs a look for every field that it knows.
constexpr std::size_t kLargeBody = 512 * 1024;
constexpr auto kEncodings = "gzip, deflate";  // what BodyDecoder knows

template <class T>
void set(Exchange& exchange, CURLoption option, T value) {
  curl_easy_setopt(exchange.easy, option, value);
}

void set_constants(Exchange& exchange) {
  Exchange* const self = &exchange;
  set(exchange, CURLOPT_PRIVATE, static_cast<void*>(self));
  set(exchange, CURLOPT_NOSIGNAL, 1L);
  set(exchange, CURLOPT_PROXY, "");
  set(exchange, CURLOPT_NOPROXY, "*");
  set(exchange, CURLOPT_PROTOCOLS_STR, "http,https");
  set(exchange, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(exchange, CURLOPT_HTTP09_ALLOWED, 0L);
  set(exchange, CURLOPT_TCP_NODELAY, 1L);
  set(exchange, CURLOPT_TCP_FASTOPEN, 0L);
  set(exchange, CURLOPT_FOLLOWLOCATION, 0L);
  set(exchange, CURLOPT_PATH_AS_IS, 1L);
  set(exchange, CURLOPT_HTTP_CONTENT_DECODING, 0L);  // BodyDecoder does it
  set(exchange, CURLOPT_NOPROGRESS, 1L);
  // Without it, taking away a transfer waits for its name lookup to end.
  set(exchange, CURLOPT_QUICK_EXIT, 1L);
  set(exchange, CURLOPT_ERRORBUFFER, exchange.error.data());
  set(exchange, CURLOPT_DEBUGFUNCTION, &on_debug);
  set(exchange, CURLOPT_DEBUGDATA, static_cast<void*>(self));
  set(exchange, CURLOPT_HEADERFUNCTION, &on_header);
  set(exchange, CURLOPT_HEADERDATA, static_cast<void*>(self));
  set(exchange, CURLOPT_WRITEFUNCTION, &on_body);
  set(exchange, CURLOPT_WRITEDATA, static_cast<void*>(self));
  set(exchange, CURLOPT_OPENSOCKETFUNCTION, &on_open_socket);
  set(exchange, CURLOPT_OPENSOCKETDATA, static_cast<void*>(self));
  set(exchange, CURLOPT_CLOSESOCKETFUNCTION, &on_close_socket);
  set(exchange, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(&exchange.host));
  set(exchange, CURLOPT_PREREQFUNCTION, &on_ready);
  set(exchange, CURLOPT_PREREQDATA, static_cast<void*>(self));
}

void set_method(Exchange& exchange) {
  const HttpRequest& request = exchange.request;
  const bool posts = request.has_body || !request.body.empty();
  set(exchange, CURLOPT_NOBODY, 0L);
  if (posts) {
    set(exchange, CURLOPT_POST, 1L);
    set(exchange, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(exchange, CURLOPT_POSTFIELDS, request.body.data());
  } else {
    set(exchange, CURLOPT_HTTPGET, 1L);
  }
  const bool head = !posts && request.method == "HEAD";
  if (head) set(exchange, CURLOPT_NOBODY, 1L);
  const bool plain = head || request.method == (posts ? "POST" : "GET");
  set(exchange, CURLOPT_CUSTOMREQUEST, plain ? nullptr : request.method.c_str());
}

bool is_token(std::string_view text) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && text.size() <= 256 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kMarks.contains(c);
  });
}

// Fields that are libcurl's own business: a second one would make the request's framing ambiguous.
bool is_framing_field(std::string_view lower_name) {
  return lower_name == "content-length" || lower_name == "transfer-encoding" || lower_name == "connection" ||
         lower_name == "expect" || lower_name == "accept-encoding";
}

void add_line(Exchange& exchange, std::string_view name, std::string_view separator, std::string_view value) {
  exchange.header_text.append(name).append(separator).append(value).push_back('\0');
}

void link_lines(Exchange& exchange) {
  auto& nodes = exchange.header_nodes;
  nodes.clear();
  for (std::size_t at = 0; at < exchange.header_text.size();
       at += std::strlen(exchange.header_text.data() + at) + 1)
    nodes.push_back({exchange.header_text.data() + at, nullptr});
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) nodes[i].next = &nodes[i + 1];
  set(exchange, CURLOPT_HTTPHEADER, nodes.data());
}

std::optional<std::string> set_headers(Exchange& exchange) {
  const HttpRequest& request = exchange.request;
  exchange.header_text.clear();
  bool has_type = false;
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return "a configured header has a name that is none; nothing was sent";
    if (has_control_bytes(value)) return "the header " + name + " holds a control byte; nothing was sent";
    const std::string key = ascii::lowered(name);
    if (is_framing_field(key)) continue;
    if (exchange.other_origin && key != "accept" && key != "content-type") continue;
    has_type |= key == "content-type";
    if (ascii::trimmed(value).empty())
      add_line(exchange, name, ";", "");
    else
      add_line(exchange, name, ": ", value);
  }
  add_line(exchange, "Accept-Encoding", ": ", kEncodings);
  if (request.body.size() >= kLargeBody) add_line(exchange, "Expect", ":", "");
  if (!has_type) add_line(exchange, "Content-Type", ":", "");
  if (request.fresh_connection) add_line(exchange, "Connection", ": ", "close");
  link_lines(exchange);
  return std::nullopt;
}

/// Parts that libcurl copies, instead of reading the text anew and putting it together again for every call.
void set_url(Exchange& exchange) {
  const std::string& url = exchange.request.url;
  if (exchange.judged_url != url) {
    const auto origin = origin_of(url);
    exchange.literal_host = origin && !is_host_name(origin->host);
    exchange.url_parts.reset(curl_url());
    // What libcurl itself reads CURLOPT_URL with.
    constexpr unsigned kFlags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS;
    if (exchange.url_parts && curl_url_set(exchange.url_parts.get(), CURLUPART_URL, url.c_str(), kFlags) != CURLUE_OK)
      exchange.url_parts.reset();
    exchange.judged_url = url;
    set(exchange, CURLOPT_URL, url.c_str());
  }
  set(exchange, CURLOPT_CURLU, exchange.url_parts.get());
}

}  // namespace

Exchange::Exchange(ExchangeHost& owner) : host(owner), easy(curl_easy_init()) {
  Timers one;
  timer_node = one.extract(one.emplace(0, this));
  if (easy) set_constants(*this);
}

Exchange::~Exchange() {
  if (easy) curl_easy_cleanup(easy);
}

bool is_tls(const Exchange& exchange) {
  return exchange.request.url.starts_with("https:");
}

std::optional<std::string> prepare(Exchange& exchange, Duration time_left) {
  if (!exchange.easy) return "no memory for another request; nothing was sent";
  const HttpRequest& request = exchange.request;
  if (!is_token(request.method)) return "the method is no token; nothing was sent";
  if (has_control_bytes(request.url) || request.url.find(' ') != std::string::npos)
    return "the URL holds a space or a control byte; nothing was sent";
  if (auto problem = set_headers(exchange)) return problem;
  set_url(exchange);
  set_method(exchange);
  // The debug callback is the only place that sees what the kernel accepted. Until the request is about to leave only a handshake is of interest, and
  // everything else that libcurl would remark costs time; on_ready() turns it on.
  set(exchange, CURLOPT_VERBOSE, is_tls(exchange) ? 1L : 0L);
  set(exchange, CURLOPT_FRESH_CONNECT, request.fresh_connection ? 1L : 0L);
  set(exchange, CURLOPT_FORBID_REUSE, request.fresh_connection ? 1L : 0L);
  // Our own timer ends the exchange; libcurl's must only not come before it, and divides this time over
  // several addresses.
  const std::int64_t most = std::clamp<std::int64_t>(time_left.count() + 1000, 1000, 24 * 3600 * 1000);
  set(exchange, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(most));
  exchange.error[0] = '\0';
  return std::nullopt;
}

void reset(Exchange& exchange) {
  leave_socket(exchange);
  exchange.opened.clear();
  exchange.request = {};
  exchange.callbacks = {};
  exchange.seen = {};
  exchange.state = Exchange::State::idle;
  exchange.hop = 0;
  exchange.other_origin = false;
  exchange.keep_literals = true;
  exchange.looking_up = false;
  exchange.earlier_sent = exchange.earlier_received = 0;
}

}  // namespace holdfast::tools
