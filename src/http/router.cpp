#include "http/router.h"

namespace holdfast::http {
namespace {

std::vector<std::string> split(std::string_view pattern) {
  std::vector<std::string> segments;
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  while (true) {
    const std::size_t slash = pattern.find('/');
    segments.emplace_back(pattern.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    pattern.remove_prefix(slash + 1);
  }
}

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.starts_with('{') && segment.ends_with('}');
}

bool fits(const Route& route, const std::vector<std::string>& segments) {
  if (route.segments.size() != segments.size()) return false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (is_parameter(route.segments[i]) ? segments[i].empty() : route.segments[i] != segments[i])
      return false;
  }
  return true;
}

std::ptrdiff_t literals(const Route& route) {
  return std::ranges::count_if(route.segments, [](const std::string& s) { return !is_parameter(s); });
}

void allow(std::string& methods, const std::string& method) {
  if (methods.find(method) != std::string::npos) return;
  if (!methods.empty()) methods += ", ";
  methods += method;
}

}  // namespace

void Router::add(std::string method, std::string pattern, Access access, Handler handler, Glance glance) {
  auto segments = split(pattern);
  routes_.push_back({std::move(method), std::move(pattern), std::move(segments), access, std::move(handler), std::move(glance)});
}

Match Router::match(std::string_view method, const std::vector<std::string>& segments) const {
  Match match;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    if (!fits(route, segments)) continue;
    if (route.method != wanted) {
      allow(match.allow, route.method);
    } else if (match.route == nullptr || literals(route) > literals(*match.route)) {
      match.route = &route;
    }
  }
  if (match.route == nullptr) return match;
  match.allow.clear();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string& name = match.route->segments[i];
    if (is_parameter(name)) match.parameters.emplace(name.substr(1, name.size() - 2), segments[i]);
  }
  return match;
}

}  // namespace holdfast::http
