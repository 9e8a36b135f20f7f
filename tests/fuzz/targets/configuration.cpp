// A configuration file, in YAML or JSON.
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "holdfast/tools/config.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("holdfast.yaml", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  HOLDS(ftruncate(file, 0) == 0);
  HOLDS(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  const auto config = tools::load_config(path, [](const std::string& name) { return name == "TOKEN" ? "s3cr3t-value" : nullptr; });
  if (!config) {
    HOLDS(!config.error().message.empty());
    return 0;
  }
  const std::string described = tools::describe(*config);
  if (!config->secrets.empty()) HOLDS(tools::redact(described, config->secrets).find("s3cr3t-value") == std::string::npos);
  return 0;
}
