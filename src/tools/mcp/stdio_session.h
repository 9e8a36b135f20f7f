#pragma once
// MCP over stdio, as a client.
#include <memory>

#include "tools/mcp/http_session.h"

namespace holdfast::tools::mcp {

/// One thread serves all stdio servers; processes start with the first call and end at the latest with that
/// thread. `clock`, `catalog` and `sink` must outlive it.
[[nodiscard]] std::unique_ptr<McpTransport> make_mcp_stdio(const Clock& clock, Catalog& catalog,
                                                           CallSink& sink);

}  // namespace holdfast::tools::mcp
