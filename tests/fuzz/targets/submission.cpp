// A submission's body: from bytes to a planned run.
#include "fuzz.h"
#include "holdfast/core/intent_key.h"
#include "holdfast/run/plan.h"
#include "holdfast/run/references.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto root = json::parse(text);
  if (!root) {
    HOLDS(!root.error().code.empty() && !root.error().message.empty());
    return 0;
  }
  const std::string canonical = json::canonical(*root);
  const auto again = json::parse(canonical, {.depth = 64, .nodes = 2'000'000});
  HOLDS(again);
  HOLDS(json::canonical(*again) == canonical);

  static const ToolPolicy read = [] {
    ToolPolicy policy;
    policy.server = "s";
    policy.tool = "r";
    policy.effect = Effect::read;
    return policy;
  }();
  static const ToolPolicy write = [] {
    ToolPolicy policy;
    policy.server = "s";
    policy.tool = "w";
    return policy;
  }();
  run::PlanContext context;
  context.find_tool = [](std::string_view, std::string_view tool) { return tool == "r" ? &read : tool == "w" ? &write : nullptr; };
  context.server_exists = [](std::string_view server) { return server == "s"; };
  context.max_steps = 200;
  context.now = Instant{1'800'000'000'000};
  const auto planned = run::plan(*root, context);
  if (!planned) {
    HOLDS(!planned.error().code.empty());
    return 0;
  }
  HOLDS(planned->id.empty() && planned->status == run::RunStatus::queued && planned->deadline > context.now);
  for (const run::Step& step : planned->steps) {
    HOLDS(run::references(step.spec.args));
    HOLDS(step.max_attempts >= 1);
    for (const std::uint32_t before : step.spec.after) HOLDS(before < planned->steps.size());
  }
  const auto same = run::plan(*again, context);
  HOLDS(same && same->submit_digest == planned->submit_digest);
  return 0;
}
