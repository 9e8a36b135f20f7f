#pragma once
#include <cstdint>

namespace holdfast::sweep {

/// SQLite's memory, counted. Of the whole process; there are no threads here.
class Allocations {
 public:
  [[nodiscard]] static std::uint64_t made();
  /// The allocation that comes as the n-th from here gets nothing, once. 0: none does.
  static void fail(std::uint64_t nth);
  /// What the test itself needs neither counts nor fails.
  class Own {
   public:
    Own();
    ~Own();
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
  };
};

}  // namespace holdfast::sweep
