#pragma once
#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

/// Makes durable whatever the page cache shows of the ledger: after a sync that failed it goes on showing what is not on the disk, and takes
/// it for written (decision 32). At start, before anything is committed or believed. Nobody's reads are disturbed, and no byte changes.
/// Throws SQLite::Exception.
void write_again(Connection& connection);

}  // namespace holdfast::ledger::sqlite
