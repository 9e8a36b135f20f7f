#pragma once
#include <any>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "http/router.h"
#include "http/server.h"

namespace holdfast::http {

/// One request from its complete body to the last byte of its answer. Owned by exactly one thread at a time:
/// the poller, or the worker that runs its handler.
struct Exchange {
  std::uint64_t connection = 0;
  int socket = -1;  // the poller keeps it open while the exchange is away
  const Route* route = nullptr;
  Request request;
  std::string sent_path;
  std::any state;                   // the handler's own
  std::vector<std::string> topics;  // watched by the last run of the handler
  bool http_1_0 = false;
  bool close_after = false;
  bool streaming = false;  // the head of an endless answer has been sent
  bool quiet = false;      // the poller is not told of the socket's events before it has the exchange back
};

/// What one run of the handler came to.
struct Step {
  enum class Next { finish, park, close };
  Next next = Next::finish;
  std::string bytes;                        // for the wire; the worker sends what fits and leaves the rest
  std::shared_ptr<const std::string> tail;  // goes after `bytes`: a large body, never copied
  std::size_t tail_sent = 0;
  bool tail_is_shared = false;  // other answers hold it too, so it does not count as this one's memory
  Instant until;                // of a park
  std::string received;         // of the client's next request, read by the worker

  [[nodiscard]] bool all_sent() const { return bytes.empty() && (tail == nullptr || tail_sent == tail->size()); }
};

}  // namespace holdfast::http
