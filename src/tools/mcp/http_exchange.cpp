#include "tools/mcp/http_exchange.h"

#include "tools/mcp/sse.h"

namespace holdfast::tools::mcp {
namespace {

struct Exchange {
  explicit Exchange(std::size_t max_bytes) : parser(max_bytes) {}
  SseParser parser;
  std::optional<Evidence> answer;
  bool streamed = false;
};

Evidence evidence_of(const Exchange& exchange, const HttpOutcome& outcome, std::int64_t id,
                     const Limits& limits) {
  if (exchange.answer) return with_answer(exchange_evidence(outcome), *exchange.answer);
  if (!exchange.streamed) return judge(outcome, id, limits);
  Evidence e = exchange_evidence(outcome);
  if (e.failure != Failure::none) return e;
  e.failure = exchange.parser.over_limit() ? Failure::too_large : Failure::stream_ended;
  return e;
}

}  // namespace

RequestId rpc_exchange(HttpClient& http, HttpRequest request, std::int64_t id, const Limits& limits,
                       std::function<void(RpcReply)> done) {
  const auto exchange = std::make_shared<Exchange>(limits.result_bytes);
  request.max_body_bytes = limits.result_bytes;
  HttpCallbacks callbacks;
  callbacks.stream = [exchange](int status, const HttpHeaders& headers) {
    return exchange->streamed = is_success(status) && is_event_stream(headers);
  };
  callbacks.chunk = [exchange, id, depth = limits.json_depth](std::string_view piece) {
    return exchange->parser.feed(piece, [&](const SseEvent& event) {
      exchange->answer = judge_event(event.data, id, depth);
      return !exchange->answer;
    });
  };
  callbacks.done = [exchange, id, limits, done = std::move(done)](HttpOutcome outcome) {
    done({evidence_of(*exchange, outcome, id, limits), std::move(outcome.headers)});
  };
  return http.start(std::move(request), std::move(callbacks));
}

}  // namespace holdfast::tools::mcp
