#pragma once
// Server-sent events, read piece by piece with a bound on what is kept.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::tools::mcp {

struct SseEvent {
  std::string name;  // empty: "message"
  std::string data;  // lines joined by LF; empty for an event that carries only an id
};

/// An event is complete only at its blank line; an unfinished one is no event. Not thread-safe.
class SseParser {
 public:
  /// `max_bytes` bounds a line and the data of an event.
  explicit SseParser(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Calls `on_event` for every event that `piece` completes, until it returns false. False when the bound is
  /// passed (and from then on) or `on_event` asked to stop.
  bool feed(std::string_view piece, const std::function<bool(const SseEvent&)>& on_event);

  [[nodiscard]] bool over_limit() const { return over_limit_; }
  /// The id of the last complete event that had one; empty: none.
  [[nodiscard]] const std::string& last_id() const { return last_id_; }
  /// The last `retry:` of the stream, in milliseconds.
  [[nodiscard]] std::optional<std::int64_t> retry_ms() const { return retry_ms_; }
  /// The data of the event that was not completed, for evidence.
  [[nodiscard]] std::string unfinished() const;
  /// Forgets an unfinished line and event, keeps the last id: the stream goes on over another connection.
  void restart();

 private:
  bool end_line(const std::function<bool(const SseEvent&)>& on_event);
  void take_field();

  std::size_t max_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  std::optional<std::string> pending_id_;
  std::string last_id_;
  std::optional<std::int64_t> retry_ms_;
  bool after_cr_ = false;
  bool first_line_ = true;
  bool over_limit_ = false;
};

}  // namespace holdfast::tools::mcp
