#pragma once
// Short ways to say what an attempt showed.
#include <array>
#include <string>
#include <utility>

#include "holdfast/policy/classify.h"

namespace holdfast::sample {

inline constexpr std::array kKinds{Kind::read, Kind::keyed, Kind::checkable, Kind::plain};
inline constexpr std::array kWrites{Kind::keyed, Kind::checkable, Kind::plain};

inline Evidence failed(Failure failure, Phase phase, int status = 0, bool over_mcp = false) {
  return {.phase = phase, .failure = failure, .http_status = status, .over_mcp = over_mcp};
}

inline Evidence http(int status, std::string text = {}, std::string retry_after = {}) {
  return {.phase = Phase::parsed,
          .answer = Answer::http,
          .http_status = status,
          .result = "null",
          .text = std::move(text),
          .retry_after = std::move(retry_after)};
}

inline Evidence rpc(std::int64_t code, int status = 200) {
  return {.phase = Phase::parsed,
          .answer = Answer::rpc_error,
          .http_status = status,
          .rpc_code = code,
          .over_mcp = true};
}

inline Evidence tool_error(std::string text) {
  return {.phase = Phase::parsed,
          .answer = Answer::tool_error,
          .http_status = 200,
          .result = R"({"isError":true})",
          .text = std::move(text),
          .over_mcp = true};
}

/// A tool with every safety declared, so that each kind has what it needs.
inline ToolPolicy policy() {
  ToolPolicy p;
  p.server = "api";
  p.tool = "charge";
  p.key = KeyRule{.name = "Idempotency-Key"};
  p.check = CheckRule{.tool = "find"};
  p.errors = {.business = {"no such"}, .rate_limit = {"quota"}, .ambiguous = {"upstream"}};
  return p;
}

}  // namespace holdfast::sample
