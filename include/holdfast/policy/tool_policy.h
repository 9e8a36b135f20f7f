#pragma once
// The effective rules for one tool: the tool's own, else its server's, else the defaults. Plain data; the
// catalog makes it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/policy/words.h"

namespace holdfast {

struct Backoff {
  Duration base{250};
  Duration cap{10'000};
};

struct KeyRule {
  enum class Place { header, argument, meta } place = Place::header;
  std::string name;  // header name, JSON pointer into the arguments, or _meta member name
  Duration retention{24 * 3600 * 1000};
};

/// `pointer` leads to a value that equals / differs from a JSON text; where a pointer leads nowhere, a
/// check is inconclusive, and for a `success` rule what is not there equals nothing.
struct Match {
  std::string pointer;
  std::string value;    // canonical JSON text
  bool negate = false;  // `not` instead of `equals`
};

struct CheckRule {
  std::string server;
  std::string tool;
  std::string args;  // JSON template; ${key} and ${args/...} are filled in
  Match found;
  Duration settle{0};
  Duration ask_for{24 * 3600 * 1000};
};

struct FallbackRule {
  enum class Source { cached, fixed, tool } source = Source::fixed;
  Duration max_age{0};       // cached
  std::string value;         // fixed: JSON text
  std::string server, tool;  // tool
};

/// Patterns are found anywhere in a tool error's text, without regard to ASCII case.
struct ErrorPatterns {
  std::vector<std::string> business{"validation", "not found", "permission", "-32602"};
  std::vector<std::string> rate_limit;
  std::vector<std::string> ambiguous{"timed out", "upstream", "connection", "500", "502", "503", "504"};
};

struct BreakerRule {
  bool enabled = true;
  std::uint32_t consecutive_failures = 5;
  double failure_rate = 0.5;
  std::uint32_t min_calls = 10;
  Duration window{60'000};
  Duration cooldown{20'000};
  Duration max_cooldown{300'000};
};

/// A deadline taken from what calls of the tool took lately: the percentile times the factor, between floor and
/// ceiling. `sized_deadline.h` has the rules.
struct AutoDeadline {
  double percentile = 99;  // 50 to 99.9
  double factor = 1.5;     // 1 to 100
  Duration floor{1'000};
  Duration ceiling{30'000};
};

struct ToolPolicy {
  std::string server;
  std::string tool;
  Effect effect = Effect::write;
  bool declared = true;  // by the configuration; false: what a live server says may still change it
  Duration deadline{3'000};            // with `sized`: its ceiling
  std::optional<AutoDeadline> sized;  // instead of a fixed deadline
  std::uint32_t max_attempts = 3;
  Backoff backoff;
  std::string target;  // template, empty: server/tool
  std::optional<KeyRule> key;
  std::optional<CheckRule> check;
  std::optional<FallbackRule> fallback;
  std::optional<Match> success;  // a 2xx that fails it is a tool error
  std::vector<int> refusals;     // statuses that prove the effect did not happen
  ErrorPatterns errors;
  bool single_step = false;
  Duration linger{0};
  BreakerRule breaker;                      // the tool's own; the server's is in the catalog
  std::vector<std::string> path_arguments;  // arguments that the request's path needs (plain HTTP)

  /// read, keyed, checkable or plain, in that order of precedence.
  [[nodiscard]] Kind kind() const {
    if (effect == Effect::read) return Kind::read;
    return key ? Kind::keyed : check ? Kind::checkable : Kind::plain;
  }
};

}  // namespace holdfast
