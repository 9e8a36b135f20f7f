#pragma once
// Reading the fields of a configuration map, with every kind of mistake reported in one way. The first
// problem is kept and reading goes on over defaults, so that the code that reads a part has no error paths.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config_node.h"
#include "holdfast/core/time.h"

namespace holdfast::tools::config {

/// Keeps the first problem of a file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  /// "<file>: <pointer>: <what>; <right>"
  void add(const std::string& pointer, const std::string& what, const std::string& right);
  [[nodiscard]] const std::optional<Error>& first() const { return first_; }

 private:
  std::string file_;
  std::optional<Error> first_;
};

/// The known name with the smallest edit distance to `name`; empty when none is near.
[[nodiscard]] std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known);

/// A map of named fields. Each reader below asks for a field by name; finish() then reports the members that
/// nobody asked for.
class Section {
 public:
  /// A null node is an empty map; anything else that is no map is reported.
  Section(Problems& problems, const Node& node, std::string pointer);

  /// nullptr when absent. Registers `name` as known; a string literal, since it is kept.
  const Node* find(std::string_view name);
  [[nodiscard]] std::string place(std::string_view name) const;
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  /// The members as they stand, for maps whose names are the user's.
  [[nodiscard]] const std::vector<std::pair<std::string, Node>>& members() const { return node_.members; }
  [[nodiscard]] Problems& problems() { return problems_; }
  void problem(std::string_view name, const std::string& what, const std::string& right);
  /// Reports unknown members with the nearest known name.
  void finish();

 private:
  Problems& problems_;
  const Node& node_;
  std::string pointer_;
  std::vector<std::string_view> known_;
};

// Each returns true when the field was given (well or badly); `out` changes only when it was given well.

bool read_text(Section& s, std::string_view name, std::string& out);
bool read_flag(Section& s, std::string_view name, bool& out);
bool read_whole(Section& s, std::string_view name, std::uint32_t& out, std::uint32_t least,
                std::uint32_t most);
/// In (0, 1].
bool read_rate(Section& s, std::string_view name, double& out);
/// From `least` to `most`.
bool read_number(Section& s, std::string_view name, double& out, double least, double most);
enum class Zero { refused, means_none };
bool read_duration(Section& s, std::string_view name, Duration& out, Zero zero = Zero::refused);
/// Bytes, or a whole number and `KiB`, `MiB` or `GiB`; at least 1, at most 1GiB.
bool read_size(Section& s, std::string_view name, std::uint64_t& out);
/// A list of texts, none of them empty.
bool read_texts(Section& s, std::string_view name, std::vector<std::string>& out);
/// An RFC 6901 pointer; missing is a problem.
void read_pointer(Section& s, std::string_view name, std::string& out);
/// A map of name to text, in order.
bool read_pairs(Section& s, std::string_view name, std::vector<std::pair<std::string, std::string>>& out);
/// nullopt when absent; else the node to read a Section from.
const Node* read_list(Section& s, std::string_view name);
std::optional<Section> read_section(Section& s, std::string_view name);

}  // namespace holdfast::tools::config
