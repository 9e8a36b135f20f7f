#pragma once
#include <functional>

namespace holdfast::cli {

/// Blocks SIGTERM, SIGINT and SIGHUP in this thread and in those it starts, and ignores SIGPIPE and SIGXFSZ. Call before any
/// thread exists.
void hold_signals();
/// Returns when SIGTERM or SIGINT comes; from then on a second one ends the process at once, with 128 plus its number. Until
/// then `reload` runs for every SIGHUP and `meanwhile` twice a second, on this thread.
void wait_for_stop(const std::function<void()>& reload, const std::function<void()>& meanwhile);
/// As many descriptors as the system lets this process have.
void raise_descriptor_limit();

}  // namespace holdfast::cli
