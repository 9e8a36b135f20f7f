#pragma once
#include "support/sanitized.h"

namespace holdfast::testing {

/// Factor for limits of memory and speed: code with a sanitizer in it is slower, and keeps back what was freed.
inline constexpr int kSlack = HOLDFAST_SANITIZED ? 10 : 1;

}  // namespace holdfast::testing
