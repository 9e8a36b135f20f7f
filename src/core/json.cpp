// Looking into a parsed text, and its canonical form.
#include "holdfast/core/json.h"

#include <algorithm>
#include <charconv>

#include "core/json_text.h"

namespace holdfast::json {
namespace {

std::string_view inside_quotes(const Value& string) {
  return string.raw.substr(1, string.raw.size() - 2);
}

/// nullopt for `~` that is followed by neither 0 nor 1.
std::optional<std::string> unescape_token(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      out += token[i];
      continue;
    }
    if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    out += token[i] == '0' ? '~' : '/';
  }
  return out;
}

const Value* item(const Value& array, std::string_view token) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return nullptr;
  if (!std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; })) return nullptr;
  std::size_t index = 0;
  const auto [stop, status] = std::from_chars(token.data(), token.data() + token.size(), index);
  return status == std::errc{} && index < array.items.size() ? &array.items[index] : nullptr;
}

const Value* child(const Value& parent, std::string_view token) {
  if (parent.kind == Kind::array) return item(parent, token);
  if (parent.kind != Kind::object) return nullptr;
  if (token.find('~') == std::string_view::npos) return parent.find(token);
  const auto name = unescape_token(token);
  return name ? parent.find(*name) : nullptr;
}

void append_canonical(std::string& out, const Value& value);

void append_canonical_object(std::string& out, const Value& object) {
  std::vector<const Member*> sorted;
  sorted.reserve(object.members.size());
  for (const Member& member : object.members) sorted.push_back(&member);
  std::ranges::sort(sorted, {}, [](const Member* member) -> const std::string& { return member->name; });
  out += '{';
  for (const Member* member : sorted) {
    if (member != sorted.front()) out += ',';
    append_quoted(out, member->name);
    out += ':';
    append_canonical(out, member->value);
  }
  out += '}';
}

void append_canonical(std::string& out, const Value& value) {
  switch (value.kind) {
    case Kind::object:
      append_canonical_object(out, value);
      return;
    case Kind::array:
      out += '[';
      for (const Value& entry : value.items) {
        if (&entry != &value.items.front()) out += ',';
        append_canonical(out, entry);
      }
      out += ']';
      return;
    case Kind::string:
      // Without a backslash nothing in it needs one: quoting would give the same bytes.
      if (value.raw.find('\\') != std::string_view::npos) {
        append_quoted(out, value.text());
        return;
      }
      [[fallthrough]];
    default:
      out += value.raw;
  }
}

}  // namespace

const Value* Value::find(std::string_view name) const {
  const auto found = std::ranges::find(members, name, &Member::name);
  return found == members.end() ? nullptr : &found->value;
}

std::string Value::text() const {
  if (kind != Kind::string) return {};
  const std::string_view inside = inside_quotes(*this);
  return inside.find('\\') == std::string_view::npos ? std::string(inside) : unescape(inside);
}

std::optional<std::int64_t> Value::integer() const {
  if (kind != Kind::number) return std::nullopt;
  std::int64_t number = 0;
  const auto [stop, status] = std::from_chars(raw.data(), raw.data() + raw.size(), number);
  if (status != std::errc{} || stop != raw.data() + raw.size()) return std::nullopt;
  return number;
}

const Value* at(const Value& root, std::string_view pointer) {
  const Value* value = &root;
  while (value != nullptr && !pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    value = child(*value, pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
  }
  return value;
}

bool is_pointer(std::string_view pointer) {
  return pointer.empty() || (pointer[0] == '/' && unescape_token(pointer).has_value());
}

std::string escape_token(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (const char c : token) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string canonical(const Value& value) {
  std::string out;
  out.reserve(value.raw.size());
  append_canonical(out, value);
  return out;
}

}  // namespace holdfast::json
