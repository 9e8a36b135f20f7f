#include "power_cut/allocations.h"

#include <sqlite3.h>

#include <cstdlib>

namespace holdfast::sweep {

namespace {

sqlite3_mem_methods standard;
std::uint64_t count = 0, to_fail = 0;
int own = 0;

bool refused() {
  return own == 0 && ++count == to_fail;
}
void* x_malloc(int size) {
  return refused() ? nullptr : standard.xMalloc(size);
}
void* x_realloc(void* memory, int size) {
  return refused() ? nullptr : standard.xRealloc(memory, size);
}

/// Before main: SQLite takes its allocator before anything else, or never.
const bool installed = [] {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &standard) != SQLITE_OK) std::abort();
  sqlite3_mem_methods counted = standard;
  counted.xMalloc = x_malloc;
  counted.xRealloc = x_realloc;
  if (sqlite3_config(SQLITE_CONFIG_MALLOC, &counted) != SQLITE_OK) std::abort();
  return true;
}();

}  // namespace

Allocations::Own::Own() {
  ++own;
}
Allocations::Own::~Own() {
  --own;
}

std::uint64_t Allocations::made() {
  return count;
}

void Allocations::fail(std::uint64_t nth) {
  to_fail = nth == 0 ? 0 : count + nth;
}

}  // namespace holdfast::sweep
