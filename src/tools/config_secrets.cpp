#include "config_secrets.h"

#include <algorithm>

#include "holdfast/core/json.h"
#include "holdfast/tools/config.h"

namespace holdfast::tools {
namespace config {
namespace {

constexpr std::string_view kOpen = "${env:";
constexpr std::size_t kShortestSecret = 4;

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name.front()) && std::ranges::all_of(name, inner);
}

void expand_text(Node& node, const std::string& pointer, const Environment& env, Problems& problems,
                 std::vector<std::string>& secrets) {
  std::string out;
  std::string_view rest = node.text;
  bool replaced = false;
  for (auto at = rest.find(kOpen); at != std::string_view::npos; at = rest.find(kOpen)) {
    const auto end = rest.find('}', at);
    const bool escaped = at > 0 && rest[at - 1] == '$';
    if (escaped) {
      out += rest.substr(0, at + kOpen.size());
      rest.remove_prefix(at + kOpen.size());
      continue;
    }
    const std::string name(
        end == std::string_view::npos ? "" : rest.substr(at + kOpen.size(), end - at - kOpen.size()));
    if (!is_variable_name(name)) {
      problems.add(pointer, "`${env:` is not followed by a name and `}`",
                   "write ${env:NAME}, or $${env: for the text itself");
      return;
    }
    const char* value = env(name);
    if (!value) {
      problems.add(pointer, "the environment variable " + name + " is not set",
                   "set " + name + " before starting, or take the reference out");
      return;
    }
    out += rest.substr(0, at);
    out += value;
    secrets.emplace_back(value);
    rest.remove_prefix(end + 1);
    replaced = true;
  }
  if (!replaced) return;
  out += rest;
  node.text = std::move(out);
  node.from_environment = true;
  secrets.push_back(node.text);
  if (!json::is_utf8(node.text))
    problems.add(pointer, "the value from the environment is not UTF-8", "set it to UTF-8 text");
}

}  // namespace

void expand_environment(Node& node, const std::string& pointer, const Environment& env, Problems& problems,
                        std::vector<std::string>& secrets) {
  if (node.kind == Node::Kind::scalar) expand_text(node, pointer, env, problems, secrets);
  std::size_t index = 0;
  for (auto& item : node.items)
    expand_environment(item, pointer + "/" + std::to_string(index++), env, problems, secrets);
  for (auto& [name, value] : node.members)
    expand_environment(value, pointer + "/" + json::escape_token(name), env, problems, secrets);
}

void order_secrets(std::vector<std::string>& secrets) {
  std::ranges::sort(secrets, [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  secrets.erase(std::unique(secrets.begin(), secrets.end()), secrets.end());
  std::erase(secrets, "");
}

}  // namespace config

std::string redact(std::string text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets) {
    if (secret.size() < config::kShortestSecret) continue;
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3))
      text.replace(at, secret.size(), "***");
  }
  return text;
}

}  // namespace holdfast::tools
