// A client's bytes: head, admission, and the handler's run over the connection layer in memory.
#include "fuzz.h"
#include "http/admission.h"
#include "http/head.h"
#include "http/processor.h"

using namespace holdfast;
using namespace holdfast::http;

namespace {

Outcome echo(Request& request) {
  Response response;
  for (const auto& [name, value] : request.query) response.body += name + "=" + value + "\n";
  response.body += request.body;
  response.headers.emplace_back("Location", "/v1/runs/x");
  return response;
}

struct Listener {
  Listener() : processor(topics, Duration{1'000}) {
    router.add("POST", "/v1/runs", Access::client, echo);
    router.add("GET", "/v1/runs/{id}", Access::open, echo);
    router.add("POST", "/v1/runs/{id}/steps/{step}", Access::open, echo);
    options.body_bytes = 1024;
    options.authenticate = [](std::string_view token) -> std::optional<Identity> {
      if (token != "t") return std::nullopt;
      return Identity{};
    };
  }
  Router router;
  Options options;
  Topics topics;
  Processor processor;
};

void serve(std::string_view head, std::string_view body) {
  static Listener listener;
  auto admitted = admit(head, listener.router, listener.options, [] { return 0; });
  if (!admitted) {
    const std::string answer = listener.processor.render(to_response(admitted.error()));
    HOLDS(answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5"));
    return;
  }
  HOLDS(admitted->body_length <= listener.options.body_bytes);
  admitted->exchange->request.body = body.substr(0, admitted->body_length);
  const Step step = listener.processor.run(*admitted->exchange);
  HOLDS(step.bytes.starts_with("HTTP/1.1 "));
  const std::size_t end = step.bytes.find("\r\n\r\n");
  HOLDS(end != std::string::npos);
  // Nothing that a client sends may end a line of the answer's head.
  for (std::size_t i = 0; i < end; ++i) HOLDS(step.bytes[i] != '\n' || step.bytes[i - 1] == '\r');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  HeadScanner whole, grown;
  const auto length = whole.scan(bytes);
  for (std::size_t seen = 1; seen < bytes.size(); seen += 1 + seen / 8) {
    const auto so_far = grown.scan(bytes.substr(0, seen));
    if (!so_far) {
      HOLDS(!length);
      return 0;
    }
    if (*so_far != 0) {
      HOLDS(length && *length == *so_far);
      break;
    }
  }
  if (!length || *length == 0) return 0;
  const std::string_view head = bytes.substr(whole.start(), *length - whole.start());
  const auto parsed = parse_head(head);
  if (parsed) {
    HOLDS(parsed->request.headers.count("host") == 1 || parsed->http_1_0);
    HOLDS(!parsed->request.headers.contains("transfer-encoding"));
  }
  serve(head, bytes.substr(*length));
  return 0;
}
