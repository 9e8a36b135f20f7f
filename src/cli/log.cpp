#include "cli/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <mutex>

#include "holdfast/core/json.h"
#include "holdfast/core/time.h"
#include "holdfast/tools/config.h"

namespace holdfast::cli {
namespace {

constexpr int kLinesPerWindow = 50;
constexpr std::int64_t kWindow_ms = 10'000;
constexpr std::size_t kLongestMessage = 4096;

class JsonSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JsonSink(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto since_epoch = message.time.time_since_epoch();
    const Instant at{std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count()};
    if (at.ms - window_start_ms_ >= kWindow_ms || at.ms < window_start_ms_) {
      if (suppressed_ > 0) write(at, "warning", std::to_string(suppressed_) + " log lines were left out");
      window_start_ms_ = at.ms;
      lines_ = suppressed_ = 0;
    }
    if (++lines_ > kLinesPerWindow && message.level < spdlog::level::critical) {
      ++suppressed_;
      return;
    }
    const auto level = spdlog::level::to_string_view(message.level);
    std::string text(message.payload.data(), std::min(message.payload.size(), kLongestMessage));
    write(at, std::string_view(level.data(), level.size()), tools::redact(std::move(text), secrets_));
  }
  void flush_() override { std::fflush(stderr); }

 private:
  static void write(Instant at, std::string_view level, std::string_view message) {
    std::string line;
    json::Writer w(line);
    w.begin_object();
    w.field("at", format_rfc3339(at));
    w.field("level", level);
    w.field("message", message);
    w.end_object();
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
  }

  std::vector<std::string> secrets_;
  std::int64_t window_start_ms_ = 0;
  int lines_ = 0, suppressed_ = 0;
};

}  // namespace

void start_log(std::vector<std::string> secrets) {
  auto logger = std::make_shared<spdlog::logger>("holdfast", std::make_shared<JsonSink>(std::move(secrets)));
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace holdfast::cli
