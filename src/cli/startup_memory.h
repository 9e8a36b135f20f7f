#pragma once

namespace holdfast::cli {

/// Gives back the memory that only starting up needed: the pages of program text that dynamic linking, the libraries'
/// own set-up and the reading of the configuration went through. Text that is needed again is mapped again from the
/// page cache, without reading the disk. Call once, when the server is ready. Never fails.
void release_startup_memory();

}  // namespace holdfast::cli
