#pragma once
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Text from tools and submitters, safe for a terminal: control characters become '?', and what is longer
/// than `most` characters ends in "…".
[[nodiscard]] std::string shown(std::string_view text, std::size_t most = 60);
/// `2026-11-30T01:02:03.004Z` as `2026-11-30 01:02:03`; empty stays empty.
[[nodiscard]] std::string short_time(std::string_view rfc3339);
/// Milliseconds as a person says it: `840ms`, `12s`, `3m`, `5h`, `2d`.
[[nodiscard]] std::string spoken(std::int64_t ms);

/// Columns as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  /// Cells go through shown(); the last may be as long as it likes.
  void row(std::vector<std::string> cells);
  void print(std::ostream& out) const;
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace holdfast::cli
