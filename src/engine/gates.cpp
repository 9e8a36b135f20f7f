#include "engine/gates.h"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

namespace {
// Waiters leave one after the other with this much between them, at most.
constexpr std::int64_t kSpreadMs = 40;
constexpr Duration kAskAgain{250};
}  // namespace

Gates::Gates(const tools::Catalog& catalog, Random& random) : catalog_(catalog), random_(random) {
  for (const auto& [name, config] : catalog.config().servers) server(name).gate.server = name;
}

Gates::Server& Gates::server(std::string_view name) {
  auto it = servers_.find(name);
  if (it == servers_.end()) it = servers_.emplace(std::string(name), Server{}).first;
  return it->second;
}

void Gates::load(std::vector<Breaker> breakers, std::vector<RateGate> gates) {
  for (Breaker& b : breakers) {
    Key key{b.server, b.tool};
    // A probe that was out when the process ended can't come back: its slot is free again.
    if (b.state == BreakerState::half_open) b.probe_until.reset();
    if (b.state != BreakerState::closed) changes_.push_back({b.server, b.tool, b.state, false});
    breakers_.insert_or_assign(std::move(key), std::move(b));
  }
  for (RateGate& g : gates) server(g.server).gate = g;
}

bool Gates::slot_free(std::string_view name) const {
  if (in_flight_ >= catalog_.config().limits.concurrent_calls) return false;
  const tools::ServerConfig* config = catalog_.server(name);
  if (config == nullptr || config->max_in_flight == 0) return true;
  const auto it = servers_.find(name);
  return it == servers_.end() || it->second.in_flight < config->max_in_flight;
}

void Gates::take_slot(std::string_view name) {
  ++in_flight_;
  ++server(name).in_flight;
}

void Gates::release_slot(std::string_view name) {
  --in_flight_;
  --server(name).in_flight;
}

bool Gates::others_wait(std::string_view name) const {
  const auto it = servers_.find(name);
  return it != servers_.end() && !it->second.slot_queue.empty();
}

void Gates::forget(std::string_view run_id) {
  for (auto& [name, s] : servers_) {
    std::erase_if(s.slot_queue, [&](const Waiter& w) { return w.run_id == run_id; });
    std::erase_if(s.circuit_queue, [&](const CircuitWaiter& w) { return w.waiter.run_id == run_id; });
  }
}

void Gates::queue_for_slot(std::string_view name, Waiter waiter) {
  server(name).slot_queue.push_back(std::move(waiter));
}

bool Gates::next_for_slot(Waiter& waiter) {
  if (servers_.empty() || in_flight_ >= catalog_.config().limits.concurrent_calls) return false;
  auto it = servers_.upper_bound(last_served_);
  for (std::size_t i = 0; i < servers_.size(); ++i, ++it) {
    if (it == servers_.end()) it = servers_.begin();
    if (it->second.slot_queue.empty() || !slot_free(it->first)) continue;
    waiter = std::move(it->second.slot_queue.front());
    it->second.slot_queue.pop_front();
    last_served_ = it->first;
    return true;
  }
  return false;
}

const BreakerRule& Gates::rule(std::string_view server_name, std::string_view tool) const {
  static const BreakerRule kDefault;
  if (!tool.empty()) {
    const tools::ToolConfig* config = catalog_.find(server_name, tool);
    return config ? config->policy.breaker : kDefault;
  }
  const tools::ServerConfig* config = catalog_.server(server_name);
  return config ? config->breaker : kDefault;
}

Breaker& Gates::breaker(std::string_view server_name, std::string_view tool, Instant now) {
  Key key{std::string(server_name), std::string(tool)};
  auto it = breakers_.find(key);
  if (it == breakers_.end()) {
    Breaker fresh;
    fresh.server = key.first;
    fresh.tool = key.second;
    fresh.since = now;
    fresh.window_start = now;
    it = breakers_.emplace(std::move(key), std::move(fresh)).first;
  }
  return it->second;
}

void Gates::changed(const Breaker& b, BreakerState before, Instant now) {
  const Key key{b.server, b.tool};
  if (std::find(dirty_.begin(), dirty_.end(), key) == dirty_.end()) dirty_.push_back(key);
  if (before == b.state) return;
  changes_.push_back({b.server, b.tool, b.state, b.state == BreakerState::open});
  if (b.state == BreakerState::half_open) return;
  // Reads and keyed calls first: a plain write makes a poor probe.
  auto& queue = server(b.server).circuit_queue;
  std::stable_partition(queue.begin(), queue.end(),
                        [](const CircuitWaiter& w) { return w.kind != Kind::plain; });
  Instant at = b.state == BreakerState::open && b.until ? *b.until : now;
  for (CircuitWaiter& w : queue) {
    released_.push_back({std::move(w.waiter), at});
    at = at + Duration{1 + random_.up_to(kSpreadMs)};
  }
  queue.clear();
}

/// A plain write is the probe only where no read or keyed call waits for the same circuit.
bool Gates::may_probe(const ToolPolicy& policy, Kind kind, bool server_level) {
  if (kind != Kind::plain) return true;
  const auto& queue = server(policy.server).circuit_queue;
  return std::none_of(queue.begin(), queue.end(), [&](const CircuitWaiter& w) {
    return w.kind != Kind::plain && w.by_server == server_level && (server_level || w.tool == policy.tool);
  });
}

Verge Gates::ask(const ToolPolicy& policy, Kind kind, Instant now, Instant lease_until) {
  Verge verge;
  Server& s = server(policy.server);
  if (s.gate.until && *s.gate.until > now) {
    verge.pass = Verge::Pass::wait;
    verge.wait = {run::WaitFor::rate_gate, *s.gate.until + Duration{random_.up_to(kSpreadMs * 5)}};
    return verge;
  }
  verge.permit.server = policy.server;
  verge.permit.tool = policy.tool;
  std::uint64_t* generations[] = {&verge.permit.server_generation, &verge.permit.tool_generation};
  const std::string_view tools[] = {std::string_view{}, policy.tool};
  for (int i = 0; i < 2; ++i) {
    const BreakerRule& r = rule(policy.server, tools[i]);
    Breaker& b = breaker(policy.server, tools[i], now);
    if (!r.enabled && !b.forced_open) continue;
    const BreakerState before = b.state;
    const Admission a = admit(b, r, now, lease_until, may_probe(policy, kind, i == 0));
    if (a.changed) changed(b, before, now);
    if (a.pass == Pass::no) {
      if (verge.permit.probe) give_back(verge.permit, policy, now);  // the server's probe slot, taken in vain
      verge.pass = Verge::Pass::closed;
      verge.by_server = i == 0;
      verge.wait = {run::WaitFor::circuit, a.until};
      // Who may not probe asks again soon: somebody else's probe decides.
      if (a.until && *a.until <= now) verge.wait.until = now + kAskAgain;
      verge.cause = b.forced_open ? "opened by " + b.by + ": " + b.why : b.last_cause;
      return verge;
    }
    *generations[i] = a.generation;
    verge.permit.probe |= a.pass == Pass::probe;
  }
  return verge;
}

void Gates::wait_for_circuit(const ToolPolicy& policy, Waiter waiter, Kind kind, bool by_server) {
  auto& queue = server(policy.server).circuit_queue;
  const auto same = [&](const CircuitWaiter& w) {
    return w.waiter.step == waiter.step && w.waiter.run_id == waiter.run_id;
  };
  if (std::find_if(queue.begin(), queue.end(), same) == queue.end())
    queue.push_back({std::move(waiter), kind, policy.tool, by_server});
}

void Gates::settle(const Permit& permit, const ToolPolicy& policy, const Judgement& judgement,
                   std::optional<Duration> hint, Instant now) {
  Server& s = server(permit.server);
  if (judgement.strikes.gate) {
    const bool own = !hint;
    if (own) ++s.gate.hits;
    const Instant until = own ? s.gate.until.value_or(now) : now + *hint;
    if (!own && (!s.gate.until || *s.gate.until < until)) {
      s.gate.until = until;
      s.gate.server = permit.server;
      s.gate_changed = true;
    }
  } else if (s.gate.hits != 0) {
    s.gate.hits = 0;
  }
  const std::string_view tools[] = {std::string_view{}, permit.tool};
  const std::uint64_t generations[] = {permit.server_generation, permit.tool_generation};
  const bool strikes[] = {judgement.strikes.server, judgement.strikes.tool};
  const bool successes[] = {judgement.success_for_server, judgement.success_for_tool};
  for (int i = 0; i < 2; ++i) {
    const BreakerRule& r = rule(permit.server, tools[i]);
    if (!r.enabled || generations[i] == 0) continue;
    Breaker& b = breaker(permit.server, tools[i], now);
    const BreakerState before = b.state;
    const Outcome outcome = strikes[i]     ? Outcome::failure
                            : successes[i] ? Outcome::success
                                           : Outcome::neutral;
    const std::string cause =
        std::string(word(judgement.klass)) + " from " + policy.server + "/" + policy.tool;
    if (holdfast::settle(b, r, generations[i], outcome, cause, now, random_)) changed(b, before, now);
  }
}

void Gates::give_back(const Permit& permit, const ToolPolicy& policy, Instant now) {
  Judgement neutral;
  neutral.strikes = {};
  settle(permit, policy, neutral, std::nullopt, now);
}

std::vector<Gates::Released> Gates::take_released() {
  return std::exchange(released_, {});
}

Breaker Gates::force(std::string_view server_name, std::string_view tool, bool open, std::string_view by,
                     std::string_view why, std::optional<Instant> until, Instant now) {
  Breaker& b = breaker(server_name, tool, now);
  const BreakerState before = b.state;
  if (open)
    force_open(b, by, why, until, now);
  else
    force_close(b, by, why, now);
  changed(b, before, now);
  return b;
}

void Gates::collect(std::vector<Breaker>& breakers, std::vector<RateGate>& gates) {
  for (const Key& key : dirty_) breakers.push_back(breakers_.at(key));
  dirty_.clear();
  for (auto& [name, s] : servers_) {
    if (!s.gate_changed) continue;
    gates.push_back(s.gate);
    s.gate_changed = false;
  }
}

void Gates::store_again(const Breaker& b) {
  const Key key{b.server, b.tool};
  if (std::find(dirty_.begin(), dirty_.end(), key) == dirty_.end()) dirty_.push_back(key);
}

void Gates::store_again(const RateGate& gate) {
  server(gate.server).gate_changed = true;
}

std::vector<Gates::Change> Gates::take_changes() {
  return std::exchange(changes_, {});
}

}  // namespace holdfast::engine
