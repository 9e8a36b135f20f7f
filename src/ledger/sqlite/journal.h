#pragma once
// The records of commits that are not yet in the tables, each over as many slots as it needs, from slot 0 on. A slot is one page of its table and
// is overwritten where it lies: nothing is freed, nothing moves, and a commit dirties no other page.
#include <string>
#include <string_view>
#include <vector>

#include "ledger/sqlite/connection.h"

namespace holdfast::ledger::sqlite {

class Journal {
 public:
  explicit Journal(std::uint32_t slots) : slots_(slots) {}

  // Inside the writer's transaction; all throw SQLite::Exception. What they did counts from committed() on.

  /// Records that are not in the tables, oldest first.
  [[nodiscard]] std::vector<std::string> load(Connection& connection);
  [[nodiscard]] bool fits(std::size_t bytes) const;
  void write(Connection& connection, std::string_view record);
  /// All records are in the tables: the next one starts at slot 0.
  void folded(Connection& connection);

  void committed() { stored_ = now_; }
  void rolled_back() { now_ = stored_; }
  [[nodiscard]] std::uint32_t used() const { return stored_.used; }

 private:
  struct State {
    std::int64_t newest = 0;  // record
    std::uint32_t used = 0;   // slots
  };
  std::uint32_t slots_;
  State stored_, now_;
};

}  // namespace holdfast::ledger::sqlite
