#pragma once
#include <array>

#include "api/known_runs.h"
#include "api/large_answers.h"
#include "holdfast/engine/engine.h"
#include "http/server.h"

namespace holdfast::api {

/// Who waits for a run to come to rest is not woken by each of its steps.
[[nodiscard]] inline std::string rest_topic(std::string_view run_id) { return "rest " + std::string(run_id); }

/// Keeps what is known of runs, and tells both listeners that one has changed: the topic of a parked request is its run's id, or its
/// rest_topic(). attach() before the engine starts.
class Hub final : public engine::Observer {
 public:
  void attach(http::Server& client, http::Server& admin) { servers_ = {&client, &admin}; }
  void run_left(run::Run run) override {
    large_.forget(run.id);
    known_.settled(std::move(run));
  }
  void run_pruned(std::string_view run_id) override {
    large_.forget(run_id);
    known_.forget(run_id);
  }
  void run_changed(std::string_view run_id, bool rests) override {
    known_.changed(run_id, rests);
    for (http::Server* server : servers_) {
      if (!server) continue;
      server->wake(run_id);
      if (rests) server->wake(rest_topic(run_id));
    }
  }

  [[nodiscard]] const KnownRuns& known() const { return known_; }
  [[nodiscard]] LargeAnswers& large() { return large_; }

 private:
  KnownRuns known_;
  LargeAnswers large_;
  std::array<http::Server*, 2> servers_{};
};

}  // namespace holdfast::api
