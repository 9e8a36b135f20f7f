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

}  // namespace holdfast::cli
