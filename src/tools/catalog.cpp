#include "holdfast/tools/catalog.h"

#include <algorithm>

#include "catalog_request.h"
#include "core/canary.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/json.h"
#include "holdfast/run/references.h"

namespace holdfast::tools {
namespace {

/// Tools that the file doesn't name are remembered up to this many, since their names come from outside.
constexpr std::size_t kMostLearned = 10'000;
constexpr std::size_t kMostGenerations = 1'000;

std::unexpected<Error> bad(std::string message, std::string pointer) {
  return std::unexpected(Error{"bad_arguments", std::move(message), std::move(pointer)});
}

ToolConfig reading(const ToolConfig& base, std::string_view tool, Effect effect) {
  ToolConfig out = base;
  out.policy.tool = tool;
  out.policy.effect = effect;
  if (effect == Effect::read) out.sources["effect"] = Source::server;
  return out;
}

bool says_effect(const ToolConfig& tool) {
  const auto source = tool.sources.find("effect");
  return source != tool.sources.end() && source->second == Source::tool;
}

/// Arguments may have taken in a result, so they can be as deep as both limits together.
Result<json::Value> parse_object(std::string_view args, const Limits& limits) {
  auto value = json::parse(args, {.depth = std::size_t{2} * limits.json_depth + 2});
  if (!value) return bad(value.error().message, value.error().pointer);
  if (!value->is(json::Kind::object)) return bad("the arguments are no object; give them by name", "");
  return value;
}

}  // namespace

bool same_connection(const ServerConfig& a, const ServerConfig& b) {
  return &a == &b ||
         (a.name == b.name && a.transport == b.transport && a.url == b.url && a.command == b.command &&
          a.environment == b.environment && a.headers == b.headers && a.allow_private == b.allow_private &&
          a.trust_annotations == b.trust_annotations);
}

Catalog::Catalog(Config config) {
  generations_.push_back(std::make_unique<Generation>(Generation{std::move(config), {}}));
  current_ = generations_.back().get();
}

Result<void> Catalog::replace(Config next) {
  const std::unique_lock lock(mutex_);
  if (generations_.size() > kMostGenerations)
    return std::unexpected(Error{"bad_config",
                                 "the configuration has been exchanged a thousand times in this process; restart it", ""});
  const Generation& before = *current_;
  auto made = std::make_unique<Generation>();
  for (const std::string& secret : before.config.secrets) {
    if (std::ranges::find(next.secrets, secret) == next.secrets.end()) next.secrets.push_back(secret);
  }
  std::ranges::stable_sort(next.secrets, std::ranges::greater{}, &std::string::size);
  made->config = std::move(next);
  for (const auto& [key, known] : before.learned) {
    const ServerConfig* old = server_in(before, key.first);
    const ServerConfig* now = server_in(*made, key.first);
    if (old && now && same_connection(*old, *now)) made->learned[key].read_only = known.read_only;
  }
  current_ = made.get();
  generations_.push_back(std::move(made));
  return {};
}

const ServerConfig* Catalog::server_in(const Generation& in, std::string_view name) {
  const auto found = in.config.servers.find(std::string(name));
  return found == in.config.servers.end() ? nullptr : &found->second;
}

const ServerConfig* Catalog::server(std::string_view name) const {
  return server_in(*current_.load(), name);
}

const ToolConfig* Catalog::find(std::string_view server_name, std::string_view tool_name) const {
  return find_in(*current_.load(), server_name, tool_name);
}

const ToolConfig* Catalog::find_in(Generation& in, std::string_view server_name, std::string_view tool_name) const {
  const auto* at = server_in(in, server_name);
  if (!at) return nullptr;
  const auto named = at->tools.find(std::string(tool_name));
  if (named == at->tools.end()) {
    if (canary(Canary::removed_tool_still_called) && &in != generations_.front().get())
      return find_in(*generations_.front(), server_name, tool_name);
    if (at->transport == ServerConfig::Transport::http || !is_name(tool_name)) return nullptr;
    return learned(in, *at, at->fallback_tool, tool_name);
  }
  const bool open =
      at->trust_annotations && at->transport != ServerConfig::Transport::http && !says_effect(named->second);
  return open ? learned(in, *at, named->second, tool_name) : &named->second;
}

const ToolConfig* Catalog::learned(Generation& in, const ServerConfig& at, const ToolConfig& base,
                                   std::string_view tool) const {
  const std::pair key(at.name, std::string(tool));
  {
    const std::shared_lock lock(mutex_);
    const auto found = in.learned.find(key);
    if (found != in.learned.end()) {
      const auto& known = found->second.read_only ? found->second.as_read : found->second.as_write;
      if (known) return known.get();
    }
  }
  const std::unique_lock lock(mutex_);
  if (!in.learned.contains(key) && in.learned.size() >= kMostLearned) return &base;
  auto& entry = in.learned[key];
  auto& known = entry.read_only ? entry.as_read : entry.as_write;
  if (!known)
    known = std::make_unique<ToolConfig>(reading(base, tool, entry.read_only ? Effect::read : Effect::write));
  return known.get();
}

void Catalog::learn(const ServerConfig& server, std::string_view tool, bool read_only_hint) {
  const std::unique_lock lock(mutex_);
  Generation& now = *current_;
  const auto* at = server_in(now, server.name);
  if (!at || !at->trust_annotations || !is_name(tool) || !same_connection(*at, server)) return;
  const std::pair key(at->name, std::string(tool));
  if (now.learned.contains(key) || now.learned.size() < kMostLearned) now.learned[key].read_only = read_only_hint;
}

Result<run::FrozenRequest> Catalog::freeze(std::string_view server_name, std::string_view tool_name,
                                           std::string_view args, std::string_view key) const {
  Generation& now = *current_;
  const auto* at = server_in(now, server_name);
  const auto* tool = find_in(now, server_name, tool_name);
  if (!at || !tool)
    return std::unexpected(Error{
        "tool_not_found",
        "no tool " + std::string(server_name) + "/" + std::string(tool_name) + "; name a configured one",
        ""});
  auto arguments = parse_object(args, now.config.limits);
  if (!arguments) return std::unexpected(arguments.error());
  const auto& rule = tool->policy.key;
  std::string keyed;
  if (rule && rule->place == KeyRule::Place::argument && !key.empty()) {
    auto text = catalog::with_key(*arguments, rule->name, key);
    if (!text) return std::unexpected(text.error());
    keyed = std::move(*text);
    arguments = parse_object(keyed, now.config.limits);
    if (!arguments) return std::unexpected(arguments.error());
  }
  Result<run::FrozenRequest> frozen =
      at->transport == ServerConfig::Transport::http
          ? catalog::http_request(tool->request, *arguments)
          : run::FrozenRequest{std::string(tool_name), std::string(arguments->raw)};
  if (canary(Canary::secret_stored) && frozen)
    for (const auto& [name, value] : at->headers) frozen->head += "\n" + name + ": " + value;
  return frozen;
}

Result<std::string> Catalog::target(std::string_view server_name, std::string_view tool_name,
                                    std::string_view named, std::string_view args) const {
  if (!named.empty()) return std::string(named);
  const auto* tool = find(server_name, tool_name);
  if (!tool || tool->policy.target.empty()) return std::string(server_name) + "/" + std::string(tool_name);
  const auto arguments = parse_object(args, config().limits);
  if (!arguments) return std::unexpected(arguments.error());
  std::string missing;
  const auto look = [&](std::string_view name, std::string_view pointer) -> std::optional<std::string> {
    const auto* value = name == "args" ? json::at(*arguments, pointer) : nullptr;
    if (!value) missing = pointer;
    return value ? std::optional(std::string(value->raw)) : std::nullopt;
  };
  const auto text = run::resolve(json::quote(tool->policy.target), look);
  if (!text)
    return bad("the target `" + tool->policy.target +
                   "` can't be filled in; give the argument it names, or a target",
               missing);
  const auto value = json::parse(*text);
  const bool plain = value && (value->is(json::Kind::string) || value->is(json::Kind::number) ||
                               value->is(json::Kind::boolean));
  std::string out = plain ? (value->is(json::Kind::string) ? value->text() : std::string(value->raw)) : "";
  if (!is_target(out))
    return bad("the target `" + tool->policy.target +
                   "` becomes no usable text; 1 to 1024 bytes without control characters are needed",
               missing);
  return out;
}

}  // namespace holdfast::tools
