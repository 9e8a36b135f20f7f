#include "sim/tools.h"

#include <algorithm>

#include "sim/outcome.h"

namespace holdfast::sim {

namespace {

BreakerRule draw_breaker(Dice& dice) {
  BreakerRule rule;
  rule.consecutive_failures = static_cast<std::uint32_t>(dice.between(2, 6));
  rule.min_calls = static_cast<std::uint32_t>(dice.between(4, 12));
  rule.window = dice.span(2'000, 60'000);
  rule.cooldown = dice.span(200, 8'000);
  rule.max_cooldown = rule.cooldown * 4;
  rule.enabled = dice.chance(850);
  return rule;
}

ToolPolicy draw_policy(Dice& dice, const Swarm& swarm, const Tool& tool) {
  ToolPolicy policy;
  policy.server = tool.server;
  policy.tool = tool.name;
  policy.effect = tool.is_write() ? Effect::write : Effect::read;
  policy.deadline = dice.span(50, 4'000);
  policy.max_attempts = static_cast<std::uint32_t>(dice.between(1, 5));
  policy.backoff = {dice.span(1, 400), dice.span(400, 4'000)};
  policy.breaker = draw_breaker(dice);
  policy.single_step = dice.chance(300);
  policy.errors.rate_limit = {"quota"};
  if (dice.chance(300)) policy.refusals = {503, 521};
  if (dice.chance(swarm.lingering)) policy.linger = dice.span(200, 10'000);
  if (tool.is_keyed()) {
    policy.key = KeyRule{tool.mcp ? KeyRule::Place::argument : KeyRule::Place::header,
                         tool.mcp ? "/key" : "Idempotency-Key", tool.retention};
  }
  return policy;
}

Tool& add_tool(Town& town, const std::string& server, std::string name, Trait trait, bool mcp) {
  auto tool = std::make_unique<Tool>();
  tool->server = server;
  tool->name = std::move(name);
  tool->trait = trait;
  tool->mcp = mcp;
  town.tools.push_back(std::move(tool));
  return *town.tools.back();
}

void build_tool(Dice& dice, const Swarm& swarm, Town& town, tools::ServerConfig& server, Trait trait, int n) {
  const bool mcp = server.transport != tools::ServerConfig::Transport::http;
  Tool& tool = add_tool(town, server.name, "t" + std::to_string(n), trait, mcp);
  town.callable.push_back(&tool);
  const bool short_key = trait == Trait::keyed_window || trait == Trait::keyed_checkable;
  if (tool.is_keyed()) tool.retention = short_key ? dice.span(500, 20'000) : Duration{24 * 3'600'000};
  tools::ToolConfig config;
  config.policy = draw_policy(dice, swarm, tool);
  if (dice.chance(swarm.sized)) {
    config.policy.sized = AutoDeadline{dice.chance(500) ? 50.0 : 95.0, 1.5, dice.span(20, 200), dice.span(500, 4'000)};
    config.policy.deadline = config.policy.sized->ceiling;
  }
  config.request = {"POST", "/" + tool.name};
  if (tool.is_checkable()) {
    Tool& check = add_tool(town, server.name, tool.name + "-check", Trait::check, mcp);
    tools::ToolConfig asked;
    asked.policy = draw_policy(dice, swarm, check);
    asked.request = {"POST", "/" + check.name};
    server.tools.emplace(check.name, std::move(asked));
    CheckRule rule;
    rule.server = server.name;
    rule.tool = check.name;
    rule.args = R"({"op":"${args/op}","marker":"${key}"})";
    rule.found = {mcp ? "/structuredContent/total" : "/total", "0", true};
    tool.lag = dice.chance(500) ? Duration{0} : dice.span(1, 2'000);
    rule.settle = Duration{tool.lag.count() * 2 + dice.between(40, 2'000)};
    tool.settle = rule.settle;
    rule.ask_for = dice.span(5'000, 120'000);
    config.policy.check = rule;
  }
  if (trait == Trait::read && dice.chance(swarm.cached)) {
    tool.cached = true;
    config.policy.fallback = FallbackRule{FallbackRule::Source::cached, dice.span(20, 2'000), {}, {}, {}};
  } else if (trait == Trait::read && dice.chance(400)) {
    FallbackRule rule;
    rule.source = FallbackRule::Source::fixed;
    rule.value = R"({"stands":"in"})";
    if (dice.chance(500)) {
      Tool& other = add_tool(town, server.name, tool.name + "-other", Trait::read, mcp);
      tools::ToolConfig spare;
      spare.policy = draw_policy(dice, swarm, other);
      spare.request = {"POST", "/" + other.name};
      server.tools.emplace(other.name, std::move(spare));
      rule.source = FallbackRule::Source::tool;
      rule.server = server.name;
      rule.tool = other.name;
    }
    config.policy.fallback = rule;
  }
  server.tools.emplace(tool.name, std::move(config));
}

}  // namespace

Tool* Town::find(std::string_view server, std::string_view name) const {
  for (const auto& tool : tools)
    if (tool->name == name && tool->server == server) return tool.get();
  return nullptr;
}

namespace {

/// A stream of its own: how the disk is used decides nothing about the rest of the world.
void draw_storage(std::uint64_t seed, Swarm& swarm) {
  Dice dice(seed, "storage");
  swarm.checkpoint_frames = static_cast<std::uint64_t>(dice.chance(300) ? 1'024 : dice.between(64, 1'024));
  // Some journals are so small that they are folded after a few commits, most are as the server's.
  if (dice.chance(250)) {
    swarm.journal_slots = 24;
    swarm.fold_slots = 4;
  }
}

/// Some worlds are crowded: many more runs, long plans, and a disk so slow that each commit carries the boundaries
/// of many runs. As under real load; the others look at what happens one event at a time.
void draw_crowd(std::uint64_t seed, Swarm& swarm) {
  Dice dice(seed, "crowd");
  if (!dice.chance(80)) return;
  swarm.runs = static_cast<int>(dice.between(300, 1'500));
  swarm.longest_plan = static_cast<int>(dice.between(2, 20));
  swarm.chaos = dice.span(1'000, 6'000);
  swarm.commit_ms = static_cast<int>(dice.between(10, 200));
  swarm.inbox = 1'000;
  swarm.roomy = dice.chance(800);
  swarm.proof = (swarm.proof + 3) / 4;  // an image of a large disk holds more, and costs more
}

}  // namespace

void Town::exchange(std::shared_ptr<const tools::Config> next) {
  before.push_back(std::move(config));
  config = std::move(next);
  all.push_back(config);
  for (const auto& tool : tools) tool->removed_once |= !config->servers.at(tool->server).tools.contains(tool->name);
}

namespace {

const ToolPolicy* rules_in(const tools::Config& config, const std::string& server, const std::string& tool) {
  const auto& tools = config.servers.at(server).tools;
  const auto found = tools.find(tool);
  return found == tools.end() ? nullptr : &found->second.policy;
}

}  // namespace

const ToolPolicy* Town::rules(const std::string& server, const std::string& tool) const {
  const ToolPolicy* found = rules_in(*config, server, tool);
  for (const auto& rules : before)
    if (found == nullptr) found = rules_in(*rules, server, tool);
  return found;
}

Duration Town::longest(const std::string& server, const std::string& tool, Duration (*of)(const ToolPolicy&)) const {
  Duration most{0};
  const auto consider = [&](const tools::Config& rules) {
    if (const ToolPolicy* policy = rules_in(rules, server, tool)) most = std::max(most, of(*policy));
  };
  consider(*config);
  for (const auto& rules : before) consider(*rules);
  return most;
}

std::uint32_t Town::slots(const std::string& server) const {
  std::uint32_t most = config->servers.at(server).max_in_flight;
  for (const auto& rules : before) {
    const std::uint32_t then = rules->servers.at(server).max_in_flight;
    most = most == 0 || then == 0 ? 0 : std::max(most, then);
  }
  return most;
}

std::shared_ptr<const tools::Config> other_rules(Dice& dice, const Town& town, int number) {
  auto next = std::make_shared<tools::Config>(*town.all.front());
  for (auto& [name, server] : next->servers) {
    if (dice.chance(300)) server.max_in_flight = static_cast<std::uint32_t>(dice.between(0, 4));
    const bool http = server.transport == tools::ServerConfig::Transport::http;
    for (auto at = server.tools.begin(); at != server.tools.end();) {
      tools::ToolConfig& tool = at->second;
      ToolPolicy& policy = tool.policy;
      if (dice.chance(300) && !policy.sized) policy.deadline = dice.span(50, 4'000);
      if (dice.chance(300)) policy.backoff = {dice.span(1, 400), dice.span(400, 4'000)};
      if (dice.chance(200)) policy.linger = dice.span(0, 5'000);
      if (dice.chance(300) && policy.key) policy.key->retention = Duration{policy.key->retention.count() / 2 + 1};
      if (dice.chance(200)) tool.request.path = "/" + at->first + "/" + std::to_string(number);
      if (dice.chance(150)) policy.check.reset();
      // A named tool that an MCP server loses is one of its own from then on.
      const Tool* model = town.find(name, at->first);
      const bool needed = std::ranges::find(town.callable, model) == town.callable.end() || server.probe_tool == at->first;
      at = http && !needed && dice.chance(150) ? server.tools.erase(at) : std::next(at);
    }
  }
  return next;
}

namespace {

/// A stream of its own: what keepers do changes nothing in the rest of the draws.
void draw_keepers(std::uint64_t seed, Swarm& swarm) {
  Dice dice(seed, "keepers");
  const auto maybe = [&](int most) { return dice.chance(300) ? static_cast<int>(dice.between(most / 4, most)) : 0; };
  swarm.drain = maybe(800);
  swarm.reload = maybe(900);
  swarm.wall_running = maybe(900);
  swarm.cached = maybe(800);
  swarm.sized = maybe(600);
  swarm.backup = dice.chance(200);
  if (dice.chance(100)) swarm.retention = dice.span(300, 6'000);
}

}  // namespace

Swarm draw_swarm(std::uint64_t seed) {
  Dice dice(seed, "swarm");
  Swarm swarm;
  const auto maybe = [&](int most) { return dice.chance(600) ? static_cast<int>(dice.between(1, most)) : 0; };
  swarm.clients = static_cast<int>(dice.between(1, 4));
  swarm.runs = static_cast<int>(dice.chance(300) ? dice.between(2, 12) : dice.between(60, 400));
  swarm.longest_plan = static_cast<int>(dice.chance(400) ? dice.between(1, 6) : dice.between(6, 24));
  // Most histories are dense: many runs at once, many decisions in one turn.
  swarm.chaos = dice.chance(150) ? dice.span(5'000, 90'000) : dice.span(500, 8'000);
  for (int i = 1; i < kOutcomes; ++i) swarm.outcome[i] = maybe(100);
  swarm.outcome[0] = static_cast<int>(dice.between(100, 2'000));
  swarm.sick = maybe(60);
  swarm.crash = dice.chance(750) ? static_cast<int>(dice.between(200, 950)) : 0;
  swarm.storage_fault = maybe(800);
  swarm.wall_step = dice.chance(200) ? static_cast<int>(dice.between(100, 700)) : 0;
  swarm.freeze = maybe(20);
  swarm.cancel = maybe(150);
  swarm.resubmit = maybe(300);
  swarm.open_runs = maybe(400);
  swarm.wrong_word = dice.chance(300) ? static_cast<int>(dice.between(50, 500)) : 0;
  swarm.abandon = maybe(200);
  swarm.force = maybe(100);
  swarm.lingering = maybe(600);
  swarm.latency_ms = static_cast<int>(dice.between(1, 400));
  swarm.batching_ms = static_cast<int>(dice.chance(300) ? dice.between(0, 5) : dice.between(20, 250));
  swarm.proof = static_cast<int>(dice.between(0, 60)) / 2;
  swarm.inbox = dice.chance(150) ? static_cast<std::size_t>(dice.between(1, 4)) : 1'000;
  swarm.longest_deadline = dice.span(2'000, 120'000);
  draw_storage(seed, swarm);
  draw_crowd(seed, swarm);
  draw_keepers(seed, swarm);
  if (Dice syncs(seed, "syncs"); syncs.chance(100)) swarm.sync_fault = static_cast<int>(syncs.between(300, 900));
  return swarm;
}

Town build_town(std::uint64_t seed, const Swarm& swarm) {
  Dice dice(seed, "town");
  Town town;
  auto config = std::make_shared<tools::Config>();
  config->limits.concurrent_calls = static_cast<std::uint32_t>(dice.chance(200) ? dice.between(1, 4) * (swarm.roomy ? 32 : 1) : 256);
  const int servers = static_cast<int>(dice.between(1, 3));
  for (int s = 0; s < servers; ++s) {
    tools::ServerConfig server;
    server.name = "s" + std::to_string(s);
    server.url = "http://127.0.0.1:9";
    server.transport =
        dice.chance(500) ? tools::ServerConfig::Transport::http : tools::ServerConfig::Transport::mcp_http;
    server.headers.emplace_back("Authorization", kSecret);
    server.max_in_flight = static_cast<std::uint32_t>(dice.chance(400) ? dice.between(1, 3) : 0) * (swarm.roomy ? 32 : 1);
    server.breaker = draw_breaker(dice);
    const int count = static_cast<int>(dice.between(1, 4));
    for (int t = 0; t < count; ++t) {
      constexpr std::array kTraits{Trait::read,         Trait::plain,     Trait::plain,
                                   Trait::keyed,        Trait::keyed_window, Trait::forgetful,
                                   Trait::checkable,    Trait::keyed_checkable};
      build_tool(dice, swarm, town, server, dice.pick(kTraits), t);
    }
    for (const auto& tool : town.tools)
      if (tool->server == server.name && tool->trait == Trait::read && dice.chance(400)) server.probe_tool = tool->name;
    config->secrets.emplace_back(kSecret);
    config->servers.emplace(server.name, std::move(server));
  }
  config->retention = swarm.retention;
  town.config = std::move(config);
  town.all.push_back(town.config);
  return town;
}

}  // namespace holdfast::sim
