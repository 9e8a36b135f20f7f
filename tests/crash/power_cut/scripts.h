#pragma once
#include "power_cut/world.h"

namespace holdfast::sweep {

/// Steps of clients, tools and operators that together cause every kind of transaction. Each can be repeated: that is what clients do.
struct Script {
  std::string name;
  std::vector<std::function<void(World&)>> actions;
  bool from_nothing = false;  // no database yet: creation and migrations are part of it
  bool from_backup = false;
  std::uint64_t checkpoint_frames = 1024, restart_frames = 4096;
  std::optional<Duration> retention = std::nullopt;
  std::uint32_t from_version = 0;  // a ledger that a program of this schema has left; 0: of today's
};
[[nodiscard]] const std::vector<Script>& scripts();
/// One for each schema that today's program brings up to date.
[[nodiscard]] std::vector<Script> migrations();

}  // namespace holdfast::sweep
