#pragma once
#include <optional>
#include <string>
#include <vector>

#include "holdfast/run/plan.h"
#include "holdfast/run/references.h"

namespace holdfast::run {

/// One step as read, before it is known which steps its names mean.
struct DraftStep {
  Step step;
  std::optional<std::vector<std::string>> after;  // nullopt: the default order
  std::vector<Reference> references;              // places are relative to the args
  std::vector<std::string> warnings;
};

/// How every warning about a step begins.
[[nodiscard]] std::string warning_prefix(std::string_view step_id);

/// Reads and checks what a step says by itself. `where` is the pointer to it, `run_deadline` what its own
/// deadline must fit into.
[[nodiscard]] Result<DraftStep> read_step(const json::Value& value, const std::string& where, Mode mode,
                                          Instant run_deadline, const PlanContext& context);

}  // namespace holdfast::run
