#include "config_reader.h"

#include <algorithm>
#include <charconv>

#include "holdfast/core/json.h"

namespace holdfast::tools::config {
namespace {

const char* kind_word(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return node.quoted ? "a string" : "a plain value";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "";
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t swap = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({swap, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// The scalar of a field, or nullptr after reporting.
const Node* scalar(Section& s, std::string_view name, const Node& node, const std::string& right) {
  if (node.kind == Node::Kind::scalar) return &node;
  s.problem(name, std::string("is ") + kind_word(node), right);
  return nullptr;
}

/// What a message may repeat of a value: never one that holds a secret.
std::string shown(const Node& node) {
  if (node.from_environment) return "the value from the environment";
  return "`" + node.text.substr(0, 80) + "`";
}

template <class N>
bool parse_whole(std::string_view text, N& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  return fault == std::errc{} && end == text.data() + text.size();
}

bool is_zero_duration(std::string_view text) {
  const auto unit = text.find_first_not_of('0');
  if (unit == 0 || text.empty()) return false;
  const auto rest = unit == std::string_view::npos ? std::string_view{} : text.substr(unit);
  return rest.empty() || rest == "ms" || rest == "s" || rest == "m" || rest == "h" || rest == "d";
}

}  // namespace

void Problems::add(const std::string& pointer, const std::string& what, const std::string& right) {
  if (first_) return;
  first_ = Error{"bad_config", file_ + ": " + (pointer.empty() ? "/" : pointer) + ": " + what + "; " + right,
                 pointer};
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(3, name.size() / 2) + 1;
  if (name.size() > 100) return best;
  for (const auto candidate : known) {
    const auto distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

Section::Section(Problems& problems, const Node& node, std::string pointer)
    : problems_(problems), node_(node), pointer_(std::move(pointer)) {
  if (node_.kind != Node::Kind::map && node_.kind != Node::Kind::null)
    problems_.add(pointer_, std::string("is ") + kind_word(node_), "a map of fields is needed here");
}

const Node* Section::find(std::string_view name) {
  if (std::ranges::find(known_, name) == known_.end()) known_.push_back(name);
  for (const auto& [member, value] : node_.members) {
    if (member == name) return &value;
  }
  return nullptr;
}

std::string Section::place(std::string_view name) const {
  return pointer_ + "/" + json::escape_token(name);
}

void Section::problem(std::string_view name, const std::string& what, const std::string& right) {
  problems_.add(place(name), what, right);
}

void Section::finish() {
  for (const auto& [name, value] : node_.members) {
    if (std::ranges::find(known_, name) != known_.end()) continue;
    const auto near = nearest(name, known_);
    std::string right = "did you mean `" + std::string(near) + "`?";
    if (near.empty()) {
      right = "known here:";
      for (const auto& known : known_) right += (right.back() == ':' ? " " : ", ") + std::string(known);
    }
    problem(name, "unknown field `" + name.substr(0, 80) + "`", right);
    return;
  }
}

bool read_text(Section& s, std::string_view name, std::string& out) {
  const auto* node = s.find(name);
  if (!node) return false;
  if (!scalar(s, name, *node, "a text is needed")) return true;
  if (node->text.empty())
    s.problem(name, "is empty", "give a text or leave the field out");
  else
    out = node->text;
  return true;
}

bool read_flag(Section& s, std::string_view name, bool& out) {
  const auto* node = s.find(name);
  if (!node) return false;
  if (!scalar(s, name, *node, "true or false is needed")) return true;
  if (node->text == "true" || node->text == "false")
    out = node->text == "true";
  else
    s.problem(name, shown(*node) + " is no truth value", "write true or false");
  return true;
}

bool read_whole(Section& s, std::string_view name, std::uint32_t& out, std::uint32_t least,
                std::uint32_t most) {
  const auto* node = s.find(name);
  if (!node) return false;
  const std::string right =
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most) + " is needed";
  if (!scalar(s, name, *node, right)) return true;
  std::uint32_t value = 0;
  const bool quoted = node->quoted && !node->from_environment;
  if (quoted || !parse_whole(node->text, value) || value < least || value > most)
    s.problem(name, shown(*node) + (quoted ? " is a string" : " is not allowed"), right);
  else
    out = value;
  return true;
}

bool read_rate(Section& s, std::string_view name, double& out) {
  const auto* node = s.find(name);
  if (!node) return false;
  const std::string right = "a number above 0 and up to 1 is needed";
  if (!scalar(s, name, *node, right)) return true;
  double value = 0;
  if (!parse_whole(node->text, value) || !(value > 0 && value <= 1))
    s.problem(name, shown(*node) + " is not allowed", right);
  else
    out = value;
  return true;
}

bool read_number(Section& s, std::string_view name, double& out, double least, double most) {
  const auto* node = s.find(name);
  if (!node) return false;
  const auto decimal = [](double number) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
  };
  const std::string right = "a number from " + decimal(least) + " to " + decimal(most) + " is needed";
  if (!scalar(s, name, *node, right)) return true;
  double value = 0;
  const bool quoted = node->quoted && !node->from_environment;
  if (quoted || !parse_whole(node->text, value) || !(value >= least && value <= most))
    s.problem(name, shown(*node) + (quoted ? " is a string" : " is not allowed"), right);
  else
    out = value;
  return true;
}

bool read_duration(Section& s, std::string_view name, Duration& out, Zero zero) {
  const auto* node = s.find(name);
  if (!node) return false;
  const std::string right =
      "write a whole number and a unit, such as 250ms, 3s, 15m, 2h or 7d, or whole milliseconds";
  if (!scalar(s, name, *node, right)) return true;
  if (is_zero_duration(node->text)) {
    if (zero == Zero::means_none)
      out = Duration{0};
    else
      s.problem(name, "is zero, which never means `no limit`", right);
    return true;
  }
  std::uint64_t ms = 0;
  const bool bare = (!node->quoted || node->from_environment) && parse_whole(node->text, ms);
  const auto parsed = bare ? parse_duration(node->text + "ms") : parse_duration(node->text);
  if (parsed)
    out = *parsed;
  else
    s.problem(name, shown(*node) + " is no duration that can be used", right);
  return true;
}

bool read_size(Section& s, std::string_view name, std::uint64_t& out) {
  const auto* node = s.find(name);
  if (!node) return false;
  const std::string right = "write bytes or a whole number with KiB, MiB or GiB, from 1 byte to 1GiB";
  if (!scalar(s, name, *node, right)) return true;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  std::string_view digits = node->text;
  std::uint64_t unit = 1;
  for (const auto& [suffix, bytes] :
       {std::pair{"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}}) {
    if (!digits.ends_with(suffix)) continue;
    digits.remove_suffix(3);
    unit = bytes;
    break;
  }
  std::uint64_t count = 0;
  if (!parse_whole(digits, count) || count == 0 || count > kMost / unit)
    s.problem(name, shown(*node) + " is no size that can be used", right);
  else
    out = count * unit;
  return true;
}

bool read_texts(Section& s, std::string_view name, std::vector<std::string>& out) {
  const auto* list = read_list(s, name);
  if (!list)
    return s.members().end() !=
           std::ranges::find_if(s.members(), [&](const auto& m) { return m.name == name; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const auto& item = list->items[i];
    if (item.kind != Node::Kind::scalar || item.text.empty())
      s.problems().add(s.place(name) + "/" + std::to_string(i),
                       std::string("is ") + (item.text.empty() ? "empty or no text" : kind_word(item)),
                       "a text that is not empty is needed");
    else
      texts.push_back(item.text);
  }
  out = std::move(texts);
  return true;
}

void read_pointer(Section& s, std::string_view name, std::string& out) {
  const auto* node = s.find(name);
  if (!node || node->kind != Node::Kind::scalar)
    s.problem(name, node ? "is no text" : "is missing", "a JSON pointer such as /a/b is needed");
  else if (!json::is_pointer(node->text))
    s.problem(name, shown(*node) + " is no JSON pointer",
              "it starts with / and escapes ~ as ~0 and / as ~1, such as /a/b");
  else
    out = node->text;
}

bool read_pairs(Section& s, std::string_view name, std::vector<std::pair<std::string, std::string>>& out) {
  auto section = read_section(s, name);
  if (!section) return false;
  for (const auto& [member, value] : section->members()) {
    if (value.kind == Node::Kind::scalar)
      out.emplace_back(member, value.text);
    else
      section->problem(member, std::string("is ") + kind_word(value), "a text is needed");
  }
  return true;
}

const Node* read_list(Section& s, std::string_view name) {
  const auto* node = s.find(name);
  if (!node || node->kind == Node::Kind::list) return node;
  s.problem(name, std::string("is ") + kind_word(*node), "a list is needed");
  return nullptr;
}

std::optional<Section> read_section(Section& s, std::string_view name) {
  const auto* node = s.find(name);
  if (!node) return std::nullopt;
  return std::optional<Section>(std::in_place, s.problems(), *node, s.place(name));
}

}  // namespace holdfast::tools::config
