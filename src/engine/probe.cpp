// A half-open circuit in front of plain writes: the server is asked something harmless instead.
#include <spdlog/spdlog.h>

#include "engine/loop.h"
#include "holdfast/policy/retry.h"

namespace holdfast::engine {

namespace {

std::string name_of(const Permit& permit) {
  return permit.probes[kOfTool] ? permit.server + "/" + permit.tool : permit.server;
}

}  // namespace

void Engine::Impl::send_probe(Permit permit) {
  const auto stand_in = gates.stand_in(permit.server);
  tools::Call call;
  if (stand_in && !stand_in->tool.empty()) {
    auto request = catalog.freeze(permit.server, stand_in->tool, "{}", "");
    if (request) call.request = std::move(*request);
  }
  // The configuration was checked for both; without them the lease runs out by itself.
  if (!stand_in || (!stand_in->tool.empty() && call.request.head.empty())) return;
  call.id = next_call++;
  call.server = permit.server;
  call.tool = stand_in->tool;
  call.kind = AttemptKind::probe;
  call.repeat = Kind::read;
  call.deadline = now + stand_in->policy->deadline;
  spdlog::info("the circuit of {} is half open: asking {}", name_of(permit),
               call.tool.empty() ? "the server whether it lives" : permit.server + "/" + call.tool);
  gates.take_slot(permit.server);
  probes.emplace(call.id, Probe{std::move(permit), stand_in->policy});
  outgoing.emplace_back(std::move(call), std::string{});
}

void Engine::Impl::probe_finished(tools::CallId id, const Evidence& evidence) {
  const auto it = probes.find(id);
  if (it == probes.end()) return;
  const Probe probe = std::move(it->second);
  probes.erase(it);
  gates.release_slot(probe.permit.server);
  const Judgement judgement = classify(evidence, *probe.asked, Kind::read, false);
  gates.settle(probe.permit, *probe.asked, judgement,
               retry_after_wait(evidence.retry_after, evidence.date, now), now);
  spdlog::info("the probe for the circuit of {} ended: {}", name_of(probe.permit), word(judgement.klass));
}

}  // namespace holdfast::engine
