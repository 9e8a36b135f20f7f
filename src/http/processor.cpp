#include "http/processor.h"

#include <httplib.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <typeinfo>
#include <utility>

#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
#error "Compile with the flags of the packaged library: its classes are laid out differently without them."
#endif

namespace holdfast::http {
namespace {

constexpr std::size_t kTopics = 64;  // that one request may watch
constexpr std::size_t kLargeBody = 64 * 1024;  // is not copied behind its head

/// One request in, one answer out. Never blocks, so it needs no deadline; the poller has bounded what comes
/// in.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string_view input) : input_(input) {}

  bool is_readable() const override { return !input_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const std::size_t n = std::min(size, input_.size());
    std::memcpy(to, input_.data(), n);
    input_.remove_prefix(n);
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    output.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }  // never used; the library compares it with FD_SETSIZE

  std::string output;

 private:
  std::string_view input_;
};

void append_chunk(std::string& out, std::string_view data, bool framed) {
  if (data.empty()) return;
  if (!framed) {
    out += data;
    return;
  }
  out += fmt::format("{:x}\r\n", data.size());
  out += data;
  out += "\r\n";
}

std::string stream_head(const Exchange& exchange, std::string_view content_type) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\n{}{}\r\n",
                     content_type, exchange.http_1_0 ? "" : "Transfer-Encoding: chunked\r\n",
                     exchange.close_after || exchange.http_1_0 ? "Connection: close\r\n" : "");
}

/// The next piece of an endless answer, framed as a chunk where the client understands chunks.
Step stream_step(Exchange& exchange, const Stream& piece) {
  Step step{.next = Step::Next::park, .until = piece.until};
  if (!exchange.streaming) step.bytes = stream_head(exchange, piece.content_type);
  exchange.streaming = true;
  append_chunk(step.bytes, piece.data, !exchange.http_1_0);
  if (piece.end) {
    if (!exchange.http_1_0) step.bytes += "0\r\n\r\n";
    step.next = exchange.http_1_0 ? Step::Next::close : Step::Next::finish;
  }
  return step;
}

}  // namespace

class Processor::Library final : public httplib::Server {
 public:
  explicit Library(Duration idle_time) {
    set_keep_alive_timeout(idle_time.count() / 1000);
    set_keep_alive_max_count(1'000'000);
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& to) {
      answer(to);
      return HandlerResponse::Handled;
    });
  }

  /// The bytes of `response`; none when the library did not ask for it.
  Step process(std::string_view method, std::string_view path, bool close, Response response) {
    response_ = std::move(response);
    is_head_ = method == "HEAD";
    large_ = {};
    // Nothing of the client's headers goes in: the library would decode, range, compress and log by them.
    const std::string head =
        fmt::format("{} {} HTTP/1.1\r\n{}\r\n", method, path, close ? "Connection: close\r\n" : "");
    MemoryStream stream(head);
    bool closed = close;
    const bool processed = process_request(stream, close, closed, nullptr);
    if (!processed || std::exchange(response_, std::nullopt)) return {};
    large_.bytes.insert(0, stream.output);
    return std::move(large_);
  }

 private:
  bool process_and_close_socket(socket_t) override { return false; }  // its accept loop is never started

  void answer(httplib::Response& to) {
    auto response = std::exchange(response_, std::nullopt);
    if (!response) return;
    to.status = response->status;
    for (const auto& [name, value] : response->headers) to.set_header(name, value);
    to.set_header("Accept-Ranges", "none");  // else the library promises ranges to HEAD
    if (response->shared_body != nullptr || response->body.size() >= kLargeBody)
      return answer_large(to, std::move(*response));
    if (!response->body.empty() || response->status != 204)
      to.set_header("Content-Type", response->content_type);
    to.body = std::move(response->body);
  }

  /// The library writes the head for a body of this length. The body is not copied through it: it asks no provider for
  /// anything, because it was never started and takes that for the end.
  void answer_large(httplib::Response& to, Response response) {
    if (response.shared_body != nullptr) {
      large_ = {.bytes = std::move(response.body), .tail = std::move(response.shared_body), .tail_is_shared = true};
    } else {
      large_.tail = std::make_shared<const std::string>(std::move(response.body));
    }
    to.set_content_provider(large_.bytes.size() + large_.tail->size(), response.content_type,
                            [](std::size_t, std::size_t, httplib::DataSink&) { return false; });
    if (is_head_) large_ = {};
  }

  std::optional<Response> response_;  // until it has been asked for
  bool is_head_ = false;
  Step large_;  // the body of the answer, when it is large
};

Processor::Processor(Topics& topics, Duration idle_time)
    : topics_(topics), library_(std::make_unique<Library>(idle_time)) {}
Processor::~Processor() = default;

template <class Answer>
std::optional<Outcome> Processor::call(Exchange& exchange, const Answer& answer) {
  exchange.request.state = &exchange.state;
  exchange.request.watch = [&](std::string_view topic) {
    if (exchange.topics.size() == kTopics) return;
    exchange.topics.emplace_back(topic);
    topics_.watch(exchange.connection, topic);
  };
  try {
    return answer(exchange.request);
  } catch (const std::exception& e) {
    spdlog::error("handler of {} {} threw {}", exchange.route->method, exchange.route->pattern,
                  typeid(e).name());
  } catch (...) {
    spdlog::error("handler of {} {} threw", exchange.route->method, exchange.route->pattern);
  }
  return problem(500, {"internal", "Something went wrong here; the request may be repeated.", ""});
}

Step Processor::to_step(Exchange& exchange, Outcome outcome) {
  if (const auto* park = std::get_if<Park>(&outcome)) return {.next = Step::Next::park, .until = park->until};
  if (const auto* piece = std::get_if<Stream>(&outcome)) return stream_step(exchange, *piece);
  // An answer after the head of a stream cannot be told to the client any more: the stream breaks off.
  if (exchange.streaming) return {.next = Step::Next::close};
  Step step = library_->process(exchange.request.method, exchange.sent_path, exchange.close_after,
                                std::get<Response>(std::move(outcome)));
  step.next = exchange.close_after || step.bytes.empty() ? Step::Next::close : Step::Next::finish;
  return step;
}

Step Processor::run(Exchange& exchange) {
  return to_step(exchange, *call(exchange, exchange.route->handler));
}

std::optional<Step> Processor::glance(Exchange& exchange) {
  auto outcome = call(exchange, exchange.route->glance);
  if (!outcome) return std::nullopt;
  return to_step(exchange, std::move(*outcome));
}

std::string Processor::render(Response response) {
  return library_->process("GET", "/", true, std::move(response)).bytes;
}

}  // namespace holdfast::http
