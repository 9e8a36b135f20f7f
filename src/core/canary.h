#pragma once
// Deliberate bugs, to see that the proofs can fail: scripts/prove canaries. Each stands, in one line, at the very place where such a mistake
// would be made. In every build but one with -DHOLDFAST_CANARIES=ON canary() is a constant `false`, and nothing of them is compiled.
#include <cstdint>
#ifdef HOLDFAST_CANARIES
#include <cstdio>
#include <cstdlib>
#include <string_view>
#endif

/// Every canary with what it does wrong.
#define HOLDFAST_EACH_CANARY(X)                                                                              \
  X(send_before_commit, "calls leave before their rows are committed")                                       \
  X(acknowledge_before_commit, "a submission is answered before its run is committed")                       \
  X(no_attempt_row, "a call leaves whose row nobody stores")                                                 \
  X(call_sent_twice, "a call is handed to the transport twice")                                              \
  X(skip_fsync, "commits are not synced (synchronous = OFF)")                                                \
  X(log_not_written_again, "a start builds on what a failed sync has lost and the page cache still shows")   \
  X(half_a_commit, "attempts and events are committed after the states they belong to")                      \
  X(new_runs_committed_apart, "each new run is committed before the rest of its batch")                      \
  X(forget_doubt, "a later refusal erases the doubt that an earlier attempt left")                           \
  X(repeat_plain_write, "a plain write is repeated like a read")                                             \
  X(retry_unknown, "a restart sends writes again whose outcome waits for a verdict")                         \
  X(verdict_not_awaited, "a write whose outcome waits for a verdict is sent again at once")                  \
  X(unknown_abandoned_on_restart, "a restart abandons writes whose outcome waits for a verdict")             \
  X(abandoned_write_left_open, "an abandoned write still waits for a verdict")                               \
  X(doubt_taken_for_landed, "an outcome that nobody knows is taken for done")                                \
  X(refusal_taken_for_doubt, "a call that never left or was refused leaves doubt")                           \
  X(doubt_not_recorded, "the row of an attempt does not say that its outcome is in doubt")                   \
  X(server_error_is_refusal, "a doubtful HTTP status is taken for a refusal")                                \
  X(absent_at_once, "a check that finds nothing is believed while the write may still arrive")               \
  X(failed_check_is_absence, "a check that could not be asked is taken for one that found nothing")          \
  X(attempts_reset_on_restart, "a restart forgets how many attempts a step has made")                        \
  X(one_attempt_too_many, "a step gets one attempt more than it may have")                                   \
  X(crash_not_absorbed, "an attempt that the end of the process cut off is forgotten")                       \
  X(new_key_per_attempt, "each attempt gets a key of its own")                                               \
  X(key_not_sent, "a keyed write leaves without its key")                                                    \
  X(body_rendered_again, "each attempt renders the request anew")                                            \
  X(key_used_after_retention, "a key is used after its tool may have forgotten it")                          \
  X(budget_debited_after_the_send, "the retry budget is debited when the answer comes, not with the send")   \
  X(call_outlives_its_deadline, "a call gets a second more than its tool allows")                            \
  X(call_outlives_run, "a call may take its tool's whole deadline, whatever is left of the run's")           \
  X(deadline_restarted_on_recovery, "a restart gives every run its whole deadline again")                    \
  X(retry_after_ignored, "a time that a 429 names is not waited for")                                        \
  X(rate_gate_forgotten_on_restart, "a restart forgets that a server asked everybody to wait")               \
  X(open_circuit_passes, "an open circuit lets calls through")                                               \
  X(second_probe, "a half-open circuit lets everybody through")                                              \
  X(probe_leaked_on_cancel, "a cancelled probe keeps its circuit's place until its lease ends")              \
  X(slots_not_counted, "a server gets more calls at once than it may")                                       \
  X(slot_leaked_on_cancel, "a cancelled call keeps its server's slot")                                       \
  X(late_answer_to_another_call, "a late answer is given to another call than its own")                      \
  X(late_answer_rewrites_its_attempt, "a late answer changes what its attempt was judged to be")             \
  X(unsettled_run_lost_on_load, "a restart does not load runs that wait")                                    \
  X(dependencies_ignored, "a step does not wait for those before it")                                        \
  X(cancel_ignored, "a cancelled run goes on")                                                               \
  X(cancel_not_stored, "a cancel is answered and not stored")                                                \
  X(cancel_forgotten_on_restart, "a restart forgets a cancel")                                               \
  X(cancel_undoes_steps, "a cancel changes steps that have ended")                                           \
  X(failed_plan_succeeds, "a plan whose step failed is reported as succeeded")                               \
  X(settled_overwritten, "a cancel changes a run that has ended")                                            \
  X(submit_key_not_looked_up, "a repeated submission is not recognised")                                     \
  X(replay_not_told, "a repeated submission is answered as a new one")                                       \
  X(replay_names_another_run, "a repeated submission is answered with another run")                          \
  X(arguments_lost, "a run is stored without its arguments")                                                 \
  X(settled_run_not_found, "a run that has settled is not found")                                            \
  X(other_body_accepted, "a submit key with another body is accepted as a repeat")                           \
  X(other_step_accepted, "a step id with another body is accepted as a repeat")                              \
  X(step_repeat_not_told, "a repeated step is answered as a new one")                                        \
  X(added_step_lost_on_restart, "a restart forgets the newest step of an open run")                          \
  X(refused_run_stored, "a run that was refused for want of storage is stored once there is room")           \
  X(event_numbers_go_back, "a restart numbers a run's events from the last that its own row names")          \
  X(event_number_skipped, "the number of an event is left out")                                              \
  X(event_tells_otherwise, "an event tells of a failed step that it succeeded")                              \
  X(journal_emptied_before_fold, "the journal is empty before its rows are in their tables")                 \
  X(replay_skipped, "a start does not look into the journal")                                                 \
  X(reader_before_fold, "a reader does not wait until what was committed is in the tables")                  \
  X(secret_stored, "the configuration's headers are frozen with a request")                                  \
  X(drain_dispatches, "a server that is stopping goes on starting calls")                                    \
  X(drained_too_early, "a server stops while writes are out that have time left")                            \
  X(pruned_too_early, "settled runs are deleted before their retention is over")                             \
  X(pruned_with_its_key, "a run is deleted whose key its tool still knows")                                  \
  X(pruned_in_part, "of a deleted run the rows that belong to it stay")                                      \
  X(deleted_run_stays, "a run that is said to be deleted is there")                                          \
  X(backup_trusted, "a restored backup goes on as if nothing had happened since")                            \
  X(removed_tool_still_called, "a tool that the configuration has lost is still called")                     \
  X(tool_taken_for_gone, "a tool that is configured is taken for one that is not")                           \
  X(sized_below_its_floor, "a sized deadline falls below its floor")                                         \
  X(kept_answer_too_old, "a kept answer stands in whatever its age")                                         \
  X(kept_answer_of_other_arguments, "a kept answer to other arguments stands in")

namespace holdfast {

enum class Canary : std::uint8_t {
  none,
#define HOLDFAST_NAME(name, what) name,
  HOLDFAST_EACH_CANARY(HOLDFAST_NAME)
#undef HOLDFAST_NAME
};

#ifdef HOLDFAST_CANARIES

/// The one named by the environment's HOLDFAST_CANARY, read once; none where it is unset or empty. Ends the process at an unknown name.
inline const Canary kCanary = [] {
  const char* text = std::getenv("HOLDFAST_CANARY");
  const std::string_view chosen = text != nullptr ? text : "";
  if (chosen.empty()) return Canary::none;
#define HOLDFAST_NAME(name, what) \
  if (chosen == #name) return Canary::name;
  HOLDFAST_EACH_CANARY(HOLDFAST_NAME)
#undef HOLDFAST_NAME
  std::fprintf(stderr, "HOLDFAST_CANARY: there is no canary \"%s\"\n", text);
  std::exit(2);
}();
inline constexpr bool kHasCanaries = true;
[[nodiscard]] inline bool canary(Canary bug) {
  return kCanary == bug;
}

#else

inline constexpr bool kHasCanaries = false;
[[nodiscard]] constexpr bool canary(Canary) {
  return false;
}

#endif

}  // namespace holdfast
