#pragma once
// How long each tool's calls took lately: a bounded window of samples per tool.
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/render.h"

namespace holdfast::api {

/// Thread-safe. Keeps the newest 512 samples of each tool, and 4,096 tools at most.
class Latencies {
 public:
  void add(std::string_view server, std::string_view tool, double seconds);
  /// Zero samples for a tool that was never called. The suggestion is one and a half times p99, at least 100
  /// ms, rounded up to two digits, once there are 20 samples.
  [[nodiscard]] LatencySummary summary(std::string_view server, std::string_view tool) const;
  /// Every tool with a sample.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> tools() const;

 private:
  struct Window {
    std::vector<std::int64_t> ms;
    std::size_t next = 0;
    std::uint64_t total = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Window> windows_;
};

/// The deadline that these samples speak for.
[[nodiscard]] std::int64_t suggest_deadline_ms(std::int64_t p99_ms);

}  // namespace holdfast::api
