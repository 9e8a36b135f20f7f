#pragma once
// A configuration document as a plain tree, whatever it was written in. Values keep the text they were
// written with.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast::tools::config {

struct Member;

struct Node {
  enum class Kind { null, scalar, list, map } kind = Kind::null;
  std::string text;               // of a scalar, unescaped
  bool quoted = false;            // a string for certain, whatever it looks like
  bool from_environment = false;  // holds the value of an environment variable
  std::vector<Node> items;        // of a list
  std::vector<Member> members;    // of a map, in order; names are unique
};

struct Member {
  std::string name;
  Node value;
};

inline constexpr std::size_t kFileBytes = 1 << 20;
inline constexpr std::size_t kDepth = 64;
inline constexpr std::size_t kNodes = 100'000;  // after aliases are followed

/// The whole file as text, at most kFileBytes of UTF-8. Error `bad_config` naming the file.
[[nodiscard]] Result<std::string> read_text(const std::string& path);
/// Reads JSON or YAML. Error `bad_config`: "<path>: <place>: <what>"; duplicate names, several documents,
/// nesting and size over the limits are errors. `path` serves only the messages.
[[nodiscard]] Result<Node> parse_document(const std::string& path, std::string_view text);
/// The value as JSON text: numbers as written, plain `true`, `false` and null as such, everything else a
/// string.
[[nodiscard]] std::string json_text(const Node& node);

}  // namespace holdfast::tools::config
