// References in a step's arguments: what is filled in stays JSON.
#include "fuzz.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), '\n');
  const std::string_view arguments = parts[0];
  const auto before = json::parse(arguments);
  const auto value = json::parse(parts.size() > 1 ? parts[1] : std::string_view{"null"});
  const auto found = run::references(arguments);
  const auto filled = run::resolve(arguments, [&](std::string_view, std::string_view pointer) -> std::optional<std::string> {
    if (!value) return std::nullopt;
    const json::Value* there = json::at(*value, pointer);
    return there == nullptr ? std::nullopt : std::optional<std::string>(std::string(there->raw));
  });
  if (!before) return 0;
  if (!found) HOLDS(!filled);
  if (filled) HOLDS(json::parse(*filled, {.depth = 200}));
  if (found && found->empty() && filled && arguments.find("$${") == std::string_view::npos) HOLDS(json::canonical(*json::parse(*filled)) == json::canonical(*before));
  return 0;
}
