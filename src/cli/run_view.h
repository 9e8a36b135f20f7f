#pragma once
// A run as a person reads it.
#include <iosfwd>

#include "cli/client.h"

namespace holdfast::cli {

/// The run in a few lines, then a timeline of its steps, each with its attempts.
void print_run(std::ostream& out, const json::Value& run, const std::vector<const json::Value*>& attempts);
/// Two lines: what came of it and why.
void print_outcome(std::ostream& out, const json::Value& run);
/// One line of `watch`; empty for an event that says nothing to a person.
[[nodiscard]] std::string event_line(const json::Value& event);

/// Asks for the run until it is settled or needs a person, or until its deadline (with `timeout_ms`, until
/// then). A server that was reached once may be away for 30 s. `on_look`, when set, sees each state. Returns
/// the last state, or an exit code that was reported.
struct WaitOptions {
  std::optional<std::int64_t> timeout_ms;
};
[[nodiscard]] std::expected<Document, int> wait_for_run(const Client& client, const std::string& id,
                                                        const WaitOptions& options, std::ostream& err);

/// Reads `--timeout`: a duration or milliseconds. Error `bad_duration`.
[[nodiscard]] Result<std::optional<std::int64_t>> read_timeout(const std::string& text);

/// True when the run will not go on by itself.
[[nodiscard]] bool at_rest(const json::Value& run);

}  // namespace holdfast::cli
