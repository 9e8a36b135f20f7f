// The server's process: started, greeted, and ended when it has to go.
#include <csignal>
#include <utility>

#include "tools/mcp/http_messages.h"
#include "tools/mcp/stdio_server.h"

namespace holdfast::tools::mcp {
namespace {

constexpr Duration kDiscoverWait{1'000};
constexpr Duration kLongestHandshake{60'000};

}  // namespace

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

}  // namespace holdfast::tools::mcp
