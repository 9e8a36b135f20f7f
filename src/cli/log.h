#pragma once
#include <string>
#include <vector>

namespace holdfast::cli {

/// Sends the log to stderr as JSON lines `{at, level, message}`. Configured secrets are taken out of every line, and floods are
/// cut as LogValve says.
void start_log(std::vector<std::string> secrets);
/// From now on these are taken out too. Thread-safe; nothing without start_log().
void add_log_secrets(const std::vector<std::string>& secrets);

}  // namespace holdfast::cli
