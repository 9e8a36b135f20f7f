#pragma once
// MCP over streamable HTTP, as a client.
#include <functional>
#include <memory>

#include "holdfast/tools/catalog.h"
#include "holdfast/tools/http_client.h"
#include "holdfast/tools/transport.h"

namespace holdfast::tools::mcp {

/// A transport that can look at a server before the first call.
class McpTransport : public Transport {
 public:
  /// Connects and reads the tool list into the catalog; `done` runs once, on a transport thread, whatever
  /// came of it and at the latest about `at_most` later. Never after stop() has returned.
  virtual void discover(const std::string& server, Duration at_most, std::function<void()> done) = 0;
  /// Calls started from now on go by `config`, which must outlive the transport; earlier ones go on as they were.
  virtual void reconfigure(const Config& config) = 0;
};

/// Everything happens on the client's thread. `clock`, `catalog`, `http` and `sink` must outlive it; `http`
/// is not stopped by stop().
[[nodiscard]] std::unique_ptr<McpTransport> make_mcp_http(const Clock& clock, Catalog& catalog,
                                                          HttpClient& http, CallSink& sink);

}  // namespace holdfast::tools::mcp
