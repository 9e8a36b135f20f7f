#pragma once
// Which row of the failure table an attempt belongs to.
#include <string_view>

#include "holdfast/policy/evidence.h"
#include "holdfast/policy/tool_policy.h"

namespace holdfast {

/// A row's id, or "" for a plain success of an MCP tool.
struct Finding {
  std::string_view row;
  bool complete = false;   // decided by a whole answer of the agreed kind
  bool by_status = false;  // decided by the HTTP status, so the head of an answer was read
  bool refusal = false;    // the tool's `refusals` name the status: nothing happened
};

/// Failure first, then the kinds of an MCP answer, then the HTTP status; default-deny: "other".
[[nodiscard]] Finding recognise(const Evidence& evidence, const ToolPolicy& policy, Kind kind);

/// The row with this id; `id` must be one of the table's.
struct Row;
[[nodiscard]] const Row& row_of(std::string_view id);

/// True when `pattern` occurs in `text`, ASCII letters compared without case. An empty pattern occurs
/// nowhere.
[[nodiscard]] bool contains_word(std::string_view text, std::string_view pattern);

}  // namespace holdfast
