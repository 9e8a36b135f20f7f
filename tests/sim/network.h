#pragma once
// The transport of one life: calls leave, reach their tools or do not, and evidence comes back.
#include <map>
#include <memory>

#include "sim/oracles.h"

namespace holdfast::sim {

/// What outlives a process: the wires and the servers behind them.
struct Network {
  Network(std::uint64_t seed, const Swarm& options) : dice(seed, "network"), swarm(options) {}
  Dice dice;
  const Swarm& swarm;
  bool healed = false;
  std::map<std::string, Instant> sick_until;  // by server
  std::map<std::string, Tool> doors;          // what answers a probe that is no call
};

class Transport final : public tools::Transport {
 public:
  struct Hooks {
    std::function<void(const tools::Call&, Op*)> before_start;  // may throw Crash or Violation
    std::function<void()> posted;                               // the engine has something to look at
  };
  Transport(World& world, Truth& truth, const Town& town, Oracles& oracles, Network& network,
            const LifeClock& clock, Hooks hooks);
  /// The engine is made after its transport.
  void set_sink(tools::CallSink* sink) { sink_ = sink; }

  void start(tools::Call call) override;
  void cancel(tools::CallId id) override;
  void stop() override {}
  /// The process is gone: nobody hears an answer any more, and what has left may still arrive.
  void die();
  /// Calls that are out, by server.
  [[nodiscard]] const std::map<std::string, std::uint32_t>& out() const { return out_; }

 private:
  struct Flight {
    tools::Call call;
    Op* op = nullptr;  // none for a probe
    Tool* tool = nullptr;
    const ToolPolicy* policy = nullptr;
    std::size_t send = 0;  // of the op, for kind call
    Script script;
    Instant sent{}, arrives{}, answered{}, gives_up{};
    bool over = false;     // we have our evidence, or nobody wants it any more
    bool arrived = false;  // at the tool
    bool answered_late = false;
    bool recognised = false;
    std::uint64_t arrival = 0;  // number of the arrival that counts
    std::uint32_t total = 0;    // what a check saw
  };
  using Held = std::shared_ptr<Flight>;
  void plan(Flight& flight);
  void fill(Flight& flight, tools::Call call, Op* op);
  Outcome draw_outcome(const Tool& tool);
  void arrive(const Held& flight, std::uint64_t arrival);
  void answer(const Held& flight);
  void give_up(const Held& flight, Failure failure);
  void after_give_up(const Held& flight);
  void hand_over(const Held& flight, Evidence evidence, Shown shown);
  [[nodiscard]] Evidence answer_of(Flight& flight);
  [[nodiscard]] static std::string name_of(const Flight& flight) { return flight.op ? flight.op->name : "probe"; }
  [[nodiscard]] bool is_call(const Flight& flight) const { return flight.call.kind == AttemptKind::call; }

  World& world_;
  Truth& truth_;
  const Town& town_;
  Oracles& oracles_;
  Network& network_;
  const LifeClock& clock_;
  Hooks hooks_;
  tools::CallSink* sink_ = nullptr;
  std::map<tools::CallId, Held> flights_;
  std::map<std::string, std::uint32_t> out_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::sim
