#pragma once
// The whole HTTP surface of both listeners in one thread, without sockets and without time: bytes of a connection go through the head's reader,
// admission, the library's request processing and the real handlers to the real engine and the real ledger on a disk in memory. Tools, clock and
// randomness are made up, so equal bytes give equal answers. For tests and fuzzers; not thread-safe.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::testing {

class Surface {
 public:
  enum class Listener { client, admin };

  /// With a few runs of every kind in the ledger: `seeds` in surface.cpp.
  Surface();
  ~Surface();
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;

  struct Answer {
    std::string route;   // "GET /v1/runs/{id}"; empty when no handler was asked
    std::string method;  // of the request; HEAD goes by GET's route
    std::string bytes;
  };
  /// What a client reads that sends these requests one after the other, each when it has the answer to the one before: an answer each, up to the
  /// one that closes the connection. `$c` and `$o` in them stand for a client's and an operator's token, `$0` to `$9` for what follows `run_` in the
  /// id of a run, in the order in which they were accepted. Begins with the same ledger each time.
  [[nodiscard]] std::vector<Answer> serve(Listener listener, std::string_view requests);
  /// What does not hold of the answers to these requests, whichever listener gets them; empty when everything does.
  [[nodiscard]] std::string broken_promise(std::string_view requests);

  /// Statuses by route ("GET /v1/runs/{id}"), of everything that has been served.
  using Reached = std::map<std::string, std::set<int>>;
  [[nodiscard]] const Reached& reached(Listener listener) const;  // with an entry for every route

 private:
  struct World;
  void begin();
  std::string image_;
  std::vector<std::string> seeded_;  // ids of runs
  Reached reached_[2];
  std::unique_ptr<World> world_;
};

}  // namespace holdfast::testing
