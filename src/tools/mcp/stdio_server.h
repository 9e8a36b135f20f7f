#pragma once
// One MCP server over stdio: its process, the handshake, and the calls in flight.
#include <poll.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/tools/catalog.h"
#include "tools/mcp/child.h"
#include "tools/mcp/codec.h"
#include "tools/mcp/sink_gate.h"
#include "tools/mcp/tool_list.h"

namespace holdfast::tools::mcp {

struct StdioContext {
  const Clock& clock;
  Catalog& catalog;
  SinkGate gate;
};

/// Belongs to one thread, which is also the parent of the process. A frame is written whole or the process is
/// replaced.
class StdioServer {
 public:
  StdioServer(StdioContext& context, const ServerConfig& server) : context_(context), server_(&server) {}

  [[nodiscard]] const ServerConfig& server() const { return *server_; }
  /// The same server under a new configuration: same_connection() holds.
  void adopt(const ServerConfig& server) { server_ = &server; }
  void start(Call call);
  void cancel(CallId id);
  /// Connects and lists; `done` runs at the first of: listed, failed, `deadline`.
  void discover(Instant deadline, std::function<void()> done);

  [[nodiscard]] int input() const { return child_.input.get(); }
  [[nodiscard]] int output() const { return child_.output.get(); }
  [[nodiscard]] bool wants_to_write() const { return !frames_.empty(); }
  void on_readable();
  void on_writable() { flush(); }
  /// When on_time() has something to do.
  [[nodiscard]] Instant next_event() const;
  void on_time();

  /// Nobody waits for anything from it; `late_too`: nor could an answer still come that was given up.
  [[nodiscard]] bool quiet(bool late_too) const {
    return flights_.empty() && looks_.empty() && (!late_too || expired_.empty());
  }
  /// Asks the process to end: closes its stdin, terminates its group.
  void begin_stop();
  [[nodiscard]] bool stopped() const { return has_ended(child_); }
  void kill() { end_child(child_); }

 private:
  enum class Stage { down, shaking_hands, ready };
  struct Flight {
    Call call;
    enum class Stage { waiting, listing, queued, out } stage = Stage::waiting;
    std::int64_t rpc_id = 0;
    std::size_t frame_bytes = 0;
    std::size_t sent_bytes = 0;
  };
  struct Frame {
    std::string bytes;
    std::size_t sent = 0;
    std::optional<CallId> call;
  };
  struct Look {
    Instant deadline;
    std::function<void()> done;
  };
  using Flights = std::map<CallId, Flight>;

  void ensure_process();
  void initialize();
  void ready(Era era);
  void fail_handshake(Failure failure, const std::string& detail);
  void lost(const std::string& why);
  void dispatch(Flight& flight);
  void send(Flight& flight);
  [[nodiscard]] std::string message_of(const Flight& flight) const;
  void enqueue(std::string message, std::optional<CallId> call);
  void flush();
  void drop_frame(CallId id);
  void give_up(CallId id, Failure failure);
  void finish(CallId id, Evidence evidence);
  void take_lines();
  void take_line(std::string_view line);
  void take_answer(const Message& message, std::size_t bytes);
  void take_handshake_answer(const Message& message);
  void take_list(const Message& message);
  void answer_call(std::int64_t rpc_id, Evidence evidence, std::size_t bytes);
  void over_long_line();
  void request_list();
  void end_list();
  void end_looks(bool all);
  [[nodiscard]] Evidence evidence_of(const Flight& flight, Failure failure, std::string detail) const;

  StdioContext& context_;
  const ServerConfig* server_;
  Child child_;
  Stage stage_ = Stage::down;
  Era era_ = Era::legacy;
  ToolList tools_;
  std::int64_t last_id_ = 0;

  std::optional<std::int64_t> discover_id_, initialize_id_, list_id_;
  std::optional<Instant> discover_until_, handshake_until_, list_until_;

  Flights flights_;
  std::map<std::int64_t, CallId> by_rpc_;   // calls whose frame is queued or out
  std::map<std::int64_t, CallId> expired_;  // given up; their answers are late ones
  std::deque<Frame> frames_;
  std::vector<Look> looks_;

  std::string input_;
  std::size_t scanned_ = 0;
  bool skipping_ = false;  // the rest of a line that was over the limit
};

}  // namespace holdfast::tools::mcp
