#pragma once
#include <atomic>

#include "holdfast/tools/catalog.h"
#include "holdfast/tools/http_client.h"
#include "holdfast/tools/transport.h"

namespace holdfast::cli {

/// Transports are made before the engine that hears from them: what they say goes to `target`, set before the
/// first call.
class SinkRelay final : public tools::CallSink {
 public:
  void attach(tools::CallSink& target) { target_ = &target; }
  void finished(tools::CallId id, Evidence evidence) override {
    target_.load()->finished(id, std::move(evidence));
  }
  void late(tools::CallId id, Evidence evidence) override { target_.load()->late(id, std::move(evidence)); }

 private:
  std::atomic<tools::CallSink*> target_{nullptr};
};

}  // namespace holdfast::cli
