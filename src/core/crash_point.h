#pragma once
// Named places at which a test may let the process die. Inert unless one is armed: then a place costs one comparison.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast {

enum class CrashPoint : std::uint8_t {
  none,
  migrating,          // a migration's statements are done, its COMMIT is not
  loaded,             // start: what was open is loaded and decided, nothing is stored yet
  before_commit,      // a turn is decided, nothing is stored
  in_commit,          // the rows are written, the COMMIT is not
  committed,          // durable, nothing has left
  submit_committed,   // an accepted run is durable, its submitter has no answer
  command_committed,  // a cancel, verdict or step is durable, its sender has no answer
  answered,           // submitters are answered, no call has left
  settled,            // a run's end is durable, who waits for it is not told
  folding,            // the journal's rows are written to their tables, the COMMIT is not
  folded,             // it is, nothing of it is synced
  checkpoint_begun,   // before the WAL is moved into the database
  checkpoint_done,    // after it
  connected,          // connected to the tool, no byte has left
  half_head,          // half the head of a request has left
  request_sent,       // all of a request has left
  frame_sent,         // all of a request has been written to a stdio server
  answer_read,        // a tool's answer is read, the engine has not got it
  before_absorb,      // the engine has it, the run is unchanged
  backup_copied,      // a backup's pages are copied, it has no name yet
  draining,           // asked to stop, calls are still out
  drained,            // nothing is out any more, the process still lives
};

/// The one armed place. Written by arm_crash_point() before other threads start, and never again.
inline CrashPoint armed_crash_point = CrashPoint::none;

/// Arms `point:n`: the process dies (SIGKILL) when it passes that place for the n-th time. Error `bad_crash_point` names the known places.
[[nodiscard]] Result<void> arm_crash_point(std::string_view point_and_count);
[[nodiscard]] std::vector<std::string> crash_point_names();

/// Counts one passing of the armed place; true when this is the one to die at. Thread-safe.
[[nodiscard]] bool crash_is_due();
[[noreturn]] void crash_now();

inline void crash_point(CrashPoint here) {
  if (armed_crash_point == here) [[unlikely]]
    if (crash_is_due()) crash_now();
}

}  // namespace holdfast
