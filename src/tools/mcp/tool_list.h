#pragma once
// What tools/list said, page by page.
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/tools/catalog.h"

namespace holdfast::tools::mcp {

struct ListedTool {
  std::string name;
  bool read_only_hint = false;
};

struct ListPage {
  std::vector<ListedTool> tools;
  std::optional<std::string> next_cursor;  // an empty one is a cursor too
};

/// Reads a tools/list result. Error `bad_list`.
[[nodiscard]] Result<ListPage> read_list_page(std::string_view result);

/// The names of a live server's tools, once every page has come. Not thread-safe.
class ToolList {
 public:
  /// Forgets what was collected and starts over.
  void begin();
  /// Adds a page and passes the hints of a trusted server on; false when the list has grown over every sane
  /// bound.
  bool add(const ListPage& page, const ServerConfig& server, Catalog& catalog);
  void complete(Instant now);
  void forget() { known_ = false; }

  /// False only when a complete list is known, and the tool is not in it. An empty list says nothing: some
  /// servers keep their tools out of it.
  [[nodiscard]] bool may_have(std::string_view tool) const {
    return !known_ || names_.empty() || names_.contains(tool);
  }
  [[nodiscard]] bool known() const { return known_; }
  /// A list this old is asked for again before it refuses a tool.
  [[nodiscard]] bool is_stale(Instant now) const { return !known_ || now - at_ > Duration{10'000}; }

 private:
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> incoming_;
  std::size_t pages_ = 0;
  bool known_ = false;
  Instant at_{};
};

}  // namespace holdfast::tools::mcp
