#include "api/reading.h"

#include <charconv>
#include <numeric>

namespace holdfast::api {
namespace {

std::unexpected<Error> fault(std::string code, std::string message, std::string pointer = "") {
  return std::unexpected(Error{std::move(code), std::move(message), std::move(pointer)});
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
      diagonal = above;
    }
  }
  return row.back();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Names come from outside: cut to what fits a message.
std::string shown(std::string_view name) {
  return "'" + std::string(name.substr(0, 64)) + "'";
}

std::string place(std::string_view name) {
  return "/" + json::escape_token(name);
}

}  // namespace

std::string_view nearest(std::string_view name, std::initializer_list<std::string_view> known) {
  const std::string_view short_name = name.substr(0, 64);
  std::string_view best;
  std::size_t best_distance = SIZE_MAX;
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(short_name, candidate);
    if (d < best_distance) best = candidate, best_distance = d;
  }
  return best;
}

Result<void> check_query(const http::Request& request, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : request.query) {
    if (std::ranges::find(known, name) == known.end()) {
      std::string message = "unknown query parameter " + shown(name);
      if (known.size() > 0)
        message += "; the nearest known one is '" + std::string(nearest(name, known)) + "'";
      return fault("unknown_parameter", message);
    }
    if (name != "label" && request.query.count(name) > 1)
      return fault("bad_parameter", "query parameter " + shown(name) + " is given twice");
  }
  return {};
}

Result<std::optional<Duration>> read_wait(const http::Request& request) {
  const auto text = request.query_value("wait");
  if (!text) return std::nullopt;
  if (all_digits(*text)) {
    std::int64_t ms = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), ms);
    if (error == std::errc::result_out_of_range) return kLongestWait;
    return std::min(Duration{ms}, kLongestWait);
  }
  // No wait and one that no duration can hold are clamped like any other.
  const auto unit = std::min(text->find_first_not_of("0123456789"), text->size());
  if (unit > 0 && parse_duration("1" + text->substr(unit))) {
    if (text->find_first_not_of('0') == unit) return Duration{0};
    return std::min(parse_duration(*text).value_or(kLongestWait), kLongestWait);
  }
  return fault("bad_parameter", "wait must be a duration such as 30s, or whole milliseconds");
}

Result<std::uint32_t> read_limit(const http::Request& request) {
  const auto text = request.query_value("limit");
  if (!text) return kDefaultLimit;
  if (!all_digits(*text)) return fault("bad_parameter", "limit must be a whole number from 1 to 200");
  std::uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error == std::errc::result_out_of_range) return kHighestLimit;
  return std::clamp(limit, std::uint32_t{1}, kHighestLimit);
}

Result<std::int64_t> read_count(std::string_view what, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!all_digits(text) || error != std::errc{})
    return fault("bad_parameter", std::string(what) + " must be a whole number, 0 or more");
  return value;
}

Result<std::shared_ptr<const Body>> read_body(const http::Request& request, std::size_t depth,
                                              bool empty_is_object) {
  auto body = std::make_shared<Body>();
  body->text = request.body.empty() && empty_is_object ? "{}" : request.body;
  auto root = json::parse(body->text, json::Limits{.depth = depth});
  if (!root) return std::unexpected(std::move(root.error()));
  if (!root->is(json::Kind::object)) return fault("bad_request", "the body must be a JSON object");
  body->root = std::move(*root);
  return body;
}

Result<void> check_members(const json::Value& object, std::initializer_list<std::string_view> known) {
  for (const json::Member& member : object.members) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    return fault("unknown_member",
                 "unknown member " + shown(member.name) + "; the nearest known one is '" +
                     std::string(nearest(member.name, known)) + "'",
                 place(member.name));
  }
  return {};
}

Result<std::string> read_text(const json::Value& object, std::string_view name, std::size_t longest) {
  const json::Value* value = object.find(name);
  if (!value || value->is(json::Kind::null)) return std::string{};
  if (!value->is(json::Kind::string))
    return fault("bad_request", std::string(name) + " must be a string", place(name));
  std::string text = value->text();
  if (text.size() > longest) {
    return fault("bad_request", std::string(name) + " may have " + std::to_string(longest) + " bytes at most",
                 place(name));
  }
  if (text.find('\0') != std::string::npos)
    return fault("bad_request", std::string(name) + " must not contain U+0000", place(name));
  return text;
}

Result<std::optional<Duration>> read_duration(const json::Value& object, std::string_view name) {
  const json::Value* value = object.find(name);
  if (!value || value->is(json::Kind::null)) return std::nullopt;
  if (const auto ms = value->integer(); ms && *ms > 0 && *ms <= kLongestDuration.count())
    return Duration{*ms};
  if (value->is(json::Kind::string)) {
    if (const auto duration = parse_duration(value->text())) return *duration;
  }
  return fault("bad_duration",
               std::string(name) + " must be a duration such as 30s or 2h, or whole milliseconds above 0",
               place(name));
}

Result<std::optional<Instant>> read_deadline(const json::Value& object, std::string_view name, Instant now) {
  if (const auto span = read_duration(object, name)) {
    if (!*span) return std::nullopt;
    return now + **span;
  }
  const json::Value* value = object.find(name);
  if (value->is(json::Kind::string)) {
    if (const auto at = parse_rfc3339(value->text()); at && *at > now) return *at;
  }
  return fault(
      "bad_deadline",
      std::string(name) + " must be a duration such as 2h, or an RFC 3339 instant that is still to come",
      place(name));
}

}  // namespace holdfast::api
