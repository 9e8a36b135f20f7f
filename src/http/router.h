#pragma once
#include <map>
#include <string>
#include <vector>

#include "http/server.h"

namespace holdfast::http {

struct Route {
  std::string method;
  std::string pattern;
  std::vector<std::string> segments;  // "{id}" takes any segment that is not empty
  Access access = Access::client;
  Handler handler;
  Glance glance;  // may be empty
};

struct Match {
  const Route* route = nullptr;
  std::map<std::string, std::string> parameters;
  std::string allow;  // the methods of this path, when none is the one asked for
};

/// Fixed after listen(); read by many threads.
class Router {
 public:
  void add(std::string method, std::string pattern, Access access, Handler handler, Glance glance = {});
  /// The route with the most literal segments; HEAD is served by GET. No route and no `allow`: the path does
  /// not exist.
  [[nodiscard]] Match match(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace holdfast::http
