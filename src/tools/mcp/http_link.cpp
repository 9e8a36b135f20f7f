#include "tools/mcp/http_link.h"

#include <algorithm>
#include <utility>

namespace holdfast::tools::mcp {
namespace {

constexpr Duration kLongestConnect{30'000};
constexpr Duration kLongestDiscover{3'000};
constexpr Duration kLongestList{10'000};
/// The waiter that is no call.
constexpr std::uint64_t kOwnWaiter = ~std::uint64_t{0};

}  // namespace

void HttpLink::await(std::uint64_t id, Instant deadline, Waiter waiter) {
  if (state_ == State::ready) return waiter(nullptr);
  waiters_[id] = std::move(waiter);
  if (state_ == State::idle) connect(deadline);
}

void HttpLink::abandon(std::uint64_t id) {
  list_waiters_.erase(id);
  if (waiters_.erase(id) == 0 || !waiters_.empty() || state_ != State::connecting) return;
  ++round_;
  state_ = State::idle;
  http_.cancel(request_);
}

void HttpLink::connect(Instant deadline) {
  ++round_;
  state_ = State::connecting;
  // Each waiting call ends its own wait; the connect is for all of them.
  deadline_ = clock_.now() + kLongestConnect;
  first_deadline_ = std::min(deadline, deadline_);
  protocol_ = {};
  if (!era_) return discover();
  if (*era_ == Era::legacy) return initialize();
  protocol_ = {Era::modern, std::string(kModernRevision), {}};
  ready();
}

void HttpLink::start(HttpRequest request, std::int64_t id, Instant deadline,
                     std::function<void(RpcReply)> done) {
  request.deadline = deadline;
  request_ =
      rpc_exchange(http_, std::move(request), id, catalog_.config().limits,
                   [self = shared_from_this(), round = round_, done = std::move(done)](RpcReply reply) {
                     if (round == self->round_) done(std::move(reply));
                   });
}

void HttpLink::discover() {
  const std::int64_t id = next_id();
  const Protocol modern{Era::modern, std::string(kModernRevision), {}};
  const Instant now = clock_.now();
  // A server that swallows what it does not know must leave time for `initialize`.
  const Instant until =
      now + std::min(kLongestDiscover, Duration{std::max<std::int64_t>(1, (first_deadline_ - now).count() / 2)});
  start(post_request(*server_, modern, "server/discover", {}, discover_message(id)), id, until,
        [this, modern](RpcReply reply) {
          const Evidence& e = reply.evidence;
          const bool reached =
              e.http_status != 0 || (e.failure == Failure::timeout && e.phase >= Phase::tx_part);
          if (!reached) return fail(e, "server/discover");
          if (read_discovery(e) == Discovery::legacy) return initialize();
          era_ = Era::modern;
          protocol_ = modern;
          ready();
        });
}

void HttpLink::initialize() {
  const std::int64_t id = next_id();
  protocol_ = {};
  start(post_request(*server_, protocol_, "initialize", {}, initialize_message(id)), id, deadline_,
        [this](RpcReply reply) {
          if (reply.evidence.answer != Answer::result) return fail(reply.evidence, "initialize");
          const Result<std::string> revision = read_revision(reply.evidence.result);
          if (!revision) {
            reply.evidence.detail = revision.error().message;
            return fail(reply.evidence, "initialize");
          }
          const std::string session = reply.headers.all("mcp-session-id");
          if (!session.empty() && !is_session_id(session)) {
            reply.evidence.failure = Failure::bad_session;
            reply.evidence.detail = "the session id is not made of visible ASCII characters";
            return fail(reply.evidence, "initialize");
          }
          era_ = Era::legacy;
          protocol_ = {Era::legacy, *revision, session};
          confirm();
        });
}

void HttpLink::confirm() {
  start(post_request(*server_, protocol_, "notifications/initialized", {}, initialized_message()), 0,
        deadline_, [this](RpcReply reply) {
          if (reply.evidence.http_status == 0) return fail(reply.evidence, "notifications/initialized");
          ready();
        });
}

void HttpLink::ready() {
  state_ = State::ready;
  if (server_->trust_annotations && !tools_.known())
    await_list(kOwnWaiter, clock_.now() + kLongestList, [](const Evidence*) {});
  for (auto& [id, waiter] : std::exchange(waiters_, {})) waiter(nullptr);
}

void HttpLink::fail(const Evidence& cause, std::string_view step) {
  state_ = State::idle;
  const Evidence evidence = handshake_evidence(cause, step);
  for (auto& [id, waiter] : std::exchange(waiters_, {})) waiter(&evidence);
}

void HttpLink::drop_session(const Protocol& used) {
  if (state_ != State::ready || protocol_.era != used.era || protocol_.session != used.session) return;
  state_ = State::idle;
  ++round_;
  protocol_ = {};
}

void HttpLink::renegotiate() {
  era_.reset();
  if (state_ != State::ready) return;
  state_ = State::idle;
  ++round_;
  protocol_ = {};
}

void HttpLink::await_list(std::uint64_t id, Instant deadline, Waiter waiter) {
  list_waiters_[id] = std::move(waiter);
  if (listing_) return;
  listing_ = true;
  tools_.begin();
  list_page(std::min(deadline, clock_.now() + kLongestList), std::nullopt);
}

void HttpLink::list_page(Instant deadline, const std::optional<std::string>& cursor) {
  const std::int64_t id = next_id();
  HttpRequest request =
      post_request(*server_, protocol_, "tools/list", {}, list_message(protocol_.era, id, cursor));
  request.deadline = deadline;
  rpc_exchange(http_, std::move(request), id, catalog_.config().limits,
               [self = shared_from_this(), deadline, used = protocol_](RpcReply reply) {
                 const Evidence& e = reply.evidence;
                 if (says_session_dead(e, !used.session.empty())) self->drop_session(used);
                 if (e.answer != Answer::result) return self->end_list();
                 const Result<ListPage> page = read_list_page(e.result);
                 if (!page || !self->tools_.add(*page, *self->server_, self->catalog_))
                   return self->end_list();
                 if (page->next_cursor && self->connected())
                   return self->list_page(deadline, page->next_cursor);
                 if (!page->next_cursor) self->tools_.complete(self->clock_.now());
                 self->end_list();
               });
}

void HttpLink::end_list() {
  listing_ = false;
  for (auto& [id, waiter] : std::exchange(list_waiters_, {})) waiter(nullptr);
}

}  // namespace holdfast::tools::mcp
