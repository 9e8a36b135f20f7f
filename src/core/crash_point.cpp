#include "core/crash_point.h"

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace holdfast {

namespace {

constexpr std::pair<std::string_view, CrashPoint> kPoints[] = {
    {"migrating", CrashPoint::migrating},
    {"loaded", CrashPoint::loaded},
    {"before_commit", CrashPoint::before_commit},
    {"in_commit", CrashPoint::in_commit},
    {"committed", CrashPoint::committed},
    {"submit_committed", CrashPoint::submit_committed},
    {"command_committed", CrashPoint::command_committed},
    {"answered", CrashPoint::answered},
    {"settled", CrashPoint::settled},
    {"folding", CrashPoint::folding},
    {"folded", CrashPoint::folded},
    {"checkpoint_begun", CrashPoint::checkpoint_begun},
    {"checkpoint_done", CrashPoint::checkpoint_done},
    {"connected", CrashPoint::connected},
    {"half_head", CrashPoint::half_head},
    {"request_sent", CrashPoint::request_sent},
    {"frame_sent", CrashPoint::frame_sent},
    {"answer_read", CrashPoint::answer_read},
    {"before_absorb", CrashPoint::before_absorb},
    {"backup_copied", CrashPoint::backup_copied},
    {"draining", CrashPoint::draining},
    {"drained", CrashPoint::drained},
};

std::atomic<std::int64_t> passings_left{0};

Error unknown_point(std::string_view text) {
  std::string message = "\"" + std::string(text) + "\" is not POINT:N with N from 1 and POINT one of";
  for (const auto& [name, point] : kPoints) (message += ' ') += name;
  return {"bad_crash_point", std::move(message), {}};
}

}  // namespace

Result<void> arm_crash_point(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::unexpected(unknown_point(text));
  const std::string_view digits = text.substr(colon + 1);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || end != digits.data() + digits.size() || count < 1) return std::unexpected(unknown_point(text));
  for (const auto& [name, point] : kPoints) {
    if (name != text.substr(0, colon)) continue;
    passings_left = count;
    armed_crash_point = point;
    return {};
  }
  return std::unexpected(unknown_point(text));
}

std::vector<std::string> crash_point_names() {
  std::vector<std::string> names;
  for (const auto& [name, point] : kPoints) names.emplace_back(name);
  return names;
}

bool crash_is_due() {
  return --passings_left == 0;
}

void crash_now() {
  std::raise(SIGKILL);
  std::abort();  // never reached: SIGKILL cannot be held back
}

}  // namespace holdfast
