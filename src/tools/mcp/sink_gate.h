#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include "holdfast/tools/catalog.h"
#include "holdfast/tools/transport.h"

namespace holdfast::tools::mcp {

/// The way of all evidence to the sink: secrets are taken out, and nothing passes once it is closed.
/// Thread-safe.
class SinkGate {
 public:
  SinkGate(CallSink& sink, const Catalog& catalog) : sink_(sink), catalog_(catalog) {}

  void finished(CallId id, Evidence evidence) {
    clean(evidence);
    const std::lock_guard lock(mutex_);
    if (open_) sink_.finished(id, std::move(evidence));
  }
  void late(CallId id, Evidence evidence) {
    clean(evidence);
    const std::lock_guard lock(mutex_);
    if (open_) sink_.late(id, std::move(evidence));
  }
  /// When it returns, no call of the sink is running and none will follow.
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  void clean(Evidence& evidence) const {
    const std::vector<std::string>& secrets = catalog_.config().secrets;
    if (secrets.empty()) return;
    for (std::string* text : {&evidence.result, &evidence.text, &evidence.detail, &evidence.location}) {
      if (!text->empty()) *text = redact(std::move(*text), secrets);
    }
  }

  CallSink& sink_;
  const Catalog& catalog_;
  std::mutex mutex_;
  bool open_ = true;
};

}  // namespace holdfast::tools::mcp
