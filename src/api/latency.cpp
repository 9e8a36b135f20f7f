#include "api/latency.h"

#include <cmath>

namespace holdfast::api {
namespace {

constexpr std::size_t kWindow = 512, kMostTools = 4096, kEnough = 20;

std::int64_t quantile(const std::vector<std::int64_t>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

std::int64_t suggest_deadline_ms(std::int64_t p99_ms) {
  const std::int64_t wanted = std::max<std::int64_t>(100, p99_ms + p99_ms / 2);
  std::int64_t unit = 10;
  while (wanted / unit >= 100) unit *= 10;
  return (wanted + unit - 1) / unit * unit;
}

void Latencies::add(std::string_view server, std::string_view tool, double seconds) {
  const auto ms = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds) * 1000));
  const std::scoped_lock lock(mutex_);
  std::pair key{std::string(server), std::string(tool)};
  auto found = windows_.find(key);
  if (found == windows_.end()) {
    if (windows_.size() >= kMostTools) return;
    found = windows_.emplace(std::move(key), Window{}).first;
  }
  Window& window = found->second;
  ++window.total;
  if (window.ms.size() < kWindow) {
    window.ms.push_back(ms);
  } else {
    window.ms[window.next] = ms;
    window.next = (window.next + 1) % kWindow;
  }
}

LatencySummary Latencies::summary(std::string_view server, std::string_view tool) const {
  std::vector<std::int64_t> sorted;
  LatencySummary out;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = windows_.find({std::string(server), std::string(tool)});
    if (found == windows_.end()) return out;
    sorted = found->second.ms;
    out.samples = found->second.total;
  }
  std::ranges::sort(sorted);
  out.p50_ms = quantile(sorted, 0.50);
  out.p95_ms = quantile(sorted, 0.95);
  out.p99_ms = quantile(sorted, 0.99);
  if (sorted.size() >= kEnough) out.suggested_deadline_ms = suggest_deadline_ms(out.p99_ms);
  return out;
}

std::vector<std::pair<std::string, std::string>> Latencies::tools() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, window] : windows_) out.push_back(key);
  return out;
}

}  // namespace holdfast::api
