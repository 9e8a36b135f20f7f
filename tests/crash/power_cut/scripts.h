#pragma once
#include "power_cut/world.h"

namespace holdfast::sweep {

/// Steps of clients, tools and operators that together cause every kind of transaction. Each can be repeated: that is what clients do.
struct Script {
  const char* name;
  std::vector<std::function<void(World&)>> actions;
  bool from_nothing = false;  // no database yet: creation and migrations are part of it
  bool from_backup = false;
  std::uint64_t checkpoint_frames = 1024, restart_frames = 4096;
  bool from_version_3 = false;  // the schema before the journal, with an open run in it
};
[[nodiscard]] const std::vector<Script>& scripts();

}  // namespace holdfast::sweep
