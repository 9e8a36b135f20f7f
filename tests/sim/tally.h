#pragma once
// What a campaign has seen: goals reached, faults by kind, work done.
#include <array>
#include <cstdint>
#include <string_view>

namespace holdfast::sim {

#define HOLDFAST_SIM_GOALS(X)                                                          \
  X(crash_before_commit, "crash with a turn decided and nothing committed")            \
  X(crash_between_commit_and_send, "crash with attempts committed and not sent")       \
  X(crash_between_send_and_record, "crash after the effect, before its record")        \
  X(crash_at_load, "crash while starting")                                             \
  X(power_cut_in_commit, "power cut inside a commit")                                  \
  X(kill_in_commit, "process killed inside a commit")                                  \
  X(cut_commit_survived, "a commit cut by a crash found whole")                        \
  X(cut_commit_gone, "a commit cut by a crash found undone")                           \
  X(torn_tail, "torn or garbled bytes after a power cut, recovered from")              \
  X(sync_failed, "a failed fsync, and a start from what is on disk")                   \
  X(disk_full_and_back, "a full disk, and work again when there was room")             \
  X(write_failed_and_back, "a failed write, and the same batch stored later")          \
  X(doubt_then_refusal, "doubt, then a refusal of the repeat")                         \
  X(doubt_then_unsent, "doubt, then a repeat that never left")                         \
  X(late_answer_settles, "a late answer settles a write")                              \
  X(late_answer_after_end, "a late answer after the run was settled")                  \
  X(answer_twice, "the transport gives an answer twice")                               \
  X(cancel_after_effect, "cancel with the effect done and no answer yet")              \
  X(cancel_before_send, "cancel of a call that had not left")                          \
  X(probe_owner_killed, "crash with a probe out")                                      \
  X(probe_cancelled, "a cancel with a probe out")                                      \
  X(probe_closes, "a probe closes a circuit")                                          \
  X(circuit_opens, "a circuit opens")                                                  \
  X(forced_circuit, "an operator opens a circuit")                                     \
  X(gate_closes, "a 429 closes a server's gate")                                       \
  X(slot_wait, "a step waits for a slot")                                              \
  X(budget_across_restart, "retry budget exhausted, partly spent before a restart")    \
  X(attempts_across_restart, "attempts exhausted, partly spent before a restart")      \
  X(crash_loop, "a step ended by crashes alone")                                       \
  X(check_found, "a check finds the write")                                            \
  X(check_absent, "a check proves absence and the write is repeated")                  \
  X(keyed_replay, "a tool recognises a repeated key")                                  \
  X(key_expired, "a key too old to be used again")                                     \
  X(delivered_after_give_up, "a request reaches its tool after we gave up")            \
  X(tool_forgot, "a tool forgets its keys and acts twice")                             \
  X(operator_landed, "an operator says landed")                                        \
  X(operator_not_landed, "an operator says not landed, and it is sent again")          \
  X(operator_wrong, "an operator's wrong word leads to a second effect")               \
  X(operator_abandon, "an operator abandons")                                          \
  X(operator_second_word, "a second verdict is refused")                               \
  X(operator_deadline, "a verdict with a new deadline")                                \
  X(deadline_in_flight, "the run's deadline passes with a write out")                  \
  X(deadline_while_down, "a deadline passes while the process is down")                \
  X(frozen, "the process frozen past a call's deadline")                               \
  X(wall_back, "the wall clock stepped back over a restart")                           \
  X(wall_forward, "the wall clock stepped forward over a restart")                     \
  X(fallback, "a fallback answers")                                                    \
  X(landed_result_lost, "landed with its result lost")                                 \
  X(submit_replayed, "a submission repeated with the same key")                        \
  X(submit_after_crash, "a submission repeated because a crash took its answer")       \
  X(key_reused, "a submit key with another body is refused")                           \
  X(overloaded, "a full inbox refuses")                                                \
  X(storage_refused, "a submission refused by a disk that cannot be written")          \
  X(step_replayed, "a step of an open run repeated")                                   \
  X(step_reused, "a step id with another body is refused")                             \
  X(open_finished, "an open run finished")                                             \
  X(bad_reference, "a reference to a step without a result")                           \
  X(drained, "a graceful stop that everything was ready for")                          \
  X(drain_cut_short, "a graceful stop that ran out of its grace")                      \
  X(drain_gives_up_read, "a graceful stop gives up a read, which leaves again")        \
  X(reloaded, "the configuration exchanged under way")                                 \
  X(reload_with_calls_out, "the configuration exchanged with calls out")               \
  X(tool_gone, "a step whose tool the configuration has lost")                         \
  X(answered_without_tool, "a submission repeated whose tool is gone")                 \
  X(wall_while_running, "the wall clock set while the process runs")                   \
  X(pruned, "old runs deleted")                                                        \
  X(kept_for_key, "an old run kept because its key is still known")                    \
  X(kept_answer, "a kept answer stands in")                                            \
  X(rest_woken, "a run at rest, which is bytes, woken")                                \
  X(sized_deadline, "a deadline sized by what was measured")                           \
  X(backup_restored, "a copy from under way started, with open writes in it")          \
  X(unknown_at_end, "a run left unknown, with evidence")

enum class Goal : std::uint8_t {
#define X(name, text) name,
  HOLDFAST_SIM_GOALS(X)
#undef X
};
inline constexpr std::array kGoalTexts{
#define X(name, text) std::string_view(text),
    HOLDFAST_SIM_GOALS(X)
#undef X
};
inline constexpr std::array kGoalNames{
#define X(name, text) std::string_view(#name),
    HOLDFAST_SIM_GOALS(X)
#undef X
};

#define HOLDFAST_SIM_FAULTS(X)                                                                     \
  X(never_sent) X(cut_while_sending) X(lost_before_effect) X(lost_after_effect) X(truncated)       \
  X(malformed) X(refused) X(limited_with_time) X(limited_without_time) X(server_error) X(redirect) \
  X(tool_error) X(rpc_error) X(slow) X(late_answer) X(answer_twice) X(cancelled) X(timed_out)      \
  X(power_cut) X(kill) X(crash_between_steps) X(io_error) X(sync_error) X(short_read) X(disk_full) \
  X(write_applied) X(write_dropped) X(write_torn) X(write_garbled) X(freeze) X(wall_step) X(tool_restart)

enum class FaultKind : std::uint8_t {
#define X(name) name,
  HOLDFAST_SIM_FAULTS(X)
#undef X
};
inline constexpr std::array kFaultNames{
#define X(name) std::string_view(#name),
    HOLDFAST_SIM_FAULTS(X)
#undef X
};

struct Tally {
  std::array<std::uint64_t, kGoalNames.size()> goals{};
  std::array<std::uint64_t, kFaultNames.size()> faults{};
  std::uint64_t runs = 0, calls = 0, hits = 0, effects = 0, commits = 0, lives = 0, power_cut_proofs = 0;

  void reached(Goal goal) { ++goals[static_cast<std::size_t>(goal)]; }
  void fault(FaultKind kind, std::uint64_t count = 1) { faults[static_cast<std::size_t>(kind)] += count; }
  void add(const Tally& other) {
    for (std::size_t i = 0; i < goals.size(); ++i) goals[i] += other.goals[i];
    for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
    runs += other.runs;
    calls += other.calls;
    hits += other.hits;
    effects += other.effects;
    commits += other.commits;
    lives += other.lives;
    power_cut_proofs += other.power_cut_proofs;
  }
};

}  // namespace holdfast::sim
