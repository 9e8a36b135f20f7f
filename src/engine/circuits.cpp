// Breakers and rate gates, as every call meets them.
#include <algorithm>
#include <utility>

#include "engine/gates.h"

namespace holdfast::engine {

namespace {

// All waiters leave within the span.
constexpr Duration kSpreadSpan{5'000};
/// A probe's lease ends this long after its call.
constexpr Duration kProbeGrace{2'000};
constexpr Duration kAskAgain{250};

bool is_closed(const Breaker& b) {
  return b.state == BreakerState::closed && !b.forced_open;
}

/// Only a probe is missing.
bool is_due(const Breaker& b, Instant now) {
  const auto& busy_until = b.state == BreakerState::open ? b.until : b.probe_until;
  return !b.forced_open && (!busy_until || *busy_until <= now);
}

}  // namespace

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
  if (b.state != BreakerState::half_open) release_waiters(b, now);
}

/// Reads and keyed calls first: a plain write makes a poor probe.
void Gates::release_waiters(const Breaker& b, Instant now) {
  const auto& queue = server(b.server).circuit_queue;
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(queue.size()));
  const std::int64_t apart = std::clamp<std::int64_t>(kSpreadSpan.count() / count, 1, kApartMs);
  const Instant first = b.state == BreakerState::open && b.until ? std::max(*b.until, now) : now;
  using Entry = std::pair<const StepKey, CircuitWaiter>;
  std::vector<const Entry*> order;
  order.reserve(queue.size());
  for (const Entry& entry : queue) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const Entry* e) { return std::pair(e->second.kind == Kind::plain, e->second.ticket); });
  Instant at = first;
  for (const Entry* e : order) {
    released_.push_back({{e->first.first, e->first.second, e->second.check}, std::min(at, first + kSpreadSpan)});
    at = at + Duration{1 + random_.up_to(apart - 1)};
  }
}

/// A plain write is the probe only where no read or keyed call waits for the same circuit.
bool Gates::may_probe(const ToolPolicy& policy, Kind kind, bool server_level) {
  if (kind != Kind::plain) return true;
  const auto& queue = server(policy.server).circuit_queue;
  return std::none_of(queue.begin(), queue.end(), [&](const auto& entry) {
    const CircuitWaiter& w = entry.second;
    return w.kind != Kind::plain && w.by_server == server_level && (server_level || w.tool == policy.tool);
  });
}

std::optional<StandIn> Gates::stand_in(std::string_view name) const {
  const tools::ServerConfig* config = catalog_.server(name);
  if (config == nullptr) return std::nullopt;
  if (!config->probe_tool.empty()) {
    const tools::ToolConfig* tool = catalog_.find(name, config->probe_tool);
    if (tool == nullptr) return std::nullopt;
    return StandIn{&tool->policy, config->probe_tool};
  }
  if (config->transport == tools::ServerConfig::Transport::http) return std::nullopt;
  return StandIn{&config->fallback_tool.policy, {}};
}

/// Everybody gets an instant of his own after the gate's, so that they don't leave in one burst.
Verge Gates::wait_for_gate(Server& s) {
  Verge verge;
  verge.pass = Verge::Pass::wait;
  verge.earliest = *s.gate.until;
  if (s.last_leave < verge.earliest || s.last_leave >= verge.earliest + kSpreadSpan)
    s.last_leave = verge.earliest;
  s.last_leave = s.last_leave + Duration{1 + random_.up_to(kApartMs - 1)};
  verge.wait = {run::WaitFor::rate_gate, s.last_leave};
  return verge;
}

Verge Gates::ask(const ToolPolicy& policy, Kind kind, Instant now, Instant call_end) {
  Server& s = server(policy.server);
  if (is_shut(s.gate, now)) return wait_for_gate(s);
  std::optional<StandIn> instead;
  if (kind == Kind::plain) instead = stand_in(policy.server);
  const Instant lease =
      (instead ? now + instead->policy->deadline : call_end) + kProbeGrace;

  struct Asked {
    Breaker* breaker;
    const BreakerRule* rule;
    bool may_probe = true;
  };
  std::array<Asked, kLevels> asked{};
  const std::array<std::string_view, kLevels> tools{std::string_view{}, policy.tool};
  Verge verge;
  for (const Level level : {kOfServer, kOfTool}) {
    Asked& a = asked[level];
    a = {&breaker(policy.server, tools[level], now), &rule(policy.server, tools[level])};
    if (is_closed(*a.breaker)) continue;
    const bool due = is_due(*a.breaker, now);
    a.may_probe = !due || may_probe(policy, kind, level == kOfServer);
    Breaker trial = *a.breaker;
    const Admission answer = admit(trial, *a.rule, now, lease, a.may_probe);
    if (answer.pass != Pass::no) continue;
    verge.pass = Verge::Pass::closed;
    verge.by_server = level == kOfServer;
    verge.wait = {run::WaitFor::circuit, answer.until};
    if (answer.until && *answer.until <= now) verge.wait.until = now + kAskAgain;
    verge.probing = a.breaker->state == BreakerState::half_open || due;
    verge.cause = a.breaker->forced_open ? "opened by " + a.breaker->by + ": " + a.breaker->why
                                         : a.breaker->last_cause;
    return verge;
  }

  Permit& permit = verge.permit;
  permit.server = policy.server;
  permit.tool = policy.tool;
  permit.gate = s.gate.generation;
  for (const Level level : {kOfServer, kOfTool}) {
    const Asked& a = asked[level];
    if (!a.rule->enabled && !a.breaker->forced_open) continue;
    const BreakerState before = a.breaker->state;
    const Admission answer = admit(*a.breaker, *a.rule, now, lease, a.may_probe);
    if (answer.changed) changed(*a.breaker, before, now);
    permit.generations[level] = answer.generation;
    permit.probes[level] = answer.pass == Pass::probe;
  }
  const bool probes = permit.probes[kOfServer] || permit.probes[kOfTool];
  if (!probes || !instead) return verge;

  verge.pass = Verge::Pass::closed;
  verge.by_server = permit.probes[kOfServer];
  verge.probing = true;
  verge.wait = {run::WaitFor::circuit, lease};
  const Breaker& probed = *asked[verge.by_server ? kOfServer : kOfTool].breaker;
  verge.cause = probed.last_cause;
  permit.stand_in = true;
  for (const Level level : {kOfServer, kOfTool})
    if (!permit.probes[level]) permit.generations[level] = 0;  // the stand-in is no call of the tool
  verge.stand_in = std::move(verge.permit);
  return verge;
}

void Gates::wait_for_circuit(const ToolPolicy& policy, const Waiter& waiter, Kind kind, bool by_server) {
  Server& s = server(policy.server);
  const CircuitWaiter fresh{next_ticket_, policy.tool, kind, waiter.check, by_server};
  if (s.circuit_queue.try_emplace({waiter.run_id, waiter.step}, fresh).second) ++next_ticket_;
}

void Gates::leave_circuit(std::string_view name, const Waiter& waiter) {
  Server& s = server(name);
  const auto it = s.circuit_queue.find({waiter.run_id, waiter.step});
  if (it != s.circuit_queue.end() && it->second.check == waiter.check) s.circuit_queue.erase(it);
}

Outcome Gates::outcome_of(const Permit& permit, Level level, const Judgement& j) const {
  const bool lives = j.success_for_server;
  if (permit.stand_in) {
    if (j.klass == AttemptClass::cancelled || j.klass == AttemptClass::crashed) return Outcome::neutral;
    if (!lives) return Outcome::failure;
    return level == kOfServer ? Outcome::success : Outcome::alive;
  }
  if (level == kOfTool)
    return j.strikes.tool ? Outcome::failure : j.success_for_tool ? Outcome::success : Outcome::neutral;
  if (j.strikes.server) return Outcome::failure;
  if (lives) return Outcome::success;
  // A probe that found nobody in time has its answer: not yet.
  return permit.probes[kOfServer] && j.strikes.tool ? Outcome::failure : Outcome::neutral;
}

void Gates::settle(const Permit& permit, const ToolPolicy& policy, const Judgement& judgement,
                   std::optional<Duration> asked, Instant now) {
  Server& s = server(permit.server);
  if (judgement.strikes.gate)
    s.gate_changed |= limit(s.gate, policy.backoff, permit.gate, asked, now, random_);
  else if (judgement.success_for_server)
    s.gate_changed |= answered(s.gate, permit.gate);
  const std::array<std::string_view, kLevels> tools{std::string_view{}, permit.tool};
  for (const Level level : {kOfServer, kOfTool}) {
    const BreakerRule& r = rule(permit.server, tools[level]);
    if (!r.enabled || permit.generations[level] == 0) continue;
    Breaker& b = breaker(permit.server, tools[level], now);
    const BreakerState before = b.state;
    const Outcome outcome = outcome_of(permit, level, judgement);
    std::string cause;
    if (outcome == Outcome::failure)
      cause = std::string(word(judgement.klass)) + " from " + policy.server +
              (policy.tool.empty() ? "" : "/" + policy.tool) + (permit.stand_in ? ", asked as a probe" : "");
    if (holdfast::settle(b, r, permit.generations[level], outcome, cause, now, random_))
      changed(b, before, now);
  }
}

void Gates::give_back(const Permit& permit, const ToolPolicy& policy, Instant now) {
  Judgement neutral;
  neutral.klass = AttemptClass::cancelled;
  settle(permit, policy, neutral, std::nullopt, now);
}

Breaker Gates::force(std::string_view server_name, std::string_view tool, bool open, std::string_view by,
                     std::string_view why, std::optional<Instant> until, Instant now) {
  Breaker& b = breaker(server_name, tool, now);
  const BreakerState before = b.state;
  if (open)
    force_open(b, by, why, until, now);
  else
    force_close(b, by, why, now);
  if (open && until) forced_until_.emplace(until->ms, Key{b.server, b.tool});
  if (!open && tool.empty()) {
    Server& s = server(server_name);
    clear(s.gate);
    s.gate_changed = true;
  }
  changed(b, before, now);
  return b;
}

std::optional<Instant> Gates::end_forced(Instant now) {
  while (!forced_until_.empty()) {
    const auto& [end_ms, key] = *forced_until_.begin();
    Breaker& b = breakers_.at(key);
    const bool holds = b.forced_open && b.until && b.until->ms == end_ms;
    if (holds && now < *b.until) return b.until;
    if (holds) {
      const BreakerState before = b.state;
      force_close(b, {}, {}, now);
      changed(b, before, now);
    }
    forced_until_.erase(forced_until_.begin());
  }
  return std::nullopt;
}

}  // namespace holdfast::engine
