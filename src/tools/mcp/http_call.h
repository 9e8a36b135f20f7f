#pragma once
// One tools/call on its way over streamable HTTP, from the wait for a connection to a late answer.
#include <memory>

#include "tools/mcp/http_link.h"
#include "tools/mcp/sink_gate.h"
#include "tools/mcp/sse.h"

namespace holdfast::tools::mcp {

/// What the calls of one transport share. Lives as long as any callback of it.
struct HttpCallContext {
  HttpClient& http;
  const Clock& clock;
  Catalog& catalog;
  SinkGate gate;
  std::size_t lingering = 0;  // exchanges kept open for a late answer
};

/// Lives on the HTTP client's thread; not thread-safe. Reports finished() exactly once.
class HttpCall : public std::enable_shared_from_this<HttpCall> {
 public:
  /// `gone` runs once, when nothing more can come of the call.
  HttpCall(std::shared_ptr<HttpCallContext> context, std::shared_ptr<HttpLink> link, Call call,
           std::function<void(CallId)> gone)
      : context_(std::move(context)),
        link_(std::move(link)),
        call_(std::move(call)),
        gone_(std::move(gone)),
        parser_(context_->catalog.config().limits.result_bytes) {}

  void begin();
  void cancel();

 private:
  enum class Stage { connecting, listing, posted, pausing, resuming, lingering, over };

  void on_connected(const Evidence* failed);
  void on_listed();
  void on_deadline();
  void post();
  void resume();
  void start(HttpRequest request);
  bool on_head(int status, const HttpHeaders& headers);
  bool on_piece(std::string_view piece);
  bool on_event(const SseEvent& event);
  void on_done(HttpOutcome outcome);
  void on_late(const HttpOutcome& outcome);
  void on_timeout(Evidence evidence);
  void give_up(Evidence evidence, std::string_view reason);
  void on_stream_end(Evidence evidence);
  bool pause_before_resume();
  void absorb_refusal(Evidence& evidence);
  void answered(Evidence evidence);
  void finish(Evidence evidence);
  void late(Evidence evidence);
  void over();
  void arm_deadline();
  void send_cancelled(std::string_view reason);
  void send_reply(const Message& request);
  void send_aside(std::string_view method, std::string body);
  [[nodiscard]] Evidence unsent(Failure failure, std::string detail) const;
  [[nodiscard]] HttpRequest call_request() const;
  [[nodiscard]] Duration linger() const;
  /// No tool is called: the server is asked whether it lives.
  [[nodiscard]] bool is_question() const { return call_.tool.empty(); }
  [[nodiscard]] bool waiting() const { return stage_ == Stage::connecting || stage_ == Stage::listing; }
  [[nodiscard]] bool is_legacy() const { return used_.era == Era::legacy; }

  std::shared_ptr<HttpCallContext> context_;
  std::shared_ptr<HttpLink> link_;
  Call call_;
  std::function<void(CallId)> gone_;
  Stage stage_ = Stage::connecting;
  Protocol used_;  // what the call was sent under
  std::int64_t rpc_id_ = 0;
  SseParser parser_;
  RequestId request_ = 0;
  bool finished_ = false;
  bool streamed_ = false;  // the exchange that runs now is a stream
  bool resume_refused_ = false;
  bool deadline_armed_ = false;
  int resumes_ = 0;
  int replies_ = 0;
  std::optional<Evidence> base_;  // of the POST, once its stream has ended
};

}  // namespace holdfast::tools::mcp
