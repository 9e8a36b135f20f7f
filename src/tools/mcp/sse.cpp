#include "tools/mcp/sse.h"

#include <charconv>
#include <utility>

namespace holdfast::tools::mcp {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kMaxIdBytes = 1024;

std::string_view value_of(std::string_view line, std::size_t colon) {
  if (colon == std::string_view::npos) return {};
  std::string_view value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

}  // namespace

bool SseParser::feed(std::string_view piece, const std::function<bool(const SseEvent&)>& on_event) {
  while (!piece.empty() && !over_limit_) {
    if (after_cr_) {
      after_cr_ = false;
      if (piece.front() == '\n') {
        piece.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = piece.find_first_of("\r\n");
    const std::string_view part = piece.substr(0, end);
    if (line_.size() + part.size() > max_bytes_) {
      over_limit_ = true;
      break;
    }
    line_ += part;
    if (end == std::string_view::npos) return true;
    after_cr_ = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    if (!end_line(on_event)) return false;
  }
  return !over_limit_;
}

bool SseParser::end_line(const std::function<bool(const SseEvent&)>& on_event) {
  if (first_line_ && line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
  first_line_ = false;
  if (!line_.empty()) {
    take_field();
    line_.clear();
    return !over_limit_;
  }
  if (pending_id_) last_id_ = *pending_id_;
  const bool complete = has_data_ || pending_id_;
  const SseEvent event = std::exchange(event_, {});
  has_data_ = false;
  pending_id_.reset();
  return !complete || on_event(event);
}

void SseParser::take_field() {
  const std::size_t colon = line_.find(':');
  const std::string_view name = std::string_view(line_).substr(0, colon);
  const std::string_view value = value_of(line_, colon);
  if (name == "data") {
    if (event_.data.size() + value.size() + 1 > max_bytes_) {
      over_limit_ = true;
      return;
    }
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (name == "event") {
    event_.name = value;
  } else if (name == "id") {
    if (value.size() <= kMaxIdBytes && value.find('\0') == std::string_view::npos)
      pending_id_ = std::string(value);
  } else if (name == "retry") {
    std::int64_t ms = 0;
    const auto [stop, problem] = std::from_chars(value.data(), value.data() + value.size(), ms);
    if (problem == std::errc{} && stop == value.data() + value.size() && ms >= 0) retry_ms_ = ms;
  }
}

std::string SseParser::unfinished() const {
  std::string text = event_.data;
  if (line_.starts_with("data:")) {
    if (has_data_) text += '\n';
    text += value_of(line_, 4);
  }
  return text;
}

void SseParser::restart() {
  line_.clear();
  event_ = {};
  has_data_ = false;
  pending_id_.reset();
  after_cr_ = false;
  first_line_ = true;
}

}  // namespace holdfast::tools::mcp
