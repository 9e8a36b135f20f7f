#include "tools/mcp/stdio_server.h"

#include <algorithm>
#include <utility>

namespace holdfast::tools::mcp {
namespace {

constexpr Duration kLongestList{10'000};
constexpr std::size_t kMaxExpired = 1024;

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
