#pragma once
#include <string>
#include <vector>

namespace holdfast::cli {

/// Sends the log to stderr as JSON lines `{at, level, message}`. Configured secrets are taken out of every
/// line; more than 50 lines in 10 s are counted instead of written, and the count follows.
void start_log(std::vector<std::string> secrets);

}  // namespace holdfast::cli
