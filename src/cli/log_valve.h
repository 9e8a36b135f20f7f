#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "holdfast/core/time.h"

namespace holdfast::cli {

/// Which log lines are written: at most 50 in 10 s, and of one kind at most 10; what is left out is counted. Lines are of one
/// kind when they have the same level and differ only in numbers, ids and what follows a colon. At most 64 kinds are told
/// apart within a window, the others share one. Not thread-safe.
class LogValve {
 public:
  /// False: left out. Critical lines always pass.
  [[nodiscard]] bool pass(Instant at, std::string_view level, std::string_view message);
  /// What was left out in windows that are over, as lines to be written, by kind; forgotten by the call.
  [[nodiscard]] std::map<std::string, std::uint64_t> take_left_out();

 private:
  struct Kind {
    int lines = 0;
    std::uint64_t left_out = 0;
    std::string first;  // the beginning of its first line, to name it by
  };
  void turn_window(Instant at);

  std::int64_t window_start_ms_ = 0;
  int lines_ = 0;
  std::map<std::string, Kind> kinds_;
  std::map<std::string, std::uint64_t> left_out_;
};

}  // namespace holdfast::cli
