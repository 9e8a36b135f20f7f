#pragma once
// What a request may say: query parameters and members of a body, checked one by one.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/core/json.h"
#include "http/server.h"

namespace holdfast::api {

inline constexpr Duration kLongestWait{60'000};
inline constexpr std::uint32_t kDefaultLimit = 50, kHighestLimit = 200;

/// The known name closest to `name` by edit distance.
[[nodiscard]] std::string_view nearest(std::string_view name, std::initializer_list<std::string_view> known);

/// Error `unknown_parameter` for a query parameter that is not in `known`, `bad_parameter` for one that is
/// given twice (`label` may be).
[[nodiscard]] Result<void> check_query(const http::Request& request,
                                       std::initializer_list<std::string_view> known);
/// `wait`: a duration or milliseconds, clamped to 60 s; nullopt when absent. Error `bad_parameter`.
[[nodiscard]] Result<std::optional<Duration>> read_wait(const http::Request& request);
/// `limit`: 50 when absent, clamped to 1 … 200. Error `bad_parameter`.
[[nodiscard]] Result<std::uint32_t> read_limit(const http::Request& request);
/// A whole number that is not negative. Error `bad_parameter` naming `what`.
[[nodiscard]] Result<std::int64_t> read_count(std::string_view what, std::string_view text);

/// A body and the tree over it. The tree's views point into `text`, so it is neither copied nor moved.
struct Body {
  std::string text;
  json::Value root;
};
/// A body that must be a JSON object. `empty_is_object`: no body means {}. Errors: those of json::parse,
/// `bad_request`.
[[nodiscard]] Result<std::shared_ptr<const Body>> read_body(const http::Request& request, std::size_t depth,
                                                            bool empty_is_object = false);
/// Error `unknown_member` naming the nearest, with a pointer.
[[nodiscard]] Result<void> check_members(const json::Value& object,
                                         std::initializer_list<std::string_view> known);
/// A string member: empty when absent or null. Error `bad_request` for other kinds, more than `longest`
/// bytes, or U+0000.
[[nodiscard]] Result<std::string> read_text(const json::Value& object, std::string_view name,
                                            std::size_t longest = 4096);
/// A member that is a duration (text or milliseconds); nullopt when absent or null. Error `bad_duration`.
[[nodiscard]] Result<std::optional<Duration>> read_duration(const json::Value& object, std::string_view name);
/// A deadline: a duration from now or an RFC 3339 instant; nullopt when absent or null. Error `bad_deadline`,
/// also for one that is past.
[[nodiscard]] Result<std::optional<Instant>> read_deadline(const json::Value& object, std::string_view name,
                                                           Instant now);

/// The owner whose runs this identity may list and change; empty: all.
[[nodiscard]] inline std::string owner_scope(const http::Identity& identity) {
  return identity.operate ? "" : identity.name;
}
/// Who is written into the audit log.
[[nodiscard]] inline std::string who(const http::Identity& identity) {
  return identity.name.empty() ? "operator" : identity.name;
}

}  // namespace holdfast::api
