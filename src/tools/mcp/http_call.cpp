#include "tools/mcp/http_call.h"

#include <algorithm>
#include <utility>

namespace holdfast::tools::mcp {
namespace {

constexpr int kMaxResumes = 3;
constexpr int kMaxReplies = 32;
constexpr std::size_t kMaxLingering = 512;
constexpr Duration kLegacyLinger{30'000};
constexpr Duration kAsideDeadline{5'000};
constexpr std::int64_t kDefaultRetryMs = 250;

}  // namespace

void HttpCall::begin() {
  if (context_->clock.now() >= call_.deadline) {
    return finish(unsent(Failure::timeout, "the deadline had passed before the call could be sent"));
  }
  link_->await(call_.id, call_.deadline,
               [self = shared_from_this()](const Evidence* failed) { self->on_connected(failed); });
  if (stage_ == Stage::connecting) arm_deadline();
}

void HttpCall::on_connected(const Evidence* failed) {
  if (stage_ != Stage::connecting) return;
  if (failed != nullptr) return finish(*failed);
  if (is_question()) return post();
  const bool configured = link_->server().tools.contains(call_.tool);
  ToolList& tools = link_->tools();
  const bool ask = !configured &&
                   (!tools.known() || (!tools.may_have(call_.tool) && tools.is_stale(context_->clock.now())));
  if (!ask) return on_listed();
  stage_ = Stage::listing;
  arm_deadline();
  link_->await_list(call_.id, call_.deadline, [self = shared_from_this()](const Evidence*) {
    if (self->stage_ == Stage::listing) self->on_listed();
  });
}

void HttpCall::on_listed() {
  if (!link_->server().tools.contains(call_.tool) && !link_->tools().may_have(call_.tool)) {
    return finish(unsent(Failure::not_listed, "the server does not list the tool"));
  }
  if (!link_->connected()) {  // the session ended while the list was read
    stage_ = Stage::connecting;
    return link_->await(call_.id, call_.deadline,
                        [self = shared_from_this()](const Evidence* failed) { self->on_connected(failed); });
  }
  post();
}

void HttpCall::arm_deadline() {
  if (deadline_armed_) return;
  deadline_armed_ = true;
  context_->http.at(call_.deadline, [self = shared_from_this()] { self->on_deadline(); });
}

/// Only the waits of our own: a running exchange has its deadline in the client.
void HttpCall::on_deadline() {
  if (finished_) return;
  if (stage_ == Stage::pausing) return on_timeout(*base_);
  if (!waiting()) return;
  const bool connecting = stage_ == Stage::connecting;
  Evidence evidence =
      unsent(Failure::handshake, connecting ? "the connection to the server was not ready before the deadline"
                                            : "the tool list did not come before the deadline");
  link_->abandon(call_.id);
  finish(std::move(evidence));
}

void HttpCall::post() {
  used_ = link_->protocol();
  rpc_id_ = link_->next_id();
  HttpRequest request = is_question() ? post_request(link_->server(), used_, alive_method(used_.era), {},
                                                     alive_message(used_.era, rpc_id_))
                                      : call_request();
  request.fresh_connection = call_.repeat == Kind::plain;
  stage_ = Stage::posted;
  start(std::move(request));
}

HttpRequest HttpCall::call_request() const {
  CallParts parts{
      rpc_id_, call_.request.head.empty() ? call_.tool : call_.request.head, call_.request.body, {}, {}};
  if (call_.key_rule && call_.key_rule->place == KeyRule::Place::meta) {
    parts.meta_name = call_.key_rule->name;
    parts.key = call_.key;
  }
  HttpRequest request =
      post_request(link_->server(), used_, "tools/call", parts.tool, call_message(used_.era, parts));
  if (call_.key_rule && call_.key_rule->place == KeyRule::Place::header && !call_.key.empty()) {
    request.headers.emplace_back(call_.key_rule->name, call_.key);
  }
  return request;
}

/// Closing a legacy stream must not cancel the call: it is listened to for a while. In the modern era closing
/// is the cancel.
Duration HttpCall::linger() const {
  if (is_question()) return Duration{0};
  return is_legacy() ? std::max(kLegacyLinger, call_.linger) : call_.linger;
}

void HttpCall::resume() {
  if (stage_ != Stage::pausing || finished_) return;
  stage_ = Stage::resuming;
  const std::string last_id = parser_.last_id();
  parser_.restart();
  start(resume_request(link_->server(), used_, last_id));
}

void HttpCall::start(HttpRequest request) {
  streamed_ = false;
  request.deadline = call_.deadline;
  request.linger = linger();
  request.max_body_bytes = context_->catalog.config().limits.result_bytes;
  HttpCallbacks callbacks;
  const auto self = shared_from_this();
  callbacks.stream = [self](int status, const HttpHeaders& headers) {
    return self->on_head(status, headers);
  };
  callbacks.chunk = [self](std::string_view piece) { return self->on_piece(piece); };
  callbacks.done = [self](HttpOutcome outcome) { self->on_done(std::move(outcome)); };
  callbacks.late = [self](HttpOutcome outcome) { self->on_late(outcome); };
  request_ = context_->http.start(std::move(request), std::move(callbacks));
}

bool HttpCall::on_head(int status, const HttpHeaders& headers) {
  return streamed_ = is_success(status) && is_event_stream(headers);
}

bool HttpCall::on_piece(std::string_view piece) {
  if (stage_ == Stage::over) return false;
  const bool more = parser_.feed(piece, [&](const SseEvent& event) { return on_event(event); });
  return more && stage_ != Stage::over;
}

/// False when the stream has given its answer.
bool HttpCall::on_event(const SseEvent& event) {
  const std::uint32_t depth = context_->catalog.config().limits.json_depth;
  if (std::optional<Evidence> answer = judge_event(event.data, rpc_id_, depth)) {
    base_ = *std::move(answer);
    if (!finished_) return false;  // reported with the exchange's numbers, at its end, which follows at once
    late(*std::exchange(base_, std::nullopt));
    return false;
  }
  const Result<Message> message = read_message(event.data, depth);
  if (!message) return true;
  if (message->kind == Message::Kind::request) send_reply(*message);
  if (message->method == "notifications/tools/list_changed") link_->tools().forget();
  return true;
}

void HttpCall::on_done(HttpOutcome outcome) {
  if (finished_) return;
  const bool resuming = stage_ == Stage::resuming;
  if (streamed_ && base_ && base_->phase == Phase::parsed) {
    return answered(with_answer(exchange_evidence(outcome), *base_));
  }
  if (streamed_ && parser_.over_limit()) {
    Evidence evidence = exchange_evidence(outcome);
    evidence.phase = Phase::rx_part_body;
    evidence.failure = Failure::too_large;
    evidence.detail = "an event of the stream is over the limit of " +
                      std::to_string(context_->catalog.config().limits.result_bytes) + " bytes";
    return finish(std::move(evidence));
  }
  if (outcome.failure == Failure::timeout) return on_timeout(resuming ? *base_ : exchange_evidence(outcome));
  if (outcome.failure == Failure::cancelled) {
    Evidence evidence = resuming ? *base_ : exchange_evidence(outcome);
    evidence.failure = Failure::cancelled;
    return give_up(std::move(evidence), "no longer wanted");
  }
  if (streamed_) return on_stream_end(resuming ? *base_ : exchange_evidence(outcome));
  if (resuming) {
    resume_refused_ = outcome.failure == Failure::none;
    return on_stream_end(*base_);
  }
  Evidence evidence = judge(outcome, rpc_id_, context_->catalog.config().limits);
  if (evidence.failure == Failure::stream_ended) return on_stream_end(std::move(evidence));
  answered(std::move(evidence));
}

void HttpCall::on_timeout(Evidence evidence) {
  evidence.failure = Failure::timeout;
  evidence.answer = Answer::none;
  if (evidence.detail.empty()) evidence.detail = "no answer before the deadline";
  give_up(std::move(evidence), "deadline exceeded");
}

/// Reported at once; where the exchange may go on, a late answer is still listened for.
void HttpCall::give_up(Evidence evidence, std::string_view reason) {
  const bool sent = evidence.phase >= Phase::tx_part;
  const bool listening = stage_ == Stage::posted || stage_ == Stage::resuming;
  if (sent) send_cancelled(reason);
  if (!listening || !sent || linger().count() == 0 || context_->lingering >= kMaxLingering) {
    if (listening) context_->http.cancel(request_);
    return finish(std::move(evidence));
  }
  finished_ = true;
  stage_ = Stage::lingering;
  ++context_->lingering;
  context_->http.at(context_->clock.now() + linger() + Duration{100}, [self = shared_from_this()] {
    if (self->stage_ != Stage::lingering) return;
    self->context_->http.cancel(self->request_);
    self->over();
  });
  context_->gate.finished(call_.id, std::move(evidence));
}

/// The stream is over and the result has not come.
void HttpCall::on_stream_end(Evidence evidence) {
  const std::string unfinished = parser_.unfinished();
  evidence.phase = Phase::rx_part_body;
  evidence.failure = Failure::stream_ended;
  evidence.answer = Answer::none;
  if (!unfinished.empty()) evidence.text = clip(unfinished);
  base_ = std::move(evidence);
  if (pause_before_resume()) return;
  base_->detail = "the stream ended without the result";
  if (resumes_ > 0)
    base_->detail += ", and " + std::to_string(resumes_) + " resume requests did not bring it";
  finish(*std::exchange(base_, std::nullopt));
}

/// True when the stream will be asked for again (legacy era, an event with an id, time and tries left).
bool HttpCall::pause_before_resume() {
  if (!is_legacy() || resume_refused_ || resumes_ >= kMaxResumes || !is_event_id(parser_.last_id()))
    return false;
  const std::int64_t wait_ms =
      std::min<std::int64_t>(parser_.retry_ms().value_or(kDefaultRetryMs), kLongestDuration.count());
  const Instant at = context_->clock.now() + Duration{wait_ms};
  if (at >= call_.deadline) return false;
  ++resumes_;
  stage_ = Stage::pausing;
  arm_deadline();
  context_->http.at(at, [self = shared_from_this()] { self->resume(); });
  return true;
}

/// A refusal may tell that the connection's state is gone, whatever else it says about the call.
void HttpCall::absorb_refusal(Evidence& evidence) {
  if (is_legacy() && says_session_dead(evidence, !used_.session.empty())) {
    link_->drop_session(used_);
    evidence.failure = Failure::session_lost;
    evidence.detail = "the server no longer knows the session (" + evidence.detail + ")";
    return;
  }
  if (is_legacy() && doubts_session(evidence, !used_.session.empty())) link_->drop_session(used_);
  if (evidence.failure != Failure::none) return;
  const bool era_code = evidence.rpc_code && *evidence.rpc_code <= -32020 && *evidence.rpc_code >= -32022;
  if (era_code) return link_->renegotiate();
  const bool about_the_call = evidence.rpc_code == -32601 || evidence.rpc_code == -32602;
  if (evidence.http_status != 400 || about_the_call) return;
  if (is_legacy()) link_->drop_session(used_);
  if (!is_legacy()) link_->renegotiate();
}

void HttpCall::answered(Evidence evidence) {
  absorb_refusal(evidence);
  finish(std::move(evidence));
}

void HttpCall::on_late(const HttpOutcome& outcome) {
  if (stage_ != Stage::lingering) return;
  if (streamed_) return over();  // its events have been looked at, one by one
  late(judge(outcome, rpc_id_, context_->catalog.config().limits));
}

void HttpCall::late(Evidence evidence) {
  if (stage_ != Stage::lingering) return;
  if (evidence.http_status == 0) evidence.http_status = 200;
  context_->gate.late(call_.id, std::move(evidence));
  over();
}

void HttpCall::cancel() {
  if (finished_) return;
  if (waiting()) {
    link_->abandon(call_.id);
    return finish(unsent(Failure::cancelled, "cancelled before the call was sent"));
  }
  if (stage_ != Stage::pausing) return context_->http.cancel(request_);
  Evidence evidence = *std::exchange(base_, std::nullopt);
  evidence.failure = Failure::cancelled;
  give_up(std::move(evidence), "no longer wanted");
}

void HttpCall::finish(Evidence evidence) {
  if (finished_) return;
  finished_ = true;
  context_->gate.finished(call_.id, std::move(evidence));
  over();
}

void HttpCall::over() {
  if (stage_ == Stage::over) return;
  if (stage_ == Stage::lingering) --context_->lingering;
  stage_ = Stage::over;
  gone_(call_.id);
}

void HttpCall::send_cancelled(std::string_view reason) {
  if (is_legacy()) send_aside("notifications/cancelled", cancelled_message(used_.era, rpc_id_, reason));
}

void HttpCall::send_reply(const Message& request) {
  if (++replies_ <= kMaxReplies) send_aside(request.method, reply_message(request.raw_id, request.method));
}

/// A message that no answer is awaited to.
void HttpCall::send_aside(std::string_view method, std::string body) {
  HttpRequest request = post_request(link_->server(), used_, method, {}, std::move(body));
  request.deadline = context_->clock.now() + kAsideDeadline;
  request.max_body_bytes = 64 * 1024;
  HttpCallbacks callbacks;
  callbacks.done = [](const HttpOutcome&) {};
  context_->http.start(std::move(request), std::move(callbacks));
}

Evidence HttpCall::unsent(Failure failure, std::string detail) const {
  Evidence e;
  e.failure = failure;
  e.detail = std::move(detail);
  e.over_mcp = true;
  return e;
}

}  // namespace holdfast::tools::mcp
