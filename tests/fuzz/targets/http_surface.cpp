// Requests to both listeners, from their bytes through every route's handler to the engine and the ledger.
#include <cstdio>

#include "fuzz.h"
#include "support/surface.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static holdfast::testing::Surface surface;
  const std::string broken = surface.broken_promise(holdfast::fuzz::text_of(data, size));
  if (!broken.empty()) std::fprintf(stderr, "%s\n", broken.c_str());
  HOLDS(broken.empty());
  return 0;
}
