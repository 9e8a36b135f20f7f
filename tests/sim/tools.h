#pragma once
// The tools of a simulated world: what they promise, what they keep, and how they are at the moment.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/tools/catalog.h"
#include "sim/world.h"

namespace holdfast::sim {

enum class Trait {
  read,
  check,            // a read that tells whether a write is there
  plain,            // every request acts
  keyed,            // acts once per key, for ever
  keyed_window,     // for a window
  forgetful,        // until it restarts, whatever it promised
  checkable,
  keyed_checkable,  // its key's window is short, and it can be asked
};

struct Tool {
  std::string server, name;
  Trait trait = Trait::plain;
  bool mcp = false;
  Duration lag{0};      // until an effect is seen by the check
  Duration retention{0};
  Duration settle{0};   // what its check's rule allows for
  bool cached = false;  // its last good answers may stand in
  bool removed_once = false;
  std::map<std::string, Instant> keys;  // known since
  std::uint64_t restarts = 0;

  [[nodiscard]] bool is_write() const { return trait != Trait::read && trait != Trait::check; }
  [[nodiscard]] bool is_keyed() const {
    return trait == Trait::keyed || trait == Trait::keyed_window || trait == Trait::forgetful ||
           trait == Trait::keyed_checkable;
  }
  [[nodiscard]] bool is_checkable() const {
    return trait == Trait::checkable || trait == Trait::keyed_checkable;
  }
};

/// What varies from seed to seed, beside the draws themselves: whole kinds of trouble are on or off.
struct Swarm {
  int clients = 2;
  int runs = 12;                // submissions of all clients
  int longest_plan = 4;
  Duration chaos{60'000};
  int outcome[16]{};            // weights by Outcome
  int sick = 0;                 // chance that a server falls sick, per thousand calls
  int crash = 0;                // chance of a doomed life, per thousand
  int storage_fault = 0;        // chance of a storage fault per life, per thousand
  int sync_fault = 0;           // chance that syncs fail from some moment of a life on, per thousand
  int wall_step = 0;            // per restart, per thousand
  int freeze = 0;               // per turn, per thousand
  int cancel = 0, resubmit = 0, open_runs = 0, wrong_word = 0, abandon = 0, force = 0;  // per thousand
  int lingering = 0;
  int latency_ms = 20;
  int batching_ms = 2;          // how long events may gather before a turn
  int commit_ms = 0;            // how long a commit keeps the next turn waiting: so much rides in one
  bool roomy = false;           // servers take many calls at once, where they count them at all
  int proof = 0;                // per ten thousand sends: are the rows there after a power cut now?
  std::size_t inbox = 1'000;
  std::uint64_t checkpoint_frames = 1'024;  // pages in the log beyond which they go into the database
  std::uint32_t journal_slots = 256, fold_slots = 96;
  Duration longest_deadline{60'000};
  // What its keepers do with a server.
  int drain = 0;         // chance per life that it is stopped gracefully, per thousand
  int reload = 0;        // chance of each of some moments that its configuration is exchanged, per thousand
  int wall_running = 0;  // the same for its wall clock being set
  int cached = 0, sized = 0;  // per thousand tools
  bool backup = false;
  std::optional<Duration> retention;
};

struct Town {  // all servers
  std::shared_ptr<const tools::Config> config;  // in force
  std::vector<std::shared_ptr<const tools::Config>> before;  // earlier ones, while what was decided under them may still have to leave
  std::vector<std::shared_ptr<const tools::Config>> all;  // the first is whole
  std::vector<std::unique_ptr<Tool>> tools;
  std::vector<Tool*> callable;  // what a plan may name

  [[nodiscard]] Tool* find(std::string_view server, std::string_view name) const;
  void exchange(std::shared_ptr<const tools::Config> next);
  /// Of a tool that is configured, or was when the call at hand was decided; nullptr when it was neither.
  [[nodiscard]] const ToolPolicy* rules(const std::string& server, const std::string& tool) const;
  /// The longest span of these configurations.
  [[nodiscard]] Duration longest(const std::string& server, const std::string& tool, Duration (*of)(const ToolPolicy&)) const;
  /// The largest number of slots of them; 0 is no limit.
  [[nodiscard]] std::uint32_t slots(const std::string& server) const;
};

[[nodiscard]] Swarm draw_swarm(std::uint64_t seed);
/// The first configuration with other rules here and there, and without some tools and checks.
[[nodiscard]] std::shared_ptr<const tools::Config> other_rules(Dice& dice, const Town& town, int number);
[[nodiscard]] Town build_town(std::uint64_t seed, const Swarm& swarm);

/// Appears in the configuration's headers and nowhere else.
inline constexpr std::string_view kSecret = "s3cret-of-the-simulation";

}  // namespace holdfast::sim
