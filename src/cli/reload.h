#pragma once
#include <string>
#include <vector>

#include "holdfast/tools/config.h"

namespace holdfast::cli {

/// What a running process can make of a configuration that was read again.
struct Reloaded {
  tools::Config config;               // `next`, with what can't be exchanged as it is in force
  std::vector<std::string> unchanged;  // fields whose new values wait for a restart
};
[[nodiscard]] Reloaded reloaded(const tools::Config& running, tools::Config next);

/// For the audit log, as JSON: `{changed, needs_restart}`, names without values.
[[nodiscard]] std::string what_changed(const tools::Config& running, const Reloaded& next);
/// The same for a reload that did not take place: `{refused}`.
[[nodiscard]] std::string refused_reload(const std::string& why);

}  // namespace holdfast::cli
