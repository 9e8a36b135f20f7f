#pragma once

namespace holdfast::testing {

/// Factor for limits of memory and speed: code with a sanitizer in it is slower, and keeps back what was freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlack = 10;
#else
inline constexpr int kSlack = 1;
#endif

}  // namespace holdfast::testing
