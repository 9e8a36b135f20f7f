#pragma once
// The closed set of what can become of one call, and what a transport would show of it.
#include "holdfast/policy/evidence.h"
#include "sim/tools.h"

namespace holdfast::sim {

enum class Outcome : std::uint8_t {
  good,
  never_sent,
  cut_while_sending,
  lost_before_effect,
  lost_after_effect,
  truncated,
  malformed,
  refused,
  limited_with_time,
  limited_without_time,
  server_error,
  redirect,
  tool_error,
  rpc_error,
  slow,
};
inline constexpr int kOutcomes = 15;

/// What evidence shows to somebody who knows the tool's promises. The simulation's own reading, made with the
/// outcome and not from the evidence: the product's classifier is held against it.
enum class Shown : std::uint8_t { nothing, unsent, refused, doubtful, done };

/// How one call goes.
struct Script {
  Outcome outcome = Outcome::good;
  bool leaves = true;   // the tool will have the request
  bool acts = true;     // and do what it says
  bool silent = false;  // no answer ever comes
  bool head_seen = false;  // when we give up, a 2xx head has been read
  bool session_lost = false;
  Shown shown = Shown::done;
  Evidence evidence;
};
[[nodiscard]] Script write_script(Dice& dice, Outcome outcome, const Tool& tool, const ToolPolicy& policy);
/// A complete good answer.
[[nodiscard]] Evidence good_answer(const Tool& tool, std::string value);

}  // namespace holdfast::sim
