#pragma once
// One request of the connect phase, and its answer, whether it comes as JSON or on a stream that never ends.
#include <functional>

#include "tools/mcp/http_messages.h"

namespace holdfast::tools::mcp {

struct RpcReply {
  Evidence evidence;
  HttpHeaders headers;
};

/// `done` runs once, on the client's thread.
RequestId rpc_exchange(HttpClient& http, HttpRequest request, std::int64_t id, const Limits& limits,
                       std::function<void(RpcReply)> done);

}  // namespace holdfast::tools::mcp
