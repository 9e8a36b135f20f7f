#pragma once
// What all runs share in front of a tool: slots, rate gates, breakers. Engine thread only.
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/policy/breaker.h"
#include "holdfast/policy/classify.h"
#include "holdfast/run/run.h"
#include "holdfast/tools/catalog.h"

namespace holdfast::engine {

/// A step that waits for a slot or an open circuit.
struct Waiter {
  std::string run_id;
  std::uint32_t step;
};

/// What a call was admitted under; handed back with its result.
struct Permit {
  std::string server, tool;
  std::uint64_t server_generation = 0, tool_generation = 0;
  bool probe = false;
};

struct Verge {                                           // the answer at the gate
  enum class Pass { go, wait, closed } pass = Pass::go;  // closed: the circuit is open
  run::Wait wait;
  Permit permit;
  std::string cause;
  bool by_server = false;  // closed: the server's circuit, not the tool's
};

class Gates {
 public:
  Gates(const tools::Catalog& catalog, Random& random);

  void load(std::vector<Breaker> breakers, std::vector<RateGate> gates);

  /// True while the server (and the process) may have one more call in flight.
  [[nodiscard]] bool slot_free(std::string_view server) const;
  void take_slot(std::string_view server);
  void release_slot(std::string_view server);
  /// Somebody stands in the queue for a slot of this server: who comes now stands behind.
  [[nodiscard]] bool others_wait(std::string_view server) const;
  /// The run waits for nothing any more.
  void forget(std::string_view run_id);
  void queue_for_slot(std::string_view server, Waiter waiter);
  /// The next waiter whose server has a free slot, fairly over servers; false when there is none.
  [[nodiscard]] bool next_for_slot(Waiter& waiter);

  /// May a call leave now? Takes a half-open probe's lease where that is what it takes.
  [[nodiscard]] Verge ask(const ToolPolicy& policy, Kind kind, Instant now, Instant lease_until);
  void wait_for_circuit(const ToolPolicy& policy, Waiter waiter, Kind kind, bool by_server);
  /// The result of an admitted call. `hint`: what a 429 asked for.
  void settle(const Permit& permit, const ToolPolicy& policy, const Judgement& judgement,
              std::optional<Duration> hint, Instant now);
  /// A call that ended without a verdict on the tool (cancelled, crashed).
  void give_back(const Permit& permit, const ToolPolicy& policy, Instant now);

  /// Waiters to be asked again because a circuit changed; emptied by the call. Each with the instant to leave
  /// at, spread out.
  struct Released {
    Waiter waiter;
    Instant at;
  };
  [[nodiscard]] std::vector<Released> take_released();

  Breaker force(std::string_view server, std::string_view tool, bool open, std::string_view by,
                std::string_view why, std::optional<Instant> until, Instant now);

  /// Rows that changed since the last call, to be stored.
  void collect(std::vector<Breaker>& breakers, std::vector<RateGate>& gates);
  /// A row that collect() gave and that could not be stored: it is given again.
  void store_again(const Breaker& breaker);
  void store_again(const RateGate& gate);
  /// Breakers that changed state since the last call, for metrics.
  struct Change {
    std::string server, tool;
    BreakerState state;
    bool opened;
  };
  [[nodiscard]] std::vector<Change> take_changes();

 private:
  struct CircuitWaiter {
    Waiter waiter;
    Kind kind;
    std::string tool;
    bool by_server;
  };
  struct Server {
    std::uint32_t in_flight = 0;
    std::deque<Waiter> slot_queue;
    std::vector<CircuitWaiter> circuit_queue;
    RateGate gate;
    bool gate_changed = false;
  };
  using Key = std::pair<std::string, std::string>;

  Server& server(std::string_view name);
  Breaker& breaker(std::string_view server, std::string_view tool, Instant now);
  const BreakerRule& rule(std::string_view server, std::string_view tool) const;
  void changed(const Breaker& breaker, BreakerState before, Instant now);
  [[nodiscard]] bool may_probe(const ToolPolicy& policy, Kind kind, bool server_level);

  const tools::Catalog& catalog_;
  Random& random_;
  std::uint32_t in_flight_ = 0;
  std::map<std::string, Server, std::less<>> servers_;
  std::map<Key, Breaker> breakers_;
  std::vector<Key> dirty_;
  std::vector<Released> released_;
  std::vector<Change> changes_;
  std::string last_served_;
};

}  // namespace holdfast::engine
