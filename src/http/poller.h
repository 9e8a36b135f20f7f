#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "http/exchange.h"
#include "http/head.h"
#include "http/processor.h"
#include "http/strangers.h"
#include "http/workers.h"

namespace holdfast::http {

enum class Phase {
  idle,  // no byte of a request yet
  head,
  body,
  running,  // the exchange is with a worker
  writing,  // the client reads more slowly than it was answered
  parked,
  lingering,  // answered for good; what still comes is thrown away so that the answer is not lost to a reset
};

struct Connection {
  std::uint64_t id = 0;
  int socket = -1;
  Phase phase = Phase::idle;
  bool readable = false;     // edge-triggered: there may be bytes until a read comes back short
  bool peer_closed = false;  // the client sends no more
  bool broken = false;       // reset; closed as soon as no worker holds the socket
  bool woken = false;        // a topic came while the handler ran
  HeadScanner scanner;
  std::string in;
  std::uint64_t body_length = 0;
  std::string out;
  std::size_t out_sent = 0;
  std::shared_ptr<const std::string> tail;  // goes after `out`
  std::size_t tail_sent = 0;
  std::size_t out_counted = 0;  // its part of all answers that are not taken
  std::unique_ptr<Exchange> exchange;
  Step::Next after_write = Step::Next::finish;
  Instant park_until;
  std::string remote_address;
  std::string counted_as;  // its address among open connections; empty for one that was turned away
  std::uint64_t discarded = 0;
  Instant deadline = kEndOfTime;
  Instant scheduled = kEndOfTime;  // its entry among the timers, never later than the deadline
};

/// One thread that owns every connection of a listener: accepts, reads requests to their last byte, answers what a glance
/// can answer, hands the others to workers, keeps parked and idle connections, writes what slow clients have not taken. Nothing
/// here waits for a client or a disk.
class Poller {
 public:
  Poller(const Clock& clock, const Options& options, const Router& router, Topics& topics);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Serves on the calling thread until stop(). Takes the listening socket.
  void serve(int listening_socket);
  void wake(std::vector<std::uint64_t> connections);  // any thread
  void stop_accepting();                              // any thread
  void stop();                                        // any thread

 private:
  struct Finished {
    std::unique_ptr<Exchange> exchange;
    Step step;
  };

  // poller.cpp: the loop
  [[nodiscard]] int wait_ms();
  void signal();
  void take_mail();
  void accept_some();
  void open(int socket, std::string remote_address);
  [[nodiscard]] bool has_room(const std::string& remote_address) const;
  void turn_away(int socket);
  void expire();
  void set_deadline(Connection& c, Instant at);
  void close(Connection& c);
  void close_idle();
  void hear_again(const Connection& c);
  void wind_up();
  [[nodiscard]] bool finished() const;
  void on_event(std::uint64_t id, std::uint32_t events);
  void on_deadline(Connection& c);

  // poller_read.cpp: from bytes to a request
  void advance(Connection& c);
  [[nodiscard]] bool read_some(Connection& c, std::size_t most);
  void on_input(Connection& c);
  void on_head(Connection& c, std::size_t length);
  void on_body(Connection& c);
  void discard(Connection& c);
  void refuse(Connection& c, const Refusal& refusal);

  // poller_answer.cpp: from a request to its answer
  void dispatch(Connection& c);
  void resume(Connection& c, bool waited_out);
  void answer(Connection& c);
  [[nodiscard]] bool may_glance(const Exchange& exchange);
  void hand_over(Connection& c);
  void on_finished(Finished finished);
  void on_step(Connection& c, Step step);
  void after_step(Connection& c, Step::Next next);
  void park(Connection& c);
  void write_out(Connection& c, Step step);
  void make_room(const Connection& newest);
  void forget_answer(Connection& c);
  void flush(Connection& c);
  [[nodiscard]] bool push(Connection& c, std::string_view bytes, std::size_t& sent);
  void next_request(Connection& c);
  void linger(Connection& c);
  void forget_exchange(Connection& c);

  const Clock& clock_;
  const Options& options_;
  const Router& router_;
  Topics& topics_;
  Processor processor_;  // for glances, and for answers without a handler
  Workers workers_;
  int epoll_ = -1;
  int event_ = -1;
  int listener_ = -1;
  Instant now_;
  std::optional<std::chrono::steady_clock::time_point> glances_end_;  // of this turn; none before its first glance
  Instant accept_again_;  // when descriptors had run out
  Instant stop_by_ = kEndOfTime;
  bool accepting_ = true;
  bool stopping_ = false;
  std::uint64_t next_id_ = 16;  // below are the poller's own descriptors
  std::size_t lingering_ = 0;
  std::size_t running_ = 0;
  std::uint64_t body_bytes_ = 0;  // of bodies that are not complete
  std::uint64_t out_bytes_ = 0;   // of answers that are not taken
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::string, std::uint32_t> per_address_;  // how many of them, by address_group()
  Strangers strangers_;
  std::set<std::pair<std::int64_t, std::uint64_t>> timers_;
  std::vector<std::uint64_t> again_;  // more to do, after the others had their turn
  std::string scratch_;

  std::mutex mutex_;  // guards the mailbox
  std::vector<Finished> finished_;
  std::vector<std::uint64_t> wakes_;
  bool signalled_ = false;
  bool stop_accepting_asked_ = false;
  bool stop_asked_ = false;
};

}  // namespace holdfast::http
