#include "sim/outcome.h"

#include <algorithm>

namespace holdfast::sim {

namespace {

// Statuses whose meaning the failure table fixes; kept here as a list of the simulation's own.
constexpr std::array kRefusing{400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416,
                               417, 421, 422, 423, 424, 425, 426, 428, 431, 451, 501, 505};
constexpr std::array kDoubtful{500, 500, 502, 503, 503, 504, 506, 507, 508, 510, 511, 520, 521, 522,
                               523, 524, 525, 526, 527, 529, 530, 599, 408, 460, 499, 418, 432};
constexpr std::array<std::int64_t, 7> kRefusingCodes{-32700, -32600, -32601, -32602, -32042, -32020, -32022};
constexpr std::array<std::int64_t, 5> kDoubtfulCodes{-32603, -32000, -32019, -32800, -1};

void fail(Script& script, Failure failure, Phase phase, Shown shown) {
  script.evidence.failure = failure;
  script.evidence.phase = phase;
  script.shown = shown;
  script.evidence.bytes_sent = phase < Phase::tx_part ? 0 : 100;
}

void answer_status(Script& script, int status) {
  script.evidence.phase = Phase::parsed;
  script.evidence.answer = Answer::http;
  script.evidence.http_status = status;
  script.evidence.text = "status " + std::to_string(status);
  script.evidence.result = "\"status\"";
}

void never_sent(Dice& dice, Script& script, const Tool& tool) {
  struct Way {
    Failure failure;
    Phase phase;
  };
  constexpr std::array kWays{
      Way{Failure::dns_temporary, Phase::dns},     Way{Failure::dns_not_found, Phase::dns},
      Way{Failure::connect, Phase::tcp},           Way{Failure::connect, Phase::tcp},
      Way{Failure::local_resource, Phase::local},  Way{Failure::proxy, Phase::proxy},
      Way{Failure::tls_handshake, Phase::tls},     Way{Failure::tls_certificate, Phase::tls},
      Way{Failure::dead_connection, Phase::tx0},   Way{Failure::connection_lost, Phase::tx0},
      Way{Failure::process_start, Phase::local},   Way{Failure::handshake, Phase::local},
      Way{Failure::not_listed, Phase::local},      Way{Failure::address_refused, Phase::dns}};
  const Way& way = dice.pick(kWays);
  fail(script, way.failure, way.phase, Shown::unsent);
  script.evidence.over_mcp = tool.mcp;
  script.leaves = script.acts = false;
}

void truncated(Dice& dice, Script& script, const Tool& tool) {
  fail(script, tool.mcp && dice.chance(500) ? Failure::stream_ended : Failure::body_cut, Phase::rx_part_body,
       tool.mcp ? Shown::doubtful : Shown::done);
  script.evidence.http_status = 200;
  script.head_seen = true;
  script.silent = dice.chance(400);
}

void malformed(Dice& dice, Script& script, const Tool& tool) {
  switch (dice.between(0, 4)) {
    case 0:
      fail(script, Failure::bad_framing, Phase::rx_part_head, Shown::doubtful);
      break;
    case 1:
      fail(script, Failure::foreign, Phase::rx_all, Shown::doubtful);
      script.evidence.http_status = 200;
      break;
    case 2:
      fail(script, Failure::body_unreadable, Phase::rx_all, tool.mcp ? Shown::doubtful : Shown::done);
      script.evidence.http_status = 200;
      break;
    case 3:
      fail(script, Failure::too_large, Phase::rx_part_body, Shown::done);
      script.evidence.http_status = 200;
      break;
    default:
      fail(script, tool.mcp ? Failure::malformed_rpc : Failure::bad_framing,
           tool.mcp ? Phase::rx_all : Phase::rx_part_head, Shown::doubtful);
      script.evidence.http_status = tool.mcp ? 202 : 0;
  }
  if (script.shown == Shown::doubtful) script.acts = dice.chance(500);
}

void status(Dice& dice, Script& script, int code, const ToolPolicy& policy, bool doubtful) {
  answer_status(script, code);
  const bool reviewed = std::find(policy.refusals.begin(), policy.refusals.end(), code) != policy.refusals.end();
  script.shown = doubtful && !reviewed ? Shown::doubtful : Shown::refused;
  script.acts = script.shown == Shown::doubtful && dice.chance(500);
}

void redirect(Dice& dice, Script& script, const Tool& tool, const ToolPolicy& policy) {
  constexpr std::array kCodes{301, 302, 303, 304, 307, 308};
  const int code = dice.pick(kCodes);
  status(dice, script, code, policy, code != 307 && code != 308);
  script.evidence.location = "http://elsewhere/";
  if (code == 303 && !tool.mcp) {
    script.shown = Shown::done;
    script.acts = true;
  }
}

void tool_error(Dice& dice, Script& script, const ToolPolicy& policy) {
  script.evidence.phase = Phase::parsed;
  script.evidence.answer = Answer::tool_error;
  script.evidence.http_status = 200;
  script.evidence.result = R"({"content":[],"isError":true})";
  switch (dice.between(0, 3)) {
    case 0:
      script.evidence.text = "validation failed";
      script.shown = Shown::refused;
      break;
    case 1:
      script.evidence.text = "quota exceeded";
      script.shown = policy.single_step ? Shown::refused : Shown::doubtful;
      break;
    case 2:
      script.evidence.text = "upstream timed out";
      script.shown = Shown::doubtful;
      break;
    default:
      script.evidence.text = "it did not work";
      script.shown = Shown::refused;
  }
  script.acts = script.shown == Shown::doubtful && dice.chance(500);
}

void rpc_error(Dice& dice, Script& script) {
  script.evidence.phase = Phase::parsed;
  script.evidence.answer = Answer::rpc_error;
  script.evidence.http_status = 200;
  const bool refusing = dice.chance(500);
  script.evidence.rpc_code = refusing ? dice.pick(kRefusingCodes) : dice.pick(kDoubtfulCodes);
  script.shown = refusing ? Shown::refused : Shown::doubtful;
  script.acts = !refusing && dice.chance(500);
}

}  // namespace

Evidence good_answer(const Tool& tool, std::string value) {
  Evidence evidence;
  evidence.phase = Phase::parsed;
  evidence.http_status = 200;
  evidence.bytes_sent = 100;
  evidence.bytes_received = 50;
  evidence.over_mcp = tool.mcp;
  evidence.answer = tool.mcp ? Answer::result : Answer::http;
  evidence.result =
      tool.mcp ? "{\"content\":[],\"structuredContent\":" + std::move(value) + "}" : std::move(value);
  return evidence;
}

Script write_script(Dice& dice, Outcome outcome, const Tool& tool, const ToolPolicy& policy) {
  Script script;
  script.outcome = outcome;
  script.evidence.over_mcp = tool.mcp;
  script.evidence.bytes_sent = 100;
  switch (outcome) {
    case Outcome::good:
    case Outcome::slow:
      break;
    case Outcome::never_sent:
      never_sent(dice, script, tool);
      break;
    case Outcome::cut_while_sending:
      fail(script, Failure::send_cut, Phase::tx_part, Shown::doubtful);
      script.acts = script.leaves = dice.chance(100);
      break;
    case Outcome::lost_before_effect:
      fail(script, tool.mcp && dice.chance(300) ? Failure::process_exit : Failure::connection_lost,
           Phase::tx_all, Shown::doubtful);
      script.acts = false;
      script.leaves = dice.chance(500);
      script.silent = dice.chance(500);
      break;
    case Outcome::lost_after_effect:
      fail(script, Failure::connection_lost, dice.chance(500) ? Phase::tx_all : Phase::rx_part_head,
           Shown::doubtful);
      script.silent = dice.chance(400);
      break;
    case Outcome::truncated:
      truncated(dice, script, tool);
      break;
    case Outcome::malformed:
      malformed(dice, script, tool);
      break;
    case Outcome::refused:
      status(dice, script, dice.pick(kRefusing), policy, false);
      if (tool.mcp && dice.chance(250)) {
        script.evidence = {};
        script.evidence.over_mcp = true;
        fail(script, Failure::session_lost, Phase::rx_all, Shown::refused);
        script.evidence.http_status = 404;
        script.session_lost = true;
      }
      break;
    case Outcome::limited_with_time:
      status(dice, script, 429, policy, false);
      script.evidence.retry_after = std::to_string(dice.between(1, 6));
      break;
    case Outcome::limited_without_time:
      status(dice, script, 429, policy, false);
      break;
    case Outcome::server_error:
      status(dice, script, dice.pick(kDoubtful), policy, true);
      if (script.evidence.http_status == 503 && dice.chance(400))
        script.evidence.retry_after = std::to_string(dice.between(1, 4));
      break;
    case Outcome::redirect:
      redirect(dice, script, tool, policy);
      break;
    case Outcome::tool_error:
      tool_error(dice, script, policy);
      break;
    case Outcome::rpc_error:
      rpc_error(dice, script);
      break;
  }
  script.evidence.over_mcp = tool.mcp;
  return script;
}

}  // namespace holdfast::sim
