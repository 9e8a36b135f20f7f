#include "cli/reload.h"

#include "holdfast/core/json.h"

namespace holdfast::cli {

Reloaded reloaded(const tools::Config& running, tools::Config next) {
  Reloaded result{std::move(next), {}};
  const auto hold = [&](const char* name, const auto& now, auto& then) {
    if (now == then) return;
    result.unchanged.emplace_back(name);
    then = now;
  };
  tools::Config& config = result.config;
  hold("listen", running.listen, config.listen);
  hold("admin_listen", running.admin_listen, config.admin_listen);
  hold("database", running.database, config.database);
  hold("shutdown_grace", running.shutdown_grace, config.shutdown_grace);
  hold("limits.body_bytes", running.limits.body_bytes, config.limits.body_bytes);
  hold("limits.connections", running.limits.connections, config.limits.connections);
  // Whether tokens are asked for at all is a property of the listeners.
  if (running.tokens.empty() != config.tokens.empty()) {
    result.unchanged.emplace_back("auth.tokens");
    config.tokens = running.tokens;
  }
  return result;
}

std::string what_changed(const tools::Config& running, const Reloaded& next) {
  std::string out;
  json::Writer w(out);
  const auto list = [&](const char* name, const std::vector<std::string>& items) {
    w.name(name);
    w.begin_array();
    for (const std::string& item : items) w.string(item);
    w.end_array();
  };
  w.begin_object();
  list("changed", tools::differences(running, next.config));
  list("needs_restart", next.unchanged);
  w.end_object();
  return out;
}

std::string refused_reload(const std::string& why) {
  std::string out;
  json::Writer w(out);
  w.begin_object();
  w.field("refused", why);
  w.end_object();
  return out;
}

}  // namespace holdfast::cli
