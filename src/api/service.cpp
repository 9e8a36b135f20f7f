#include "api/service.h"

namespace holdfast::api {

run::PlanContext Service::plan_context() const {
  const tools::Catalog& tools = catalog;
  run::PlanContext context;
  context.find_tool = [&tools](std::string_view server, std::string_view tool) -> const ToolPolicy* {
    const tools::ToolConfig* found = tools.find(server, tool);
    return found ? &found->policy : nullptr;
  };
  context.server_exists = [&tools](std::string_view server) { return tools.server(server) != nullptr; };
  context.default_run_deadline = tools.config().defaults.run_deadline;
  context.default_retry_budget = tools.config().defaults.retry_budget;
  context.now = clock.now();
  return context;
}

}  // namespace holdfast::api
