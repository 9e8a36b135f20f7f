#pragma once
// Which member goes into which column: one list per table, used both to write and to read, beside the SQL
// made from the same order.
#include <string>

#include "ledger/sqlite/statement.h"

namespace holdfast::ledger::sqlite {

// `f` is called with the members in the order of the columns. "fixed" never changes after the insert, "state"
// does.

template <class R, class F>
void run_fixed(R& r, F&& f) {
  f(r.id, r.owner, OrNull{r.submit_key}, r.submit_digest, r.name, r.mode, r.created_at, r.retry_limit,
    r.labels, r.result_template);
}
template <class R, class F>
void run_state(R& r, F&& f) {
  f(r.status, r.reason, r.detail, r.wait.what, r.wait.until, r.started_at, r.finished_at, r.deadline,
    r.retry_spent, r.warnings, r.result, r.cancel_requested, r.cancel_reason, r.finish_digest, r.last_event);
}

template <class S, class F>
void step_fixed(S& s, F&& f) {
  f(s.spec.id, s.spec.server, s.spec.tool, s.spec.target, s.spec.args, s.spec.after, s.spec.deadline,
    s.spec.max_attempts, s.spec.on_failure, s.spec.on_circuit_open, s.spec.key, s.spec.digest);
}
template <class S, class F>
void step_state(S& s, F&& f) {
  f(s.effect, s.target, s.max_attempts, s.status, s.reason, s.detail, s.advice, s.attempts, s.rows,
    s.wait.what, s.wait.until, s.result, s.degraded, s.doubt, s.doubt_detail, s.hinted_wait_used,
    s.session_repaired, s.ordered, s.once_rows, s.checks, s.next_check, s.crashes);
}

template <class W, class F>
void write_state(W& w, F&& f) {
  f(w.key, w.state, w.request.head, w.request.body, w.keyed, w.first_sent_at, w.last_sent_at, w.unknown_since,
    w.resolution, w.resolution_note, w.resolved_by, w.resolved_at, w.open);
}

template <class A, class F>
void attempt_state(A& a, F&& f) {
  f(a.kind, a.counted, a.started_at, a.deadline, a.clipped, a.finished_at, a.delivery, a.phase, a.verdict,
    a.klass, a.row, a.late, a.late_detail, a.http_status, a.rpc_code, a.detail, a.bytes_sent,
    a.bytes_received);
}

template <class B, class F>
void breaker_state(B& b, F&& f) {
  f(b.state, b.forced_open, b.by, b.why, b.generation, b.since, b.until, b.probe_until, b.consecutive,
    b.window_calls, b.window_failures, b.window_start, b.cooldown, b.last_cause);
}

/// The texts of every statement, made once.
struct Sql {
  std::string extent;  // of a run: its id, how many steps it has, its newest event
  // Writing.
  std::string insert_run, update_run, settle_run;
  std::string insert_step, update_step;
  std::string put_write, put_attempt, insert_event, put_breaker, put_gate, put_latency,
      forget_latencies, insert_audit;
  std::string put_answer, drop_answer;
  // Reading. Columns come in the order of the lists above, after the key where there is one.
  std::string newest_run;                        // seq
  std::string run_seq;                           // by id
  std::string submission;                        // run id, digest; by owner, key
  std::string run_by_id, run_by_seq, unsettled;  // seq, fixed, state
  std::string list_any, list_unsettled,
      list_ended_badly;                       // the same without `result`; see reader.cpp for the parameters
  std::string steps, listed_steps, one_step;  // step, fixed, state; listed: without args and result
  std::string writes, listed_writes, one_write;  // step, state; listed: without the request
  std::string newest_event;
  std::string attempt, in_flight;                // step, n, state
  std::string attempts, attempts_of_step;        // the same, oldest first
  std::string events;                            // seq, at, type, step, data
  std::string open_unknowns, all_unknowns;       // run_seq, step, oldest first
  std::string breakers, gates, latencies, audit;
  std::string answer, answer_bytes;             // by server, tool, arguments: answered_at, result; bytes
  std::string answers_kept, oldest_answer;      // rows, bytes; seq, bytes
  // Pruning.
  std::string prune_rows;   // seq, id, created_at, finished_at, ended; after a seq
  std::string prune_bytes;  // of the long texts of a run
  std::string prune_keys;   // server, tool, last_sent_at of keyed writes that were sent
  std::string prune_run;    // its steps, writes, attempts and events go with it
  // Packed runs and the journal.
  std::string insert_packed;  // run_seq, packed
  std::string packed, drop_packed;
  std::string journal;             // slot, chunk
  std::string put_chunk;           // slot, chunk
  std::string folded, put_folded;  // number of the newest record in the tables
  std::string begin_read, begin_write, commit, rollback;
};
[[nodiscard]] const Sql& sql();

}  // namespace holdfast::ledger::sqlite
