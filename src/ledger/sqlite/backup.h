#pragma once
#include <string>

#include "holdfast/core/error.h"

namespace holdfast::ledger::sqlite {

/// A consistent copy of the database at `from`, complete and durable or not there at all. Any thread; readers
/// and the writer go on. Errors: `exists`, `storage_full`, `storage_error`.
[[nodiscard]] Result<void> copy_database(const std::string& from, const std::string& to);

}  // namespace holdfast::ledger::sqlite
