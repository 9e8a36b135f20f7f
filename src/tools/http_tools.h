#pragma once
// Plain HTTP tools: a frozen request becomes one exchange, its outcome becomes evidence.
#include <memory>

#include "holdfast/core/json.h"
#include "holdfast/tools/catalog.h"
#include "holdfast/tools/http_client.h"
#include "holdfast/tools/transport.h"

namespace holdfast::tools {

/// The arguments must outlive the transport. `client` is shared and is not stopped with it.
[[nodiscard]] std::unique_ptr<Transport> make_http_tools(const Clock& clock, const Catalog& catalog,
                                                         HttpClient& client, CallSink& sink);

/// What the answer of a plain HTTP tool shows: the result as received when it is JSON, other text as a JSON
/// string, nothing as `null`. No text in it holds one of `secrets`.
[[nodiscard]] Evidence read_http_answer(HttpOutcome outcome, const json::Limits& limits,
                                        const std::vector<std::string>& secrets);

}  // namespace holdfast::tools
