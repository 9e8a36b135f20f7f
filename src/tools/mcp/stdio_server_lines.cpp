// Lines to and from the server's process.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/crash_point.h"
#include "tools/mcp/stdio_server.h"

namespace holdfast::tools::mcp {
namespace {

constexpr std::size_t kReadBytesPerTurn = 1 << 20;

}  // namespace

// --- writing
// ----------------------------------------------------------------------------------------------------

void StdioServer::enqueue(std::string message, std::optional<CallId> call) {
  // A frame is one line. In JSON a raw line break can only be white space between values: inside strings it
  // is escaped.
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  message += '\n';
  frames_.push_back({std::move(message), 0, call});
  flush();
}

void StdioServer::flush() {
  while (!frames_.empty() && child_.input.get() >= 0) {
    Frame& frame = frames_.front();
    const ssize_t got =
        write(child_.input.get(), frame.bytes.data() + frame.sent, frame.bytes.size() - frame.sent);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0) return lost("the server's process no longer reads");
    frame.sent += static_cast<std::size_t>(got);
    const bool whole = frame.sent == frame.bytes.size();
    if (frame.call) {
      Flight& flight = flights_.at(*frame.call);
      flight.sent_bytes = frame.sent;
      if (whole) flight.stage = Flight::Stage::out;
      if (whole) crash_point(CrashPoint::frame_sent);
    }
    if (whole) frames_.pop_front();
  }
}

// --- reading
// ----------------------------------------------------------------------------------------------------

void StdioServer::on_readable() {
  std::array<char, 64 * 1024> piece;
  for (std::size_t turn = 0; turn < kReadBytesPerTurn && child_.output.get() >= 0;) {
    const ssize_t got = read(child_.output.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return lost("the server's process ended");
    turn += static_cast<std::size_t>(got);
    input_.append(piece.data(), static_cast<std::size_t>(got));
    take_lines();
  }
}

void StdioServer::take_lines() {
  const std::size_t limit = context_.catalog.config().limits.result_bytes;
  std::size_t begin = 0;
  const pid_t process = child_.pid;
  while (true) {
    const std::size_t end = input_.find('\n', std::max(begin, scanned_));
    if (end == std::string::npos) break;
    const std::string line = input_.substr(begin, end - begin);
    begin = scanned_ = end + 1;
    if (!std::exchange(skipping_, false)) take_line(line);
    if (child_.pid != process) return;  // replaced: what was left over is gone
  }
  input_.erase(0, begin);
  scanned_ = input_.size();
  if (input_.size() <= limit) return;
  if (!skipping_) over_long_line();
  skipping_ = true;
  std::string().swap(input_);
  scanned_ = 0;
}

/// The answer may name its call at its beginning; then it is known whose result is too large.
void StdioServer::over_long_line() {
  const std::optional<std::int64_t> id = peek_id(input_);
  if (!id) return;
  Evidence e;
  e.over_mcp = true;
  e.phase = Phase::rx_part_body;
  e.failure = Failure::too_large;
  e.detail = "the answer is over the limit of " +
             std::to_string(context_.catalog.config().limits.result_bytes) + " bytes";
  answer_call(*id, std::move(e), input_.size());
}

void StdioServer::take_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  const Result<Message> message = read_message(line, context_.catalog.config().limits.json_depth);
  if (!message) {
    // Stray words are skipped; an answer that can't be read is still one.
    const std::optional<std::int64_t> id = line.front() == '{' ? peek_id(line) : std::nullopt;
    if (id) answer_call(*id, unreadable_answer(message.error()), line.size() + 1);
    return;
  }
  switch (message->kind) {
    case Message::Kind::answer:
      return take_answer(*message, line.size() + 1);
    case Message::Kind::request:
      return enqueue(reply_message(message->raw_id, message->method), std::nullopt);
    case Message::Kind::notification:
      if (message->method == "notifications/tools/list_changed") tools_.forget();
  }
}

void StdioServer::take_answer(const Message& message, std::size_t bytes) {
  if (!message.id) return;
  if (message.id == discover_id_ || message.id == initialize_id_) return take_handshake_answer(message);
  if (message.id == list_id_) return take_list(message);
  answer_call(*message.id, read_answer(message), bytes);
}

void StdioServer::answer_call(std::int64_t rpc_id, Evidence evidence, std::size_t bytes) {
  evidence.bytes_received = bytes;
  if (const auto found = by_rpc_.find(rpc_id); found != by_rpc_.end()) {
    const CallId id = found->second;
    const Flight& flight = flights_.at(id);
    evidence.bytes_sent = flight.sent_bytes;
    if (flight.stage == Flight::Stage::out) finish(id, std::move(evidence));
    return;
  }
  if (const auto found = expired_.find(rpc_id); found != expired_.end()) {
    const CallId id = found->second;
    expired_.erase(found);
    context_.gate.late(id, std::move(evidence));
  }
}

}  // namespace holdfast::tools::mcp
