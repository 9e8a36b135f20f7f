#pragma once
#include <utility>

#include "holdfast/ledger/ledger.h"
#include "holdfast/tools/transport.h"

namespace holdfast::engine {

/// A call that has been decided. It becomes a tools::Call only in exchange for the proof that its attempt is
/// durable: the output gate, held by the type.
class Outgoing {
 public:
  Outgoing(tools::Call call, std::string run_id) : call_(std::move(call)), run_id_(std::move(run_id)) {}
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] tools::CallId id() const { return call_.id; }
  [[nodiscard]] tools::Call release(const ledger::Committed&) && { return std::move(call_); }

 private:
  tools::Call call_;
  std::string run_id_;
};

}  // namespace holdfast::engine
