#pragma once
namespace holdfast::sim {

/// SQLite's memory comes from lists of free pieces by size: Debian builds it without its own ones, and asks for a
/// dozen pieces a statement. For one thread, before SQLite's first use; nothing goes back to the system. With a
/// sanitizer, which wants to see each piece, this does nothing.
void use_pools_for_sqlite();

}  // namespace holdfast::sim
