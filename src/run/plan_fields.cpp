#include "run/plan_fields.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace holdfast::run {
namespace {

constexpr std::size_t kMostLabels = 64;
constexpr std::size_t kLongestLabelName = 64;
constexpr std::size_t kLongestLabelValue = 256;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

/// The fewest insertions, removals and replacements of a byte that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// An RFC 3339 instant begins with a four-digit year and a hyphen; no duration does.
bool looks_like_instant(std::string_view text) {
  return text.size() > 4 && text[4] == '-' && is_digits(text.substr(0, 4));
}

}  // namespace

Error bad_submission(std::string message, std::string pointer) {
  return {"bad_submission", std::move(message), std::move(pointer)};
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 64;
  return json::quote(text.substr(0, kShown));
}

std::string below(std::string_view where, std::string_view member) {
  std::string pointer(where);
  pointer += '/';
  pointer += json::escape_token(member);
  return pointer;
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
  constexpr std::size_t kCompared = 64;
  const std::string_view start = name.substr(0, kCompared);
  return *std::ranges::min_element(
      known, {}, [&](std::string_view candidate) { return edit_distance(start, candidate); });
}

Problem unknown_member(const json::Value& object, std::span<const std::string_view> known,
                       std::string_view where) {
  for (const json::Member& member : object.members) {
    if (std::ranges::find(known, std::string_view(member.name)) != known.end()) continue;
    return bad_submission("unknown member " + shown(member.name) + "; the nearest known one is \"" +
                              std::string(nearest(member.name, known)) + "\"",
                          below(where, member.name));
  }
  return std::nullopt;
}

Result<std::int64_t> whole_number(const json::Value& value, std::int64_t least, const std::string& where) {
  if (value.is(json::Kind::number) && is_digits(value.raw)) {
    const std::int64_t number = value.integer().value_or(std::numeric_limits<std::int64_t>::max());
    if (number >= least) return number;
  }
  return std::unexpected(
      bad_submission("a whole number of at least " + std::to_string(least) + " is expected", where));
}

Result<Duration> duration(const json::Value& value, const std::string& where) {
  if (value.is(json::Kind::number)) {
    const auto ms = whole_number(value, 1, where);
    if (!ms)
      return std::unexpected(bad_submission(
          "a duration is a whole number of milliseconds above zero, or a string such as 3s", where));
    return std::min(Duration{*ms}, kLongestDuration);
  }
  if (!value.is(json::Kind::string))
    return std::unexpected(
        bad_submission("a duration such as \"3s\" or a whole number of milliseconds is expected", where));
  const auto parsed = parse_duration(value.text());
  if (!parsed) return std::unexpected(bad_submission(parsed.error().message, where));
  return *parsed;
}

Result<Instant> deadline(const json::Value& value, Instant now, const std::string& where) {
  const std::string text = value.text();
  if (!looks_like_instant(text)) {
    const auto wait = duration(value, where);
    if (!wait) return std::unexpected(wait.error());
    return now + *wait;
  }
  const auto at = parse_rfc3339(text);
  if (!at) return std::unexpected(bad_submission(at.error().message, where));
  if (*at <= now)
    return std::unexpected(
        bad_submission("the instant is not in the future; it is now " + format_rfc3339(now), where));
  return *at;
}

Result<std::string> short_text(const json::Value& value, std::size_t longest, const std::string& where) {
  std::string text = value.text();
  if (!value.is(json::Kind::string) || text.size() > longest || has_control(text))
    return std::unexpected(bad_submission(
        "a string of at most " + std::to_string(longest) + " bytes without control characters is expected",
        where));
  return text;
}

Result<std::string> labels(const json::Value& value, const std::string& where) {
  if (!value.is(json::Kind::object))
    return std::unexpected(bad_submission("labels are an object of strings", where));
  if (value.members.size() > kMostLabels)
    return std::unexpected(
        bad_submission("there are more than " + std::to_string(kMostLabels) + " labels", where));
  for (const json::Member& label : value.members) {
    const std::string place = below(where, label.name);
    if (label.name.empty() || label.name.size() > kLongestLabelName || has_control(label.name))
      return std::unexpected(
          bad_submission("a label's name has 1 to 64 bytes and no control characters", place));
    if (const auto text = short_text(label.value, kLongestLabelValue, place); !text)
      return std::unexpected(text.error());
  }
  return json::canonical(value);
}

}  // namespace holdfast::run
