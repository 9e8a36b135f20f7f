#pragma once
#include <array>

#include "holdfast/engine/engine.h"
#include "http/server.h"

namespace holdfast::api {

/// Tells both listeners that a run has changed: the topic of a parked request is its run's id. attach()
/// before the engine starts.
class Hub final : public engine::Observer {
 public:
  void attach(http::Server& client, http::Server& admin) { servers_ = {&client, &admin}; }
  void run_changed(std::string_view run_id) override {
    for (http::Server* server : servers_) {
      if (server) server->wake(run_id);
    }
  }

 private:
  std::array<http::Server*, 2> servers_{};
};

}  // namespace holdfast::api
