#pragma once
// The contract's JSON (sections 3, 4 and 8): every field always present, null where there is nothing.
#include <string>

#include "holdfast/core/json.h"
#include "holdfast/engine/latencies.h"
#include "holdfast/ledger/ledger.h"
#include "holdfast/run/run.h"
#include "holdfast/tools/catalog.h"

namespace holdfast::api {

/// Appends one run, steps included.
void render_run(json::Writer& w, const run::Run& run, Instant now);
/// Appends the step at `index`.
void render_step(json::Writer& w, const run::Run& run, std::size_t index, Instant now);
void render_attempt(json::Writer& w, const run::Run& run, const run::Attempt& attempt, Instant now);
void render_event(json::Writer& w, const run::Event& event);

/// One entry of GET /v1/unknowns. `catalog` tells how the tool can be asked.
void render_unknown(json::Writer& w, const ledger::UnknownEntry& entry, const tools::Catalog& catalog,
                    Instant now);
void render_breaker(json::Writer& w, const Breaker& breaker);
void render_audit(json::Writer& w, const ledger::AuditEntry& entry);

/// One entry of GET /v1/tools, with what is known of the tool's speed.
void render_tool(json::Writer& w, const tools::ToolConfig& tool, const engine::LatencySummary& latency,
                 const engine::Latencies::InForce& deadline);

/// Milliseconds until the deadline, never negative.
[[nodiscard]] inline std::int64_t remaining_ms(Instant deadline, Instant now) {
  return std::max<std::int64_t>(0, (deadline - now).count());
}
[[nodiscard]] std::string run_json(const run::Run& run, Instant now);
[[nodiscard]] std::string step_json(const run::Run& run, std::size_t index, Instant now);
/// The step as the answer to its posting: with the `warnings` that are about it.
[[nodiscard]] std::string added_step_json(const run::Run& run, std::size_t index, Instant now);

/// An instant, or null.
void time_field(json::Writer& w, std::string_view name, const std::optional<Instant>& at);

}  // namespace holdfast::api
