// Slots and their queues, and the rows of the gates.
#include "engine/gates.h"

#include <algorithm>
#include <utility>

#include "core/canary.h"

namespace holdfast::engine {

Gates::Gates(const tools::Catalog& catalog, Random& random) : catalog_(catalog), random_(random) {
  for (const auto& [name, config] : catalog.config().servers) server(name).gate.server = name;
}

Gates::Server& Gates::server(std::string_view name) {
  auto it = servers_.find(name);
  if (it == servers_.end()) {
    it = servers_.emplace(std::string(name), Server{}).first;
    it->second.gate.server = name;
  }
  return it->second;
}

void Gates::load(std::vector<Breaker> breakers, std::vector<RateGate> gates) {
  for (Breaker& b : breakers) {
    Key key{b.server, b.tool};
    // A probe that was out when the process ended can't come back: its slot is free again.
    if (b.probe_until) dirty_.push_back(key);
    b.probe_until.reset();
    if (b.forced_open && b.until) forced_until_.emplace(b.until->ms, key);
    if (b.state != BreakerState::closed) changes_.push_back({b.server, b.tool, b.state, false});
    breakers_.insert_or_assign(std::move(key), std::move(b));
  }
  if (canary(Canary::rate_gate_forgotten_on_restart)) gates.clear();
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
  if (canary(Canary::slots_not_counted)) return;
  ++in_flight_;
  ++server(name).in_flight;
}

void Gates::release_slot(std::string_view name) {
  if (canary(Canary::slots_not_counted)) return;
  --in_flight_;
  --server(name).in_flight;
}

bool Gates::others_wait(std::string_view name) const {
  if (waiting_for_slot_ == 0) return false;
  const auto it = servers_.find(name);
  if (it != servers_.end() && !it->second.slot_queue.empty()) return true;
  // The process's own slots: those who wait at other servers and could leave come first.
  std::size_t ahead = 0;
  for (const auto& [other, s] : servers_)
    if (!s.slot_queue.empty() && slot_free(other)) ahead += s.slot_queue.size();
  return ahead >= catalog_.config().limits.concurrent_calls - in_flight_;
}

void Gates::forget(std::string_view run_id) {
  const StepKey first{std::string(run_id), 0};
  for (auto& [name, s] : servers_) {
    waiting_for_slot_ -= std::erase_if(s.slot_queue, [&](const Waiter& w) { return w.run_id == run_id; });
    for (auto it = s.circuit_queue.lower_bound(first); it != s.circuit_queue.end() && it->first.first == run_id;)
      it = s.circuit_queue.erase(it);
  }
  for (auto it = queued_checks_.lower_bound(first); it != queued_checks_.end() && it->first == run_id;)
    it = queued_checks_.erase(it);
}

void Gates::queue_for_slot(std::string_view name, Waiter waiter) {
  if (waiter.check && !queued_checks_.emplace(waiter.run_id, waiter.step).second) return;
  server(name).slot_queue.push_back(std::move(waiter));
  ++waiting_for_slot_;
}

bool Gates::next_for_slot(Waiter& waiter) {
  if (waiting_for_slot_ == 0 || in_flight_ >= catalog_.config().limits.concurrent_calls) return false;
  auto it = servers_.upper_bound(last_served_);
  for (std::size_t i = 0; i < servers_.size(); ++i, ++it) {
    if (it == servers_.end()) it = servers_.begin();
    if (it->second.slot_queue.empty() || !slot_free(it->first)) continue;
    waiter = std::move(it->second.slot_queue.front());
    it->second.slot_queue.pop_front();
    --waiting_for_slot_;
    if (waiter.check) queued_checks_.erase({waiter.run_id, waiter.step});
    last_served_ = it->first;
    return true;
  }
  return false;
}

std::vector<Gates::Released> Gates::take_released() {
  return std::exchange(released_, {});
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
