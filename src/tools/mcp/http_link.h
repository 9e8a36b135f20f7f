#pragma once
// The connection to one streamable-HTTP server, in the protocol's sense: era, session and tool list. One
// connect at a time, shared by every call that waits for it.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "holdfast/tools/catalog.h"
#include "tools/mcp/http_exchange.h"
#include "tools/mcp/tool_list.h"

namespace holdfast::tools::mcp {

/// Lives on the HTTP client's thread; not thread-safe.
class HttpLink : public std::enable_shared_from_this<HttpLink> {
 public:
  /// Gets nullptr when connected, else never-sent evidence.
  using Waiter = std::function<void(const Evidence* failed)>;

  HttpLink(HttpClient& http, const Clock& clock, Catalog& catalog, const ServerConfig& server)
      : http_(http), clock_(clock), catalog_(catalog), server_(&server) {}

  /// Runs `waiter` once, at once when connected. A connect that starts here ends at `deadline`.
  void await(std::uint64_t id, Instant deadline, Waiter waiter);
  /// Runs `waiter` once the tool list is known or cannot be had (both with nullptr). Only when connected.
  void await_list(std::uint64_t id, Instant deadline, Waiter waiter);
  /// Forgets a waiter; a connect that nobody waits for is ended.
  void abandon(std::uint64_t id);

  [[nodiscard]] bool connected() const { return state_ == State::ready; }
  [[nodiscard]] const Protocol& protocol() const { return protocol_; }
  [[nodiscard]] const ServerConfig& server() const { return *server_; }
  /// The same server under a new configuration: same_connection() holds.
  void adopt(const ServerConfig& server) { server_ = &server; }
  [[nodiscard]] ToolList& tools() { return tools_; }
  [[nodiscard]] std::int64_t next_id() { return ++last_id_; }

  /// Ends the session that `used` names, unless another has taken its place. The next call starts a new one.
  void drop_session(const Protocol& used);
  /// The server no longer speaks the era that was agreed.
  void renegotiate();

 private:
  enum class State { idle, connecting, ready };

  void connect(Instant deadline);
  void discover();
  void initialize();
  void confirm();
  void ready();
  void fail(const Evidence& cause, std::string_view step);
  void start(HttpRequest request, std::int64_t id, Instant deadline, std::function<void(RpcReply)> done);
  void list_page(Instant deadline, const std::optional<std::string>& cursor);
  void end_list();

  HttpClient& http_;
  const Clock& clock_;
  Catalog& catalog_;
  const ServerConfig* server_;
  State state_ = State::idle;
  std::optional<Era> era_;  // known from an earlier connect
  Protocol protocol_;
  ToolList tools_;
  std::int64_t last_id_ = 0;
  std::uint64_t round_ = 0;  // answers to an earlier connect are ignored
  Instant deadline_{};
  Instant first_deadline_{};  // of the call that began the connect: discovery must leave it time for `initialize`
  RequestId request_ = 0;
  std::map<std::uint64_t, Waiter> waiters_;
  std::map<std::uint64_t, Waiter> list_waiters_;
  bool listing_ = false;
};

}  // namespace holdfast::tools::mcp
