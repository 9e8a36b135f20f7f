#pragma once
#include "api/service.h"

namespace holdfast::api {

/// Commands on a real engine.
class EngineCommands final : public Commands {
 public:
  EngineCommands(engine::Engine& engine, ledger::Ledger& ledger) : engine_(engine), ledger_(ledger) {}

  void submit(run::Run planned, engine::Answer<engine::Submitted> answer) override {
    engine_.submit(std::move(planned), std::move(answer));
  }
  [[nodiscard]] Result<std::optional<engine::Submitted>> replay(std::string owner, std::string key,
                                                                std::string digest) override;
  [[nodiscard]] Result<engine::StepAdded> add_step(std::string run_id, std::string owner, std::string step_id,
                                                   std::string digest, engine::Engine::Bind bind) override;
  [[nodiscard]] Result<void> finish(std::string run_id, std::string owner, run::RunStatus status,
                                    std::string result, std::string reason, std::string digest) override;
  [[nodiscard]] Result<void> cancel(std::string run_id, std::string owner, std::string who,
                                    std::string reason) override;
  [[nodiscard]] Result<void> resolve(std::string write_id, engine::Engine::Verdict verdict) override;
  [[nodiscard]] Result<Breaker> force_breaker(std::string server, std::string tool, bool open,
                                              std::string who, std::string why,
                                              std::optional<Duration> span) override;
  [[nodiscard]] bool ready() const override { return engine_.ready(); }
  [[nodiscard]] bool storage_ok() const override { return engine_.storage_ok(); }
  [[nodiscard]] Result<void> note(std::string who, std::string action, std::string subject, std::string why) override;
  [[nodiscard]] Result<void> backup(const std::string& path) override { return ledger_.backup(path); }

 private:
  engine::Engine& engine_;
  ledger::Ledger& ledger_;
};

}  // namespace holdfast::api
