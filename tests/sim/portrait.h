#pragma once
// A run's rows as text, to tell two states apart and to show them.
#include <string>

#include "holdfast/run/run.h"

namespace holdfast::sim {

[[nodiscard]] std::string portrait(const run::Run& run);
[[nodiscard]] std::string portrait(const run::Attempt& attempt);

}  // namespace holdfast::sim
