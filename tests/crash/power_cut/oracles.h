#pragma once
#include "power_cut/world.h"

namespace holdfast::sweep {

/// Of a ledger that nobody has open: what the journal and packed runs hold is brought into rows. Fails the test case otherwise.
void as_rows(sim::Vfs& vfs, const ledger::sqlite::Tuning& tuning);
/// The database is sound, what was acknowledged is there, and no tool saw more than the ledger knows. Fails the test case otherwise.
void check(World& world);
/// In the moment of a send: its row survives if the power is cut now.
void check_send(World& world, const std::string& marker);

}  // namespace holdfast::sweep
