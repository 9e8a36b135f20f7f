#pragma once
// MCP messages as text, both eras, and what a received message says. Arguments and results pass through
// untouched.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/core/json.h"
#include "holdfast/policy/evidence.h"

namespace holdfast::tools::mcp {

/// modern: 2026-07-28, no handshake and no session. legacy: 2025-11-25 and earlier, `initialize` and perhaps
/// a session.
enum class Era { modern, legacy };

inline constexpr std::string_view kModernRevision = "2026-07-28";
inline constexpr std::string_view kLegacyRevision = "2025-11-25";
/// The most of a tool's own words that evidence keeps.
inline constexpr std::size_t kMaxTextBytes = 4096;

/// True for every revision with `initialize` that this client speaks.
[[nodiscard]] bool is_legacy_revision(std::string_view revision);

struct CallParts {
  std::int64_t id = 0;
  std::string_view tool;
  std::string_view arguments;  // JSON text of an object; empty stands for {}
  std::string_view meta_name;  // `_meta` member that carries the key; empty: none
  std::string_view key;
};

[[nodiscard]] std::string discover_message(std::int64_t id);
/// What asks a connected server whether it lives: `server/discover`, or `ping` in the legacy era.
[[nodiscard]] std::string_view alive_method(Era era);
[[nodiscard]] std::string alive_message(Era era, std::int64_t id);
[[nodiscard]] std::string initialize_message(std::int64_t id);
[[nodiscard]] std::string initialized_message();
/// `cursor` as the server gave it: an empty one is a cursor too.
[[nodiscard]] std::string list_message(Era era, std::int64_t id, const std::optional<std::string>& cursor);
[[nodiscard]] std::string call_message(Era era, const CallParts& call);
[[nodiscard]] std::string cancelled_message(Era era, std::int64_t id, std::string_view reason);
/// The answer to a server's request: an empty result for `ping`, else -32601. `raw_id` is the id's JSON text.
[[nodiscard]] std::string reply_message(std::string_view raw_id, std::string_view method);

/// A received message. Views point into the text it was read from.
struct Message {
  enum class Kind { answer, request, notification } kind = Kind::answer;
  std::optional<std::int64_t> id;  // only when written as a plain integer: the only form we send
  std::string_view raw_id;         // empty: no id
  std::string method;
  json::Value root;
};

/// Errors: those of json::parse, and `bad_message` for JSON that is no JSON-RPC message.
[[nodiscard]] Result<Message> read_message(std::string_view text, std::uint32_t depth);

/// What an answer says (phase `parsed`): a result, a tool error, an error, or Failure::malformed_rpc for
/// anything else.
[[nodiscard]] Evidence read_answer(const Message& message);

/// The evidence of an answer that could not be read: `too_large` for depth and node limits, else
/// `malformed_rpc`.
[[nodiscard]] Evidence unreadable_answer(const Error& error);

/// The `id` of a message whose text may be cut off or unreadable further on, if it can be seen at the top
/// level.
[[nodiscard]] std::optional<std::int64_t> peek_id(std::string_view text);

/// At most `limit` bytes, not ending inside a UTF-8 sequence.
[[nodiscard]] std::string clip(std::string_view text, std::size_t limit = kMaxTextBytes);

}  // namespace holdfast::tools::mcp
