#pragma once
#include <memory>
#include <optional>
#include <string>

#include "http/exchange.h"
#include "http/topics.h"

namespace holdfast::http {

/// Runs handlers, and puts what they answer through the request processing of cpp-httplib on a stream in memory: it never
/// sees a socket, a header of the client or an unbounded input. One per thread; not thread-safe.
class Processor {
 public:
  /// `topics` outlives the processor.
  Processor(Topics& topics, Duration idle_time);
  ~Processor();
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  /// Runs the handler once. What it throws becomes 500 `internal`, without its text.
  [[nodiscard]] Step run(Exchange& exchange);
  /// The same with the route's glance; nullopt when the handler has to run.
  [[nodiscard]] std::optional<Step> glance(Exchange& exchange);
  /// The bytes of an answer that no handler gave. The connection is to be closed after it.
  [[nodiscard]] std::string render(Response response);

 private:
  class Library;
  template <class Answer>
  [[nodiscard]] std::optional<Outcome> call(Exchange& exchange, const Answer& answer);
  [[nodiscard]] Step to_step(Exchange& exchange, Outcome outcome);

  Topics& topics_;
  std::unique_ptr<Library> library_;
};

}  // namespace holdfast::http
