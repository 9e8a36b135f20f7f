#pragma once
// One transport over all: every call goes to the kind of server that its configuration names.
#include <memory>

#include "holdfast/tools/catalog.h"
#include "holdfast/tools/http_client.h"
#include "holdfast/tools/transport.h"

namespace holdfast::tools {

class Dispatcher : public Transport {
 public:
  /// Connects to every MCP server that is trusted and lets the catalog learn from its tool list. Blocks for
  /// `at_most`; a server that is not ready by then is looked at again with its first call. Never from a
  /// transport thread.
  virtual void discover_trusted(Duration at_most) = 0;
  /// After Catalog::replace(), between two calls of start(): connections and processes of servers that are reached as before
  /// are kept, those of others end with their last call. Never blocks.
  virtual void reconfigure() = 0;
};

/// `clock`, `catalog`, `client` and `sink` must outlive it. stop() also ends the stdio children; `client` is
/// the caller's to stop, after stop() and before the catalog goes.
[[nodiscard]] std::unique_ptr<Dispatcher> make_dispatcher(const Clock& clock, Catalog& catalog,
                                                          HttpClient& client, CallSink& sink);

}  // namespace holdfast::tools
