#include "run/plan_graph.h"

#include <algorithm>
#include <cstddef>

namespace holdfast::run {
namespace {

/// For every step whether something keeps it from ever starting: it is on a cycle or waits for one.
std::vector<bool> stuck_steps(const std::vector<std::vector<std::uint32_t>>& after) {
  const std::size_t count = after.size();
  std::vector<std::size_t> left(count);
  std::vector<std::vector<std::uint32_t>> followers(count);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t step = 0; step < count; ++step) {
    left[step] = after[step].size();
    if (left[step] == 0) ready.push_back(step);
    for (const std::uint32_t before : after[step]) followers[before].push_back(step);
  }
  std::vector<bool> stuck(count, true);
  while (!ready.empty()) {
    const std::uint32_t step = ready.back();
    ready.pop_back();
    stuck[step] = false;
    for (const std::uint32_t follower : followers[step]) {
      if (--left[follower] == 0) ready.push_back(follower);
    }
  }
  return stuck;
}

}  // namespace

std::vector<std::uint32_t> find_cycle(const std::vector<std::vector<std::uint32_t>>& after) {
  const std::vector<bool> stuck = stuck_steps(after);
  const auto first = std::ranges::find(stuck, true);
  if (first == stuck.end()) return {};
  // A stuck step waits for another stuck one: following these arrows must come round.
  std::vector<std::uint32_t> path;
  std::vector<bool> seen(after.size(), false);
  auto step = static_cast<std::uint32_t>(first - stuck.begin());
  while (!seen[step]) {
    seen[step] = true;
    path.push_back(step);
    step = *std::ranges::find_if(after[step], [&](std::uint32_t before) { return stuck[before]; });
  }
  path.erase(path.begin(), std::ranges::find(path, step));
  return path;
}

}  // namespace holdfast::run
