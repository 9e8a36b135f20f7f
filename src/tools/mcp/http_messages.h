#pragma once
// Streamable HTTP, the pure part: headers of a request, what a complete answer says, and how a server's era
// is found.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/tools/config.h"
#include "holdfast/tools/http_client.h"
#include "tools/mcp/codec.h"

namespace holdfast::tools::mcp {

/// What a connect has settled.
struct Protocol {
  Era era = Era::legacy;
  std::string revision;  // as agreed; empty while `initialize` is on its way
  std::string session;   // empty: the server keeps none
};

/// A request to the server's endpoint with the configured headers and those of the era. `tool` is empty for
/// other methods.
[[nodiscard]] HttpRequest post_request(const ServerConfig& server, const Protocol& protocol,
                                       std::string_view method, std::string_view tool, std::string body);
/// The GET that resumes a legacy stream.
[[nodiscard]] HttpRequest resume_request(const ServerConfig& server, const Protocol& protocol,
                                         std::string_view last_event_id);

[[nodiscard]] bool is_event_stream(const HttpHeaders& headers);
[[nodiscard]] bool is_success(int status);

/// The part of an exchange's evidence that does not depend on its body.
[[nodiscard]] Evidence exchange_evidence(const HttpOutcome& outcome);
/// Lays what the message said over what the exchange showed.
[[nodiscard]] Evidence with_answer(Evidence exchange, Evidence answer);
/// What a complete exchange says about request `id`.
[[nodiscard]] Evidence judge(const HttpOutcome& outcome, std::int64_t id, const Limits& limits);
/// What one message of the stream says about request `id`; nullopt when it is not its answer.
[[nodiscard]] std::optional<Evidence> judge_event(std::string_view data, std::int64_t id,
                                                  std::uint32_t depth);

/// True for a complete refusal that says that the session is no more.
[[nodiscard]] bool says_session_dead(const Evidence& evidence, bool session_in_use);
/// True for any other error that speaks of the session, or 410: it proves nothing about the call, but the next one had better not use this session.
[[nodiscard]] bool doubts_session(const Evidence& evidence, bool session_in_use);

/// 1 to 1,024 visible ASCII characters.
[[nodiscard]] bool is_session_id(std::string_view text);
/// Safe to send back in a header.
[[nodiscard]] bool is_event_id(std::string_view text);

enum class Discovery { modern, legacy };
/// What the answer to `server/discover` means; anything not known to be modern means legacy.
[[nodiscard]] Discovery read_discovery(const Evidence& answer);
/// The revision that an `initialize` result agreed to. Error `bad_revision`.
[[nodiscard]] Result<std::string> read_revision(std::string_view result);

/// Evidence for a call that was never sent because its connect ended like `cause`: failures before the first
/// byte keep their name, a complete 401, 403 or 429 stands for the call's own answer, all others become
/// Failure::handshake.
[[nodiscard]] Evidence handshake_evidence(const Evidence& cause, std::string_view step);

}  // namespace holdfast::tools::mcp
