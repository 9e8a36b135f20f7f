#pragma once
// How a call reaches a tool. The engine starts calls and gets evidence back; it never sees a socket.
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/core/time.h"
#include "holdfast/policy/evidence.h"
#include "holdfast/policy/tool_policy.h"
#include "holdfast/run/run.h"

namespace holdfast::tools {

using CallId = std::uint64_t;

/// One attempt, ready to leave. The engine builds it only from a committed attempt row.
struct Call {
  CallId id = 0;
  std::string server;
  std::string tool;  // empty: only whether the server lives is asked (`kind` probe, MCP only)
  AttemptKind kind = AttemptKind::call;
  Kind repeat = Kind::plain;  // plain: fresh connection, no reuse; read: redirects may be followed
  run::FrozenRequest request;
  std::string key;     // empty: none. Already inside `request` where it travels in the arguments
  std::optional<KeyRule> key_rule;  // how the key travels, as the call was decided: the configuration may change meanwhile
  Instant deadline{};  // of everything: lookup, connect, handshake, TLS, send, every byte of the answer
  Duration linger{0};  // keep reading this long after giving up, for a late answer
};

/// Where evidence goes. Called from transport threads; must not block.
class CallSink {
 public:
  virtual ~CallSink() = default;
  /// Exactly once for every started call, at the latest shortly (50 ms) after its deadline or its cancel.
  virtual void finished(CallId id, Evidence evidence) = 0;
  /// At most once, after finished() with a timeout or a cancel: what came after we gave up, be it a complete answer
  /// or one that can't be used.
  virtual void late(CallId id, Evidence evidence) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Never blocks, never calls the sink from inside. Thread-safe.
  virtual void start(Call call) = 0;
  /// Ends a call early: finished() follows at once with failure `cancelled` (or with what was already
  /// complete). Unknown ids are ignored. Thread-safe.
  virtual void cancel(CallId id) = 0;
  /// Ends everything; no sink call comes after it has returned. stdio children are ended too.
  virtual void stop() = 0;
};

}  // namespace holdfast::tools
