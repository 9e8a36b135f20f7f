#include "cli/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "cli/log_valve.h"
#include "holdfast/core/json.h"
#include "holdfast/core/time.h"
#include "holdfast/tools/config.h"

namespace holdfast::cli {
namespace {

constexpr std::size_t kLongestMessage = 4096;

class JsonSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JsonSink(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {}

  void add(const std::vector<std::string>& secrets) {
    const std::lock_guard lock(mutex_);
    for (const std::string& secret : secrets) {
      if (std::ranges::find(secrets_, secret) == secrets_.end()) secrets_.push_back(secret);
    }
    // A secret that holds another one goes first.
    std::ranges::stable_sort(secrets_, std::ranges::greater{}, &std::string::size);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto since_epoch = message.time.time_since_epoch();
    const Instant at{std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count()};
    const auto level_word = spdlog::level::to_string_view(message.level);
    const std::string_view level(level_word.data(), level_word.size());
    std::string text = tools::redact(std::string(message.payload.data(), message.payload.size()), secrets_);
    if (text.size() > kLongestMessage) text.resize(kLongestMessage);
    const bool passes = valve_.pass(at, level, text);
    for (const auto& [kind, count] : valve_.take_left_out())
      write(at, "warning", std::to_string(count) + " log lines were left out, such as: " + kind);
    if (passes) write(at, level, text);
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
  LogValve valve_;
};

std::shared_ptr<JsonSink> the_sink;  // the log's, which is the one global

}  // namespace

void start_log(std::vector<std::string> secrets) {
  the_sink = std::make_shared<JsonSink>(std::move(secrets));
  auto logger = std::make_shared<spdlog::logger>("holdfast", the_sink);
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void add_log_secrets(const std::vector<std::string>& secrets) {
  if (the_sink) the_sink->add(secrets);
}

}  // namespace holdfast::cli
