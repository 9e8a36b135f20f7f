// What an MCP server answers to `tools/call`: the body of an HTTP answer, or one message of a stream.
#include "fuzz.h"
#include "holdfast/policy/classify.h"
#include "tools/mcp/http_messages.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr int kStatuses[] = {200, 200, 200, 202, 204, 301, 400, 401, 404, 408, 409, 429, 500, 503};
  tools::HttpOutcome outcome;
  outcome.phase = Phase::rx_all;
  outcome.status = kStatuses[data[0] % std::size(kStatuses)];
  outcome.headers.list.emplace_back("content-type", data[1] % 2 == 0 ? "application/json" : "text/html");
  const std::string_view body = fuzz::text_of(data + 2, size - 2);
  outcome.body = body;
  (void)tools::mcp::peek_id(body);
  const auto message = tools::mcp::read_message(body, 64);
  if (message) (void)tools::mcp::read_answer(*message);
  const Evidence judged = tools::mcp::judge(outcome, 7, {});
  ToolPolicy policy;
  const Judgement judgement = classify(judged, policy, Kind::plain, false);
  // Only a complete answer with our id and a result proves that a plain write landed.
  if (judgement.verdict == Verdict::ok) {
    HOLDS(message && message->id == 7);
    HOLDS(json::parse(judged.result));
  }
  if (judgement.verdict == Verdict::ambiguous) HOLDS(judgement.action == Action::unknown);
  if (const auto evidence = tools::mcp::judge_event(body, 7, 64)) (void)classify(*evidence, policy, Kind::plain, false);
  (void)tools::mcp::read_discovery(judged);
  (void)tools::mcp::says_session_dead(judged, true);
  (void)tools::mcp::read_revision(body);
  return 0;
}
