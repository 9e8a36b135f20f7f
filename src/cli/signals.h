#pragma once

namespace holdfast::cli {

/// Blocks SIGTERM and SIGINT in this thread and in those it starts, and ignores SIGPIPE and SIGXFSZ. Call before any
/// thread exists.
void hold_signals();
/// Returns when one of them comes. From then on a second one ends the process at once, with 128 plus its
/// number.
void wait_for_stop();
/// As many descriptors as the system lets this process have.
void raise_descriptor_limit();

}  // namespace holdfast::cli
