#include "cli/log_valve.h"

namespace holdfast::cli {
namespace {

constexpr int kLinesPerWindow = 50;
constexpr int kLinesPerKind = 10;
constexpr std::int64_t kWindow_ms = 10'000;
constexpr std::size_t kMostKinds = 64;
constexpr std::size_t kLongestName = 60;

/// The message without what differs from one line of a kind to the next: words with a digit in them, and all after a colon.
std::string kind_of(std::string_view level, std::string_view message) {
  std::string kind(level);
  message = message.substr(0, message.find(": "));
  while (!message.empty()) {
    const std::size_t end = std::min(message.find(' '), message.size());
    const std::string_view word = message.substr(0, end);
    kind += ' ';
    kind += word.find_first_of("0123456789") == std::string_view::npos ? word : "#";
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return kind;
}

}  // namespace

bool LogValve::pass(Instant at, std::string_view level, std::string_view message) {
  turn_window(at);
  std::string name = kind_of(level, message);
  if (!kinds_.contains(name) && kinds_.size() >= kMostKinds) name = "others";
  Kind& kind = kinds_[name];
  if (kind.first.empty()) kind.first = name == "others" ? "others" : std::string(message.substr(0, kLongestName));
  const bool passes = level == "critical" || (kind.lines < kLinesPerKind && lines_ < kLinesPerWindow);
  if (passes) {
    ++kind.lines;
    ++lines_;
  } else {
    ++kind.left_out;
  }
  return passes;
}

void LogValve::turn_window(Instant at) {
  if (at.ms - window_start_ms_ < kWindow_ms && at.ms >= window_start_ms_) return;
  for (const auto& [name, kind] : kinds_) {
    if (kind.left_out > 0) left_out_[kind.first] += kind.left_out;
  }
  kinds_.clear();
  window_start_ms_ = at.ms;
  lines_ = 0;
}

std::map<std::string, std::uint64_t> LogValve::take_left_out() {
  return std::exchange(left_out_, {});
}

}  // namespace holdfast::cli
