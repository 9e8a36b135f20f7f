#include "config_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "holdfast/core/json.h"

namespace holdfast::tools::config {
namespace {

std::unexpected<Error> bad(std::string message, std::string pointer = {}) {
  return std::unexpected(Error{"bad_config", std::move(message), std::move(pointer)});
}

std::string shown(const std::string& pointer) {
  return pointer.empty() ? "/" : pointer;
}

Node from_json(const json::Value& value) {
  Node node;
  switch (value.kind) {
    case json::Kind::null:
      break;
    case json::Kind::boolean:
    case json::Kind::number:
      node.kind = Node::Kind::scalar;
      node.text = value.raw;
      break;
    case json::Kind::string:
      node.kind = Node::Kind::scalar;
      node.text = value.text();
      node.quoted = true;
      break;
    case json::Kind::array:
      node.kind = Node::Kind::list;
      for (const auto& item : value.items) node.items.push_back(from_json(item));
      break;
    case json::Kind::object:
      node.kind = Node::Kind::map;
      for (const auto& member : value.members)
        node.members.emplace_back(member.name, from_json(member.value));
      break;
  }
  return node;
}

/// Copies a YAML graph into a tree. Aliases may turn a small text into an endless or a huge tree, so both are
/// bounded here.
class YamlCopy {
 public:
  explicit YamlCopy(const std::string& path) : path_(path) {}

  Result<Node> copy(const YAML::Node& source, const std::string& pointer, std::size_t depth) {
    if (depth > kDepth)
      return bad(path_ + ": " + shown(pointer) + ": nested too deep; at most 64 levels", pointer);
    if (++nodes_ > kNodes)
      return bad(path_ + ": " + shown(pointer) + ": too many values; at most 100000", pointer);
    Node node;
    if (source.IsScalar()) {
      node.kind = Node::Kind::scalar;
      node.text = source.Scalar();
      node.quoted = source.Tag() != "?" && !source.Tag().empty();
    } else if (source.IsSequence()) {
      node.kind = Node::Kind::list;
      for (const auto& item : source) {
        auto child = copy(item, pointer + "/" + std::to_string(node.items.size()), depth + 1);
        if (!child) return child;
        node.items.push_back(std::move(*child));
      }
    } else if (source.IsMap()) {
      node.kind = Node::Kind::map;
      for (const auto& member : source) {
        if (auto fault = add_member(node, member.first, member.second, pointer, depth))
          return std::unexpected(*fault);
      }
    }
    return node;
  }

 private:
  std::optional<Error> add_member(Node& node, const YAML::Node& name, const YAML::Node& value,
                                  const std::string& pointer, std::size_t depth) {
    if (!name.IsScalar())
      return Error{"bad_config",
                   path_ + ": " + shown(pointer) + ": a member's name is no text; names are plain words",
                   pointer};
    const std::string place = pointer + "/" + json::escape_token(name.Scalar());
    const auto same = [&](const auto& member) { return member.name == name.Scalar(); };
    if (std::ranges::any_of(node.members, same))
      return Error{"bad_config", path_ + ": " + place + ": given twice; each name may stand once", place};
    auto child = copy(value, place, depth + 1);
    if (!child) return child.error();
    node.members.emplace_back(name.Scalar(), std::move(*child));
    return std::nullopt;
  }

  const std::string& path_;
  std::size_t nodes_ = 0;
};

/// Reads and keeps nothing.
class Silent final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// Looks for a second document and no further: yaml-cpp's LoadAll finds documents without end after `{a},`.
bool more_than_one(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Silent handler;
  return parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler);
}

Result<Node> parse_yaml(const std::string& path, std::string_view text) {
  try {
    const std::string copy(text);
    if (more_than_one(copy)) return bad(path + ": /: several documents, or more after the end of one; one per file");
    const YAML::Node document = YAML::Load(copy);
    if (!document.IsDefined() || document.IsNull()) return Node{};
    return YamlCopy(path).copy(document, "", 0);
  } catch (const YAML::Exception& e) {
    return bad(path + ":" + std::to_string(e.mark.line + 1) + ":" + std::to_string(e.mark.column + 1) +
               ": not readable as YAML: " + e.msg + "; see docs/configuration.md for an example");
  }
}

bool is_json_number(std::string_view text) {
  const auto parsed = json::parse(text);
  return parsed && parsed->is(json::Kind::number) && parsed->raw.size() == text.size();
}

void append_json(std::string& out, const Node& node) {
  bool first = true;
  switch (node.kind) {
    case Node::Kind::null:
      out += "null";
      return;
    case Node::Kind::scalar:
      if (!node.quoted && (node.text == "true" || node.text == "false" || is_json_number(node.text)))
        out += node.text;
      else
        json::append_quoted(out, node.text);
      return;
    case Node::Kind::list:
      out += '[';
      for (const auto& item : node.items) {
        if (!first) out += ',';
        first = false;
        append_json(out, item);
      }
      out += ']';
      return;
    case Node::Kind::map:
      out += '{';
      for (const auto& [name, value] : node.members) {
        if (!first) out += ',';
        first = false;
        json::append_quoted(out, name);
        out += ':';
        append_json(out, value);
      }
      out += '}';
      return;
  }
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad(path + ": can't be opened (" + std::strerror(errno) + "); name a readable file");
  std::string text(kFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return bad(path + ": can't be read; name a readable file, not a folder");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kFileBytes) return bad(path + ": larger than 1 MiB; split off what is no configuration");
  if (!json::is_utf8(text)) return bad(path + ": not UTF-8; save it as UTF-8");
  return text;
}

Result<Node> parse_document(const std::string& path, std::string_view text) {
  const auto start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] != '{') return parse_yaml(path, text);
  // JSON first: YAML's reader doesn't know JSON's surrogate pairs. A text in braces may still be YAML's flow
  // style.
  const auto value = json::parse(text, {.depth = kDepth, .nodes = kNodes});
  if (value) return from_json(*value);
  if (path.ends_with(".json"))
    return bad(
        path + ": " + shown(value.error().pointer) + ": not readable as JSON: " + value.error().message,
        value.error().pointer);
  return parse_yaml(path, text);
}

std::string json_text(const Node& node) {
  std::string out;
  append_json(out, node);
  return out;
}

}  // namespace holdfast::tools::config
