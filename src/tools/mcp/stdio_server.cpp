#include "tools/mcp/stdio_server.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/crash_point.h"
#include "tools/mcp/http_messages.h"

namespace holdfast::tools::mcp {
namespace {

constexpr Duration kDiscoverWait{1'000};
constexpr Duration kLongestHandshake{60'000};
constexpr Duration kLongestList{10'000};
constexpr std::size_t kMaxExpired = 1024;
constexpr std::size_t kReadBytesPerTurn = 1 << 20;

}  // namespace

// --- calls
// ----------------------------------------------------------------------------------------------------

void StdioServer::start(Call call) {
  const CallId id = call.id;
  Flight& flight = flights_[id];
  flight.call = std::move(call);
  if (context_.clock.now() >= flight.call.deadline) return give_up(id, Failure::timeout);
  if (stage_ == Stage::ready) return dispatch(flight);
  ensure_process();
}

void StdioServer::cancel(CallId id) {
  if (flights_.contains(id)) give_up(id, Failure::cancelled);
}

void StdioServer::dispatch(Flight& flight) {
  if (flight.call.tool.empty()) return send(flight);  // only whether the server lives is asked
  const bool configured = server_->tools.contains(flight.call.tool);
  const bool ask =
      !configured &&
      (!tools_.known() || (!tools_.may_have(flight.call.tool) && tools_.is_stale(context_.clock.now())));
  if (!ask) return send(flight);
  flight.stage = Flight::Stage::listing;
  request_list();
}

void StdioServer::send(Flight& flight) {
  const Call& call = flight.call;
  if (!call.tool.empty() && !server_->tools.contains(call.tool) && !tools_.may_have(call.tool)) {
    return finish(call.id, evidence_of(flight, Failure::not_listed, "the server does not list the tool"));
  }
  flight.rpc_id = ++last_id_;
  flight.stage = Flight::Stage::queued;
  std::string message = message_of(flight);
  flight.frame_bytes = message.size() + 1;
  by_rpc_[flight.rpc_id] = call.id;
  enqueue(std::move(message), call.id);
}

std::string StdioServer::message_of(const Flight& flight) const {
  const Call& call = flight.call;
  if (call.tool.empty()) return alive_message(era_, flight.rpc_id);
  CallParts parts{
      flight.rpc_id, call.request.head.empty() ? call.tool : call.request.head, call.request.body, {}, {}};
  if (call.key_rule && call.key_rule->place == KeyRule::Place::meta) {
    parts.meta_name = call.key_rule->name;
    parts.key = call.key;
  }
  return call_message(era_, parts);
}

/// The deadline or a cancel: says how far the call had come, and keeps an ear open for a late answer.
void StdioServer::give_up(CallId id, Failure failure) {
  const Flight& flight = flights_.at(id);
  const bool timeout = failure == Failure::timeout;
  std::string detail = timeout ? "no answer before the deadline" : "cancelled";
  Evidence evidence = evidence_of(flight, failure, std::move(detail));
  if (flight.stage == Flight::Stage::out) {
    const std::int64_t rpc_id = flight.rpc_id;
    expired_[rpc_id] = id;
    if (expired_.size() > kMaxExpired) expired_.erase(expired_.begin());
    finish(id, std::move(evidence));
    return enqueue(cancelled_message(era_, rpc_id, timeout ? "deadline exceeded" : "no longer wanted"),
                   std::nullopt);
  }
  const bool half_written = flight.sent_bytes > 0;
  if (timeout && flight.stage <= Flight::Stage::listing) {
    evidence.failure = Failure::handshake;
    evidence.detail = "the server was not ready before the deadline";
  }
  drop_frame(id);
  finish(id, std::move(evidence));
  if (half_written) lost("its process was replaced after a frame that was not written whole");
}

void StdioServer::drop_frame(CallId id) {
  std::erase_if(frames_, [id](const Frame& frame) { return frame.call == id; });
}

void StdioServer::finish(CallId id, Evidence evidence) {
  const auto found = flights_.find(id);
  by_rpc_.erase(found->second.rpc_id);
  flights_.erase(found);
  context_.gate.finished(id, std::move(evidence));
}

Evidence StdioServer::evidence_of(const Flight& flight, Failure failure, std::string detail) const {
  Evidence e;
  e.over_mcp = true;
  e.failure = failure;
  e.bytes_sent = flight.sent_bytes;
  e.phase = flight.stage <= Flight::Stage::listing   ? Phase::local
            : flight.sent_bytes == 0                 ? Phase::tx0
            : flight.sent_bytes < flight.frame_bytes ? Phase::tx_part
                                                     : Phase::tx_all;
  e.detail = std::move(detail);
  if (flight.frame_bytes == 0) return e;
  e.detail +=
      "; " + std::to_string(flight.sent_bytes) + " of " + std::to_string(flight.frame_bytes) + " bytes sent";
  return e;
}

// --- process and handshake
// ----------------------------------------------------------------------------------------------------

void StdioServer::ensure_process() {
  if (stage_ != Stage::down) return;
  Result<Child> child = start_child(server_->command, server_->environment);
  if (!child) return fail_handshake(Failure::process_start, child.error().message);
  child_ = std::move(*child);
  stage_ = Stage::shaking_hands;
  const Instant now = context_.clock.now();
  discover_until_ = now + kDiscoverWait;
  handshake_until_ = now + kLongestHandshake;
  discover_id_ = ++last_id_;
  enqueue(discover_message(*discover_id_), std::nullopt);
}

void StdioServer::initialize() {
  discover_until_.reset();
  if (initialize_id_) return;
  initialize_id_ = ++last_id_;
  enqueue(initialize_message(*initialize_id_), std::nullopt);
}

void StdioServer::take_handshake_answer(const Message& message) {
  const Evidence answer = read_answer(message);
  if (message.id == discover_id_) {
    discover_id_.reset();
    return read_discovery(answer) == Discovery::modern ? ready(Era::modern) : initialize();
  }
  const Result<std::string> revision = read_revision(answer.result);
  if (answer.answer == Answer::result && revision) {
    enqueue(initialized_message(), std::nullopt);
    if (stage_ == Stage::shaking_hands) ready(Era::legacy);
    return;
  }
  // A slow server of the modern era refuses `initialize` before it answers server/discover.
  if (discover_id_) return;
  fail_handshake(Failure::handshake, "initialize was refused: " + answer.detail);
}

void StdioServer::ready(Era era) {
  stage_ = Stage::ready;
  era_ = era;
  discover_id_.reset();
  initialize_id_.reset();
  discover_until_.reset();
  handshake_until_.reset();
  if (server_->trust_annotations || !looks_.empty()) request_list();
  std::vector<CallId> waiting;
  for (const auto& [id, flight] : flights_) {
    if (flight.stage == Flight::Stage::waiting) waiting.push_back(id);
  }
  for (const CallId id : waiting) {
    const auto found = flights_.find(id);
    if (found != flights_.end() && found->second.stage == Flight::Stage::waiting && stage_ == Stage::ready)
      dispatch(found->second);
  }
}

/// No call has left yet: every waiting one ends as never-sent.
void StdioServer::fail_handshake(Failure failure, const std::string& detail) {
  end_child(child_);
  stage_ = Stage::down;
  frames_.clear();
  input_.clear();
  scanned_ = 0;
  skipping_ = false;
  discover_id_.reset();
  initialize_id_.reset();
  discover_until_.reset();
  handshake_until_.reset();
  std::vector<CallId> all;
  for (const auto& [id, flight] : flights_) all.push_back(id);
  for (const CallId id : all) finish(id, evidence_of(flights_.at(id), failure, detail));
  end_looks(true);
}

/// The process is gone, or has to go.
void StdioServer::lost(const std::string& why) {
  if (stage_ == Stage::down) return;
  if (stage_ == Stage::shaking_hands) return fail_handshake(Failure::process_start, why);
  std::vector<std::pair<CallId, Evidence>> ended;
  for (const auto& [id, flight] : flights_) {
    const bool whole = flight.stage == Flight::Stage::out;
    const Failure failure = whole                   ? Failure::process_exit
                            : flight.sent_bytes > 0 ? Failure::send_cut
                                                    : Failure::process_start;
    ended.emplace_back(id, evidence_of(flight, failure, why));
  }
  list_id_.reset();
  list_until_.reset();
  expired_.clear();
  flights_.clear();
  by_rpc_.clear();
  for (auto& [id, evidence] : ended) context_.gate.finished(id, std::move(evidence));
  fail_handshake(Failure::process_start, why);
}

void StdioServer::begin_stop() {
  child_.input.reset();
  signal_group(child_, SIGTERM);
}

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

// --- the tool list
// ----------------------------------------------------------------------------------------------------

void StdioServer::request_list() {
  if (list_id_) return;
  tools_.begin();
  list_until_ = context_.clock.now() + kLongestList;
  list_id_ = ++last_id_;
  enqueue(list_message(era_, *list_id_, std::nullopt), std::nullopt);
}

void StdioServer::take_list(const Message& message) {
  const Evidence answer = read_answer(message);
  list_id_.reset();
  if (answer.answer != Answer::result) return end_list();
  const Result<ListPage> page = read_list_page(answer.result);
  if (!page || !tools_.add(*page, *server_, context_.catalog)) return end_list();
  if (page->next_cursor) {
    list_id_ = ++last_id_;
    return enqueue(list_message(era_, *list_id_, page->next_cursor), std::nullopt);
  }
  tools_.complete(context_.clock.now());
  end_list();
}

/// The list is known or cannot be had: the calls that waited for it go on, since only a known list refuses.
void StdioServer::end_list() {
  list_id_.reset();
  list_until_.reset();
  end_looks(true);
  std::vector<CallId> listing;
  for (const auto& [id, flight] : flights_) {
    if (flight.stage == Flight::Stage::listing) listing.push_back(id);
  }
  for (const CallId id : listing) {
    const auto found = flights_.find(id);
    if (found != flights_.end() && stage_ == Stage::ready) send(found->second);
  }
}

void StdioServer::discover(Instant deadline, std::function<void()> done) {
  looks_.push_back({deadline, std::move(done)});
  if (stage_ == Stage::ready) return request_list();
  ensure_process();
}

void StdioServer::end_looks(bool all) {
  const Instant now = context_.clock.now();
  const auto ended = std::stable_partition(looks_.begin(), looks_.end(),
                                           [&](const Look& d) { return !all && d.deadline > now; });
  std::vector<Look> over(std::make_move_iterator(ended), std::make_move_iterator(looks_.end()));
  looks_.erase(ended, looks_.end());
  for (const Look& d : over) d.done();
}

// --- time
// ----------------------------------------------------------------------------------------------------

Instant StdioServer::next_event() const {
  Instant next = kEndOfTime;
  for (const std::optional<Instant>* until : {&discover_until_, &handshake_until_, &list_until_}) {
    if (*until) next = std::min(next, **until);
  }
  for (const auto& [id, flight] : flights_) next = std::min(next, flight.call.deadline);
  for (const Look& d : looks_) next = std::min(next, d.deadline);
  return next;
}

void StdioServer::on_time() {
  const Instant now = context_.clock.now();
  if (next_event() > now) return;
  if (discover_until_ && *discover_until_ <= now) initialize();
  if (handshake_until_ && *handshake_until_ <= now)
    fail_handshake(Failure::handshake, "the handshake did not end");
  if (list_until_ && *list_until_ <= now) end_list();
  std::vector<CallId> due;
  for (const auto& [id, flight] : flights_) {
    if (flight.call.deadline <= now) due.push_back(id);
  }
  for (const CallId id : due) {
    if (flights_.contains(id)) give_up(id, Failure::timeout);
  }
  end_looks(false);
}

}  // namespace holdfast::tools::mcp
