#include "catalog_request.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace holdfast::tools::catalog {
namespace {

std::unexpected<Error> bad(std::string message, std::string pointer) {
  return std::unexpected(Error{"bad_arguments", std::move(message), std::move(pointer)});
}

std::string place(std::string_view name) {
  return "/" + json::escape_token(name);
}

/// The member's name as it was written. Between the end of what comes before a value and the value stand only
/// the name, white space, comma and colon, so the first and the last quote there are the name's.
std::string_view raw_name(const json::Value& object, std::size_t index) {
  const char* begin =
      index == 0 ? object.raw.data()
                 : object.members[index - 1].value.raw.data() + object.members[index - 1].value.raw.size();
  const std::string_view between(begin,
                                 static_cast<std::size_t>(object.members[index].value.raw.data() - begin));
  const auto open = between.find('"');
  return between.substr(open, between.rfind('"') - open + 1);
}

void append_member(std::string& out, std::string_view raw_member_name, std::string_view raw_value) {
  if (out.size() > 1) out += ',';
  out.append(raw_member_name).append(":").append(raw_value);
}

void percent_encode(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                            c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

/// Strings unescaped, numbers and truth values as written; nullopt for what has no plain text.
std::optional<std::string> plain_text(const json::Value& value) {
  if (value.is(json::Kind::string)) return value.text();
  if (value.is(json::Kind::number) || value.is(json::Kind::boolean)) return std::string(value.raw);
  return std::nullopt;
}

Result<std::string> path_segment(const json::Value& arguments, std::string_view name) {
  const auto* value = arguments.find(name);
  if (!value) return bad("the path needs the argument `" + std::string(name) + "`; give it", place(name));
  const auto text = plain_text(*value);
  if (!text)
    return bad(
        "the path argument `" + std::string(name) + "` is no text; give a string, a number or a truth value",
        place(name));
  // An empty segment or one of dots would name another resource than the template does.
  if (text->empty() || *text == "." || *text == "..")
    return bad("the path argument `" + std::string(name) +
                   "` is empty or made of dots; give the name of one resource",
               place(name));
  std::string out;
  percent_encode(out, *text);
  return out;
}

struct Filled {
  std::string path;
  std::vector<std::string_view> used;
};

Result<Filled> fill_path(std::string_view path, const json::Value& arguments) {
  Filled filled;
  while (true) {
    const auto open = path.find('{');
    const auto close = open == std::string_view::npos ? open : path.find('}', open);
    filled.path += path.substr(0, open);
    if (close == std::string_view::npos) return filled;
    const auto name = path.substr(open + 1, close - open - 1);
    auto segment = path_segment(arguments, name);
    if (!segment) return std::unexpected(segment.error());
    filled.path += *segment;
    filled.used.push_back(name);
    path.remove_prefix(close + 1);
  }
}

bool is_used(const Filled& filled, std::string_view name) {
  return std::ranges::find(filled.used, name) != filled.used.end();
}

void append_query(std::string& path, char& separator, std::string_view name, std::string_view value) {
  path += separator;
  separator = '&';
  percent_encode(path, name);
  path += '=';
  percent_encode(path, value);
}

/// Lists of plain values repeat the name; null is left out.
Result<std::string> with_query(const Filled& filled, const json::Value& arguments) {
  std::string path = filled.path;
  char separator = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& member : arguments.members) {
    if (is_used(filled, member.name) || member.value.is(json::Kind::null)) continue;
    const bool list = member.value.is(json::Kind::array);
    const std::size_t count = list ? member.value.items.size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto text = plain_text(list ? member.value.items[i] : member.value);
      if (!text)
        return bad(
            "the argument `" + member.name + "` can't stand in a query; give plain values or lists of them",
            place(member.name));
      append_query(path, separator, member.name, *text);
    }
  }
  return path;
}

std::string rest_as_body(const Filled& filled, const json::Value& arguments) {
  if (filled.used.empty()) return std::string(arguments.raw);
  std::string body = "{";
  for (std::size_t i = 0; i < arguments.members.size(); ++i) {
    const auto& member = arguments.members[i];
    if (!is_used(filled, member.name)) append_member(body, raw_name(arguments, i), member.value.raw);
  }
  return body + "}";
}

std::string unescape(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size())
      out += token[++i] == '0' ? '~' : '/';
    else
      out += token[i];
  }
  return out;
}

/// What stands at a pointer below something that is not there: the key inside as many new objects as the
/// pointer has tokens.
std::string nested(std::string_view pointer, std::string_view quoted_key) {
  std::string open, close;
  while (!pointer.empty()) {
    const auto end = pointer.find('/', 1);
    open += '{' + json::quote(unescape(pointer.substr(1, end - 1))) + ':';
    close += '}';
    pointer.remove_prefix(end == std::string_view::npos ? pointer.size() : end);
  }
  return open + std::string(quoted_key) + close;
}

}  // namespace

Result<std::string> with_key(const json::Value& object, std::string_view pointer, std::string_view key) {
  const auto end = pointer.find('/', 1);
  const std::string token = unescape(pointer.substr(1, end - 1));
  const std::string_view rest = end == std::string_view::npos ? std::string_view{} : pointer.substr(end);
  const std::string quoted = json::quote(key);
  std::string out = "{";
  bool placed = false;
  for (std::size_t i = 0; i < object.members.size(); ++i) {
    const auto& member = object.members[i];
    if (member.name != token) {
      append_member(out, raw_name(object, i), member.value.raw);
      continue;
    }
    placed = true;
    if (rest.empty()) {
      append_member(out, raw_name(object, i), quoted);
      continue;
    }
    if (!member.value.is(json::Kind::object))
      return bad("the argument `" + token +
                     "` is no object, but the key belongs into it; make it an object or leave it out",
                 place(token));
    auto inner = with_key(member.value, rest, key);
    if (!inner) return bad(inner.error().message, place(token) + inner.error().pointer);
    append_member(out, raw_name(object, i), *inner);
  }
  if (!placed) append_member(out, json::quote(token), nested(rest, quoted));
  return out + "}";
}

Result<run::FrozenRequest> http_request(const RequestTemplate& request, const json::Value& arguments) {
  const auto filled = fill_path(request.path, arguments);
  if (!filled) return std::unexpected(filled.error());
  const bool query = request.method == "GET" || request.method == "HEAD" || request.method == "DELETE";
  if (!query)
    return run::FrozenRequest{request.method + " " + filled->path, rest_as_body(*filled, arguments)};
  const auto path = with_query(*filled, arguments);
  if (!path) return std::unexpected(path.error());
  return run::FrozenRequest{request.method + " " + *path, ""};
}

}  // namespace holdfast::tools::catalog
