#pragma once
// What all runs share in front of a tool: slots, rate gates, breakers. Engine thread only.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/policy/breaker.h"
#include "holdfast/policy/classify.h"
#include "holdfast/policy/rate_gate.h"
#include "holdfast/run/run.h"
#include "holdfast/tools/catalog.h"

namespace holdfast::engine {

/// Who waited for the same thing leaves one after the other, with this much in between at most.
inline constexpr std::int64_t kApartMs = 40;

/// A step that waits for a slot or a closed circuit.
struct Waiter {
  std::string run_id;
  std::uint32_t step = 0;
  bool check = false;  // the step's check waits, not its call
};

/// The two breakers that a call meets.
enum Level : std::size_t { kOfServer, kOfTool, kLevels };

/// What a call was admitted under; handed back with its result.
struct Permit {
  std::string server, tool;
  std::array<std::uint64_t, kLevels> generations{};  // 0: that breaker is not told
  std::array<bool, kLevels> probes{};                // the call is that breaker's one probe
  std::uint64_t gate = 0;
  bool stand_in = false;  // a probe that is no call of a step
};

struct Verge {                                           // the answer at the gate
  enum class Pass { go, wait, closed } pass = Pass::go;  // closed: the circuit is open
  run::Wait wait;
  Instant earliest{};  // wait: when the gate opens; `wait.until` is this caller's turn after it
  Permit permit;
  std::string cause;
  bool by_server = false;          // closed: the server's circuit, not the tool's
  bool probing = false;            // closed: a probe decides soon, `wait.until` is only when to ask at the latest
  std::optional<Permit> stand_in;  // closed: the probe that is to be sent now, instead of the call
};

/// How a server is asked whether it lives, when a call would be too dear: its `probe` tool, or over MCP
/// (`tool` empty) what the server's era offers.
struct StandIn {
  const ToolPolicy* policy = nullptr;
  std::string tool;
};

class Gates {
 public:
  Gates(const tools::Catalog& catalog, Random& random);

  void load(std::vector<Breaker> breakers, std::vector<RateGate> gates);

  /// True while the server (and the process) may have one more call in flight.
  [[nodiscard]] bool slot_free(std::string_view server) const;
  void take_slot(std::string_view server);
  void release_slot(std::string_view server);
  /// Somebody who could have the next free slot stands in a queue: who comes now stands behind.
  [[nodiscard]] bool others_wait(std::string_view server) const;
  /// The run waits for nothing any more.
  void forget(std::string_view run_id);
  /// A check is queued once, however often it asks; a step must ask once only.
  void queue_for_slot(std::string_view server, Waiter waiter);
  /// The next waiter whose server has a free slot, fairly over servers; false when there is none.
  [[nodiscard]] bool next_for_slot(Waiter& waiter);

  /// May a call leave now, that would be over by `call_end`? Takes a half-open probe's lease where that is
  /// what it takes: both circuits let it pass, or neither gives anything away. Where a plain write would be
  /// the probe and its server can be asked otherwise, the lease is the stand-in's, which the caller must send.
  [[nodiscard]] Verge ask(const ToolPolicy& policy, Kind kind, Instant now, Instant call_end);
  /// nullopt where only a call can tell.
  [[nodiscard]] std::optional<StandIn> stand_in(std::string_view server) const;
  void wait_for_circuit(const ToolPolicy& policy, const Waiter& waiter, Kind kind, bool by_server);
  /// The step asks again, or waits no more.
  void leave_circuit(std::string_view server, const Waiter& waiter);
  /// The result of an admitted call. `asked`: for how long a limit wants to be left alone.
  void settle(const Permit& permit, const ToolPolicy& policy, const Judgement& judgement,
              std::optional<Duration> asked, Instant now);
  /// A call that ended without a verdict on the tool (cancelled, crashed).
  void give_back(const Permit& permit, const ToolPolicy& policy, Instant now);

  /// Waiters to be told a new instant because a circuit changed; emptied by the call. They leave one after
  /// the other. They stay in the circuit's queue until they ask.
  struct Released {
    Waiter waiter;
    Instant at;
  };
  [[nodiscard]] std::vector<Released> take_released();

  /// An operator's word. Closing a server's circuit opens its rate gate too.
  Breaker force(std::string_view server, std::string_view tool, bool open, std::string_view by,
                std::string_view why, std::optional<Instant> until, Instant now);

  /// Circuits that were forced open for a time which is over by `now` are closed. Returns when the next one ends.
  std::optional<Instant> end_forced(Instant now);

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
  using StepKey = std::pair<std::string, std::uint32_t>;  // run, step
  struct CircuitWaiter {
    std::uint64_t ticket;  // ascending in order of arrival
    std::string tool;
    Kind kind;
    bool check, by_server;
  };
  struct Server {
    std::uint32_t in_flight = 0;
    std::deque<Waiter> slot_queue;
    std::map<StepKey, CircuitWaiter> circuit_queue;
    RateGate gate;
    bool gate_changed = false;
    Instant last_leave{};  // of those who wait for the rate gate
  };
  using Key = std::pair<std::string, std::string>;

  Server& server(std::string_view name);
  Breaker& breaker(std::string_view server, std::string_view tool, Instant now);
  const BreakerRule& rule(std::string_view server, std::string_view tool) const;
  void changed(const Breaker& breaker, BreakerState before, Instant now);
  void release_waiters(const Breaker& breaker, Instant now);
  [[nodiscard]] bool may_probe(const ToolPolicy& policy, Kind kind, bool server_level);
  [[nodiscard]] Verge wait_for_gate(Server& server);
  [[nodiscard]] Outcome outcome_of(const Permit& permit, Level level, const Judgement& judgement) const;

  const tools::Catalog& catalog_;
  Random& random_;
  std::uint32_t in_flight_ = 0;
  std::size_t waiting_for_slot_ = 0;
  std::set<StepKey> queued_checks_;
  std::uint64_t next_ticket_ = 1;
  std::map<std::string, Server, std::less<>> servers_;
  std::map<Key, Breaker> breakers_;
  std::set<std::pair<std::int64_t, Key>> forced_until_;  // milliseconds; an entry that no longer holds is passed over
  std::vector<Key> dirty_;
  std::vector<Released> released_;
  std::vector<Change> changes_;
  std::string last_served_;
};

}  // namespace holdfast::engine
