#pragma once
// What every handler needs, and the engine as handlers see it: commands that answer once they are durable.
#include <optional>
#include <string>

#include "api/known_runs.h"
#include "api/large_answers.h"
#include "holdfast/core/time.h"
#include "holdfast/engine/engine.h"
#include "holdfast/engine/latencies.h"
#include "holdfast/ledger/ledger.h"
#include "holdfast/run/plan.h"
#include "holdfast/tools/catalog.h"

namespace holdfast::api {

class MetricsRegistry;

/// The engine's commands, waited for. But for submit() every function blocks the calling handler until the commit that makes
/// its answer true, at most 30 s (`commit_timeout`: the command may still take effect). Thread-safe. Errors
/// as in engine.h.
class Commands {
 public:
  virtual ~Commands() = default;
  /// The one that holds no thread: `answer` comes from the engine's thread, after the commit.
  virtual void submit(run::Run planned, engine::Answer<engine::Submitted> answer) = 0;
  /// As engine::Engine::replay().
  [[nodiscard]] virtual Result<std::optional<engine::Submitted>> replay(std::string owner, std::string key,
                                                                        std::string digest) = 0;
  /// `owner`: only a run of this owner counts as found; empty for any.
  [[nodiscard]] virtual Result<engine::StepAdded> add_step(std::string run_id, std::string owner,
                                                           std::string step_id, std::string digest,
                                                           engine::Engine::Bind bind) = 0;
  [[nodiscard]] virtual Result<void> finish(std::string run_id, std::string owner, run::RunStatus status,
                                            std::string result, std::string reason, std::string digest) = 0;
  [[nodiscard]] virtual Result<void> cancel(std::string run_id, std::string owner, std::string who,
                                            std::string reason) = 0;
  [[nodiscard]] virtual Result<void> resolve(std::string write_id, engine::Engine::Verdict verdict) = 0;
  [[nodiscard]] virtual Result<Breaker> force_breaker(std::string server, std::string tool, bool open,
                                                      std::string who, std::string why,
                                                      std::optional<Duration> span) = 0;
  [[nodiscard]] virtual bool ready() const = 0;
  /// As engine::Engine::storage_ok().
  [[nodiscard]] virtual bool storage_ok() const = 0;
  /// A consistent copy of the ledger at an absolute path that does not exist yet.
  [[nodiscard]] virtual Result<void> backup(const std::string& path) = 0;
  /// An operator's action into the audit log, durable on success.
  [[nodiscard]] virtual Result<void> note(std::string who, std::string action, std::string subject,
                                          std::string why) = 0;
};

/// Borrowed parts; all outlive the servers that hold handlers.
struct Service {
  const Clock& clock;
  Commands& commands;
  ledger::Reader& reader;
  const KnownRuns& known;
  LargeAnswers& large;
  const tools::Catalog& catalog;
  MetricsRegistry& metrics;
  const engine::Latencies& latencies;

  [[nodiscard]] run::PlanContext plan_context() const;
};

}  // namespace holdfast::api
