#include "holdfast/run/references.h"

#include <algorithm>

#include "holdfast/core/ids.h"
#include "holdfast/core/json.h"

namespace holdfast::run {
namespace {

// A body of a megabyte could name a large result many thousand times: both the work and the text that comes
// of it are bounded.
constexpr std::size_t kMostReferences = 10'000;
constexpr std::size_t kLongestText = std::size_t{64} << 20;
constexpr json::Limits kTemplateLimits{.depth = 1'000, .nodes = 4'000'000};

/// A stretch of a string: literal text, or a reference (then `name` is not empty). Views into the unescaped
/// string.
struct Piece {
  std::string_view literal;
  std::string_view name;
  std::string_view pointer;
};

/// A string of the template that holds `${`.
struct Place {
  std::string_view raw;
  std::string pointer;
  std::string text;
};

std::string shown(std::string_view name, std::string_view pointer) {
  constexpr std::size_t kShown = 128;
  return "${" + std::string(name.substr(0, kShown)) + std::string(pointer.substr(0, kShown)) + "}";
}

Error bad(std::string message, std::string_view pointer) {
  return {"bad_reference", std::move(message), std::string(pointer)};
}

/// What stands between `${` and `}`; nullopt when it is no reference.
std::optional<Piece> reference(std::string_view inside) {
  const std::size_t slash = std::min(inside.find('/'), inside.size());
  const Piece piece{{}, inside.substr(0, slash), inside.substr(slash)};
  if (!is_name(piece.name) || !json::is_pointer(piece.pointer)) return std::nullopt;
  return piece;
}

Result<std::vector<Piece>> pieces(std::string_view text, std::string_view place) {
  std::vector<Piece> out;
  std::size_t literal = 0;
  const auto end_literal = [&](std::size_t end) {
    if (end > literal) out.push_back({text.substr(literal, end - literal), {}, {}});
  };
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", literal)) {
    if (at > literal && text[at - 1] == '$') {  // `$${`: all but the first dollar is literal
      end_literal(at - 1);
      out.push_back({text.substr(at, 2), {}, {}});
      literal = at + 2;
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos)
      return std::unexpected(bad("\"${\" has no \"}\"; a literal one is written $${", place));
    const auto piece = reference(text.substr(at + 2, end - at - 2));
    if (!piece) {
      return std::unexpected(
          bad(shown(text.substr(at + 2, end - at - 2), "") +
                  " is no reference; ${step} or ${step/json/pointer} is, and a literal ${ is written $${",
              place));
    }
    end_literal(at);
    out.push_back(*piece);
    literal = end + 1;
  }
  end_literal(text.size());
  return out;
}

/// Calls `visit` for every string that holds `${`, in order, until it says false.
template <class Visit>
bool walk(const json::Value& value, std::string& path, Visit& visit) {
  const auto inner = [&](const json::Value& child, auto token) {
    const bool container = child.is(json::Kind::array) || child.is(json::Kind::object);
    const bool candidate =
        child.is(json::Kind::string) && child.raw.find_first_of("$\\") != std::string_view::npos;
    if (!container && !candidate) return true;
    const std::size_t length = path.size();
    path += '/';
    path += token();
    const bool go_on = walk(child, path, visit);
    path.resize(length);
    return go_on;
  };
  if (value.is(json::Kind::string)) {
    std::string text = value.text();
    return text.find("${") == std::string::npos || visit(Place{value.raw, path, std::move(text)});
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (!inner(value.items[i], [&] { return std::to_string(i); })) return false;
  }
  for (const json::Member& member : value.members) {
    if (!inner(member.value, [&] { return json::escape_token(member.name); })) return false;
  }
  return true;
}

template <class Visit>
Result<void> each_place(std::string_view json_text, Visit visit) {
  const auto root = json::parse(json_text, kTemplateLimits);
  if (!root) return std::unexpected(root.error());
  std::string path;
  std::size_t left = kMostReferences;
  std::optional<Error> problem;
  auto checked = [&](const Place& place) {
    const auto parts = pieces(place.text, place.pointer);
    if (!parts) {
      problem = parts.error();
      return false;
    }
    const auto named = static_cast<std::size_t>(
        std::ranges::count_if(*parts, [](const Piece& p) { return !p.name.empty(); }));
    if (named > left) {
      problem = bad("more than " + std::to_string(kMostReferences) + " references", place.pointer);
      return false;
    }
    left -= named;
    problem = visit(place, *parts);
    return !problem;
  };
  if (!walk(*root, path, checked)) return std::unexpected(std::move(*problem));
  return {};
}

/// A JSON text as part of a longer string.
std::string as_text(const std::string& json_text) {
  if (!json_text.starts_with('"')) return json_text;
  const auto value = json::parse(json_text);
  return value ? value->text() : json_text;
}

/// Appends what a string becomes. `lookup` is asked once for each reference.
std::optional<Error> append_resolved(std::string& out, const Place& place, const std::vector<Piece>& parts,
                                     const Lookup& lookup) {
  const bool alone = parts.size() == 1;
  std::string text;
  for (const Piece& part : parts) {
    if (part.name.empty()) {
      text += part.literal;
      continue;
    }
    const auto found = lookup(part.name, part.pointer);
    if (!found) return bad(shown(part.name, part.pointer) + " leads nowhere", place.pointer);
    if (out.size() + text.size() + found->size() > kLongestText)
      return bad("references make the text longer than 64 MiB", place.pointer);
    if (alone) {
      out += *found;
      return std::nullopt;
    }
    text += as_text(*found);
  }
  json::append_quoted(out, text);
  return std::nullopt;
}

}  // namespace

Result<std::vector<Reference>> references(std::string_view json_text) {
  std::vector<Reference> out;
  const auto done =
      each_place(json_text, [&](const Place& place, const std::vector<Piece>& parts) -> std::optional<Error> {
        for (const Piece& part : parts) {
          if (!part.name.empty())
            out.push_back({std::string(part.name), std::string(part.pointer), place.pointer});
        }
        return std::nullopt;
      });
  if (!done) return std::unexpected(done.error());
  return out;
}

Result<std::string> resolve(std::string_view json_text, const Lookup& lookup) {
  if (json_text.find_first_of("$\\") == std::string_view::npos) return std::string(json_text);
  std::string out;
  out.reserve(json_text.size());
  const char* copied = json_text.data();
  const auto done = each_place(json_text, [&](const Place& place, const std::vector<Piece>& parts) {
    out.append(copied, place.raw.data());
    copied = place.raw.data() + place.raw.size();
    return append_resolved(out, place, parts, lookup);
  });
  if (!done) return std::unexpected(done.error());
  out.append(copied, json_text.data() + json_text.size());
  return out;
}

}  // namespace holdfast::run
