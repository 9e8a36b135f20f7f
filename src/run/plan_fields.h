#pragma once
// Reading the members of a submission, each error with the pointer to its place.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/error.h"
#include "holdfast/core/json.h"
#include "holdfast/core/time.h"
#include "holdfast/run/run.h"

namespace holdfast::run {

using Problem = std::optional<Error>;

[[nodiscard]] Error bad_submission(std::string message, std::string pointer);
/// `text` in quotes, cut to a readable length.
[[nodiscard]] std::string shown(std::string_view text);
/// The pointer to a member of the value at `where`.
[[nodiscard]] std::string below(std::string_view where, std::string_view member);

/// An error for the first member that is not in `known`, naming the nearest one.
[[nodiscard]] Problem unknown_member(const json::Value& object, std::span<const std::string_view> known,
                                     std::string_view where);
/// The one of `known` that takes the fewest edits to reach; `known` must not be empty.
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> known);

/// A whole number of at least `least`, written without sign, fraction or exponent. A value too large for 64
/// bits counts as the largest.
[[nodiscard]] Result<std::int64_t> whole_number(const json::Value& value, std::int64_t least,
                                                const std::string& where);
/// `3s` or a whole number of milliseconds, clamped to kLongestDuration.
[[nodiscard]] Result<Duration> duration(const json::Value& value, const std::string& where);
/// A duration from `now` or an RFC 3339 instant after it; the instant.
[[nodiscard]] Result<Instant> deadline(const json::Value& value, Instant now, const std::string& where);
/// At most `longest` bytes without control characters.
[[nodiscard]] Result<std::string> short_text(const json::Value& value, std::size_t longest,
                                             const std::string& where);
/// The canonical text of an object of strings.
[[nodiscard]] Result<std::string> labels(const json::Value& value, const std::string& where);

/// One of an enumeration's words.
template <class E>
[[nodiscard]] Result<E> choice(const json::Value& value, std::string_view expected,
                               const std::string& where) {
  const std::string text = value.text();
  const auto found = value.is(json::Kind::string) && !text.empty() ? from_word<E>(text) : std::nullopt;
  if (!found) return std::unexpected(bad_submission(std::string(expected) + " is expected", where));
  return *found;
}

}  // namespace holdfast::run
