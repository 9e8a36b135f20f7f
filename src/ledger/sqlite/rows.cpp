#include "ledger/sqlite/rows.h"

#include <string_view>

namespace holdfast::ledger::sqlite {
namespace {

constexpr std::string_view kRunFixed =
    "id, owner, submit_key, submit_digest, name, mode, created_at, retry_limit, labels, result_template";
constexpr std::string_view kRunState =
    "status, reason, detail, wait_for, wait_until, started_at, finished_at, deadline, retry_spent, warnings, "
    "result, cancel_requested, "
    "cancel_reason, finish_digest, last_event";
constexpr std::string_view kStepFixed =
    "id, server, tool, named_target, args, after_steps, deadline, named_attempts, on_failure, "
    "on_circuit_open, named_key, digest";
constexpr std::string_view kStepState =
    "effect, target, max_attempts, status, reason, detail, advice, attempts, attempt_rows, wait_for, "
    "wait_until, result, degraded, doubt, "
    "doubt_detail, hinted_wait_used, session_repaired, ordered, once_rows, checks, next_check, crashes";
constexpr std::string_view kWriteState =
    "key, state, request_head, request_body, keyed, first_sent_at, last_sent_at, unknown_since, resolution, "
    "resolution_note, resolved_by, "
    "resolved_at, open";
constexpr std::string_view kAttemptState =
    "kind, counted, started_at, deadline, clipped, finished_at, delivery, phase, verdict, class, rule, late, "
    "late_detail, http_status, "
    "rpc_code, detail, bytes_sent, bytes_received";
constexpr std::string_view kBreakerState =
    "state, forced_open, forced_by, why, generation, since, until, probe_until, consecutive, window_calls, "
    "window_failures, window_start, "
    "cooldown, last_cause";

std::string joined(std::string_view a, std::string_view b, std::string_view c = {}) {
  std::string out(a);
  for (const std::string_view part : {b, c}) {
    if (!part.empty()) out.append(", ").append(part);
  }
  return out;
}

/// Calls `f` with each name of a comma-separated list.
template <class F>
void each_name(std::string_view names, F&& f) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    f(names.substr(0, comma));
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 2);
  }
}

std::string insert(std::string_view table, const std::string& columns) {
  std::string marks;
  each_name(columns, [&](std::string_view) { marks += marks.empty() ? "?" : ", ?"; });
  return "INSERT INTO " + std::string(table) + " (" + columns + ") VALUES (" + marks + ")";
}

std::string assignments(std::string_view columns, std::string_view source = {}) {
  std::string out;
  each_name(columns, [&](std::string_view name) {
    out.append(out.empty() ? "" : ", ").append(name).append(" = ");
    if (source.empty())
      out += '?';
    else
      out.append(source).append(name);
  });
  return out;
}

std::string upsert(std::string_view table, std::string_view key, std::string_view once,
                   std::string_view state) {
  return insert(table, joined(key, once.empty() ? state : once, once.empty() ? std::string_view() : state)) +
         " ON CONFLICT (" + std::string(key) + ") DO UPDATE SET " + assignments(state, "excluded.");
}

std::string select(const std::string& columns, std::string_view rest) {
  return "SELECT " + columns + " " + std::string(rest);
}

/// The list with one column read as the empty text, so that its overflow pages are never touched.
std::string without(std::string columns, std::string_view column) {
  const std::string name = std::string(" ").append(column).append(",");
  const std::size_t at = columns.find(name);
  return columns.replace(at, name.size(), " '',");
}

void add_writing(Sql& s) {
  s.insert_run = insert("runs", joined("seq", kRunFixed, joined(kRunState, "settled")));
  s.update_run = "UPDATE runs SET " + assignments(kRunState) + " WHERE seq = ?";
  // Apart, so that an update of a run that goes on leaves the index over `settled` alone.
  s.settle_run = "UPDATE runs SET " + assignments(kRunState) + ", settled = 1 WHERE seq = ?";
  s.insert_step = insert("steps", joined("run_seq, step", kStepFixed, kStepState));
  s.update_step = "UPDATE steps SET " + assignments(kStepState) + " WHERE run_seq = ? AND step = ?";
  s.put_write = upsert("writes", "run_seq, step", {}, kWriteState);
  s.put_attempt = upsert("attempts", "run_seq, step, n", "begun_after", kAttemptState);
  s.insert_event = insert("events", "run_seq, seq, at, type, step, data");
  s.put_breaker = upsert("breakers", "server, tool", {}, kBreakerState);
  s.put_gate = upsert("rate_gates", "server", {}, "until, hits");
  s.put_latency =
      upsert("latency_windows", "server, tool, slot", {}, "start, samples, sized_deadline, sized_since");
  s.forget_latencies = "DELETE FROM latency_windows WHERE start <= ?";
  s.insert_audit = insert("audit", "at, who, action, subject, why, data");
  // The row that is replaced goes first, so that the new one stands behind all others.
  s.put_answer = "INSERT OR REPLACE" +
                 insert("cached_answers", "server, tool, arguments, answered_at, bytes, result").substr(6);
  s.drop_answer = "DELETE FROM cached_answers WHERE seq = ?";
}

void add_runs(Sql& s) {
  const std::string columns = joined("seq", kRunFixed, kRunState);
  s.newest_run = "SELECT coalesce(max(seq), 0) FROM runs";
  s.run_seq = "SELECT seq FROM runs WHERE id = ?";
  s.submission = "SELECT id, submit_digest FROM runs WHERE owner = ? AND submit_key = ?";
  s.run_by_id = select(columns, "FROM runs WHERE id = ?");
  s.run_by_seq = select(columns, "FROM runs WHERE seq = ?");
  s.unsettled = select(columns, "FROM runs INDEXED BY runs_unsettled WHERE settled = 0 ORDER BY seq");
  const std::string listed = without(columns, "result");
  const std::string rest =
      " seq < ?1 AND (?2 IS NULL OR owner = ?2) AND (?3 IS NULL OR name = ?3) AND (?4 IS NULL OR status = "
      "?4) ORDER BY seq DESC";
  s.list_any = select(listed, "FROM runs WHERE" + rest);
  s.list_unsettled = select(listed, "FROM runs INDEXED BY runs_unsettled WHERE settled = 0 AND" + rest);
  s.list_ended_badly = select(
      listed,
      "FROM runs INDEXED BY runs_ended_badly WHERE status IN ('failed', 'cancelled') AND status = ?4 AND" +
          rest);
}

void add_steps(Sql& s) {
  const std::string steps = joined("step", kStepFixed, kStepState);
  s.steps = select(steps, "FROM steps WHERE run_seq = ? ORDER BY step");
  s.listed_steps =
      select(without(without(steps, "args"), "result"), "FROM steps WHERE run_seq = ? ORDER BY step");
  s.one_step = select(steps, "FROM steps WHERE run_seq = ? AND step = ?");
  const std::string writes = joined("step", kWriteState);
  s.writes = select(writes, "FROM writes WHERE run_seq = ? ORDER BY step");
  s.listed_writes = select(without(without(writes, "request_head"), "request_body"),
                           "FROM writes WHERE run_seq = ? ORDER BY step");
  s.one_write = select(writes, "FROM writes WHERE run_seq = ? AND step = ?");
}

void add_attempts(Sql& s) {
  const std::string columns = joined("step, n", kAttemptState);
  s.attempt = select(columns, "FROM attempts WHERE run_seq = ? AND step = ? AND n = ?");
  s.extent =
      "SELECT id, coalesce((SELECT max(step) + 1 FROM steps WHERE run_seq = runs.seq), 0),"
      " coalesce((SELECT max(seq) FROM events WHERE run_seq = runs.seq), 0) FROM runs WHERE seq = ?";
  s.newest_event = "SELECT max(seq) FROM events WHERE run_seq = ?";
  s.in_flight =
      select(columns, "FROM attempts WHERE run_seq = ? AND delivery = 'in_flight' ORDER BY step, n");
  s.attempts = select(
      columns, "FROM attempts WHERE run_seq = ? ORDER BY begun_after, started_at, step, n LIMIT ? OFFSET ?");
  s.attempts_of_step = select(columns, "FROM attempts WHERE run_seq = ? AND step = ? ORDER BY n LIMIT ?");
}

void add_other_reading(Sql& s) {
  s.events =
      "SELECT seq, at, type, step, data FROM events WHERE run_seq = ? AND seq > ? ORDER BY seq LIMIT ?";
  const std::string rest =
      " AND (unknown_since, run_seq, step) > (?1, ?2, ?3)"
      " AND ((?4 IS NULL AND ?5 IS NULL) OR EXISTS (SELECT 1 FROM steps AS s WHERE s.run_seq = "
      "writes.run_seq AND s.step = writes.step"
      " AND (?4 IS NULL OR s.server = ?4) AND (?5 IS NULL OR s.tool = ?5))) ORDER BY unknown_since, run_seq, "
      "step LIMIT ?6";
  s.open_unknowns = "SELECT run_seq, step FROM writes INDEXED BY writes_open WHERE open = 1" + rest;
  s.all_unknowns =
      "SELECT run_seq, step FROM writes INDEXED BY writes_once_unknown WHERE unknown_since IS NOT NULL" +
      rest;
  s.breakers = select(joined("server, tool", kBreakerState), "FROM breakers ORDER BY server, tool");
  s.gates = "SELECT server, until, hits FROM rate_gates ORDER BY server";
  s.latencies =
      "SELECT server, tool, slot, start, samples, sized_deadline, sized_since FROM latency_windows"
      " ORDER BY server, tool, start";
  s.audit =
      "SELECT seq, at, who, action, subject, why, data FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?";
}

void add_answers(Sql& s) {
  const std::string by_call = "FROM cached_answers WHERE server = ? AND tool = ? AND arguments = ?";
  s.answer = select("answered_at, result", by_call);
  s.answer_bytes = select("bytes", by_call);
  s.answers_kept = "SELECT count(*), coalesce(sum(bytes), 0) FROM cached_answers";
  s.oldest_answer = "SELECT seq, bytes FROM cached_answers ORDER BY seq LIMIT 1";
}

void add_pruning(Sql& s) {
  // Columns in front of `result` only: the rows that stay are read without their overflow pages.
  s.prune_rows =
      "SELECT seq, id, created_at, finished_at, status IN ('succeeded', 'failed', 'cancelled')"
      " AND NOT EXISTS (SELECT 1 FROM writes WHERE run_seq = runs.seq AND open = 1)"
      " FROM runs WHERE seq > ? ORDER BY seq LIMIT ?";
  s.prune_bytes =
      "SELECT length(CAST(result AS BLOB))"
      " + (SELECT coalesce(sum(length(CAST(args AS BLOB)) + length(CAST(result AS BLOB))), 0) FROM steps WHERE run_seq = seq)"
      " + (SELECT coalesce(sum(length(CAST(request_body AS BLOB))), 0) FROM writes WHERE run_seq = seq)"
      " + (SELECT coalesce(sum(length(packed)), 0) FROM packed_runs WHERE run_seq = seq)"
      " FROM runs WHERE seq = ?";
  s.prune_keys =
      "SELECT s.server, s.tool, w.last_sent_at FROM writes AS w JOIN steps AS s ON s.run_seq = w.run_seq AND s.step = w.step"
      " WHERE w.run_seq = ? AND w.keyed = 1 AND w.first_sent_at IS NOT NULL AND w.last_sent_at IS NOT NULL";
  s.prune_run = "DELETE FROM runs WHERE seq = ? AND settled = 1";
}

void add_packed(Sql& s) {
  s.insert_packed = "INSERT INTO packed_runs (run_seq, packed) VALUES (?, ?)";
  s.packed = "SELECT packed FROM packed_runs WHERE run_seq = ?";
  s.drop_packed = "DELETE FROM packed_runs WHERE run_seq = ?";
}

void add_journal(Sql& s) {
  s.journal = "SELECT slot, chunk FROM journal ORDER BY slot";
  s.put_chunk = "INSERT OR REPLACE INTO journal (slot, chunk) VALUES (?, ?)";
  s.folded = "SELECT record FROM journal_folded";
  s.put_folded = "UPDATE journal_folded SET record = ?";
}

Sql make_sql() {
  Sql s;
  add_writing(s);
  add_runs(s);
  add_steps(s);
  add_attempts(s);
  add_other_reading(s);
  add_answers(s);
  add_pruning(s);
  add_packed(s);
  add_journal(s);
  s.begin_read = "BEGIN";
  s.begin_write = "BEGIN IMMEDIATE";
  s.commit = "COMMIT";
  s.rollback = "ROLLBACK";
  return s;
}

}  // namespace

const Sql& sql() {
  static const Sql texts = make_sql();
  return texts;
}

}  // namespace holdfast::ledger::sqlite
