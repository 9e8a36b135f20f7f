#pragma once
// Why a name lookup failed. libcurl's resolver does not say whether a name does not exist or could not be
// asked for.
#include <functional>
#include <memory>
#include <string>

namespace holdfast::tools {

/// Asks the system once more on a thread of its own and calls `answer(true)` there when the name does not
/// exist, `answer(false)` when that cannot be said. A lookup cannot be interrupted, so the thread is left
/// alone: `answer` must own all that it needs. Returns false, without a call, when too many lookups are out
/// or no thread can be had.
[[nodiscard]] bool ask_whether_missing(std::string host, std::function<void(bool missing)> answer);

}  // namespace holdfast::tools
