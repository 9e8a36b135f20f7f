-- The ledger's schema, version 4, as the files in migrations/ produce it. Generated: HOLDFAST_WRITE_SCHEMA=1 unit_ledger "[schema]"

CREATE TABLE attempts (
  run_seq          INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  step             INTEGER NOT NULL,
  n                INTEGER NOT NULL,     -- 1, 2, … within the step
  begun_after      INTEGER NOT NULL,     -- the run's newest event when the row was made: order across steps, free of clocks
  kind             TEXT NOT NULL,
  counted          INTEGER NOT NULL,
  started_at       INTEGER NOT NULL,
  deadline         INTEGER NOT NULL,     -- milliseconds allowed
  clipped          INTEGER NOT NULL,     -- the run's deadline cut the call's
  finished_at      INTEGER,
  delivery         TEXT NOT NULL,
  phase            TEXT NOT NULL,
  verdict          TEXT NOT NULL,
  class            TEXT NOT NULL,
  rule             TEXT NOT NULL,        -- row of the failure table that judged it
  late             INTEGER NOT NULL,
  late_detail      TEXT NOT NULL,
  http_status      INTEGER NOT NULL,
  rpc_code         INTEGER,
  detail           TEXT NOT NULL,
  bytes_sent       INTEGER NOT NULL,
  bytes_received   INTEGER NOT NULL,
  PRIMARY KEY (run_seq, step, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  seq              INTEGER PRIMARY KEY AUTOINCREMENT,
  at               INTEGER NOT NULL,
  who              TEXT NOT NULL,
  action           TEXT NOT NULL,
  subject          TEXT NOT NULL,
  why              TEXT NOT NULL,
  data             TEXT NOT NULL         -- JSON object
) STRICT;

CREATE TABLE breakers (
  server           TEXT NOT NULL,
  tool             TEXT NOT NULL,        -- '' for the server's own
  state            TEXT NOT NULL,
  forced_open      INTEGER NOT NULL,
  forced_by        TEXT NOT NULL,
  why              TEXT NOT NULL,
  generation       INTEGER NOT NULL,
  since            INTEGER NOT NULL,
  until            INTEGER,
  probe_until      INTEGER,
  consecutive      INTEGER NOT NULL,
  window_calls     INTEGER NOT NULL,
  window_failures  INTEGER NOT NULL,
  window_start     INTEGER NOT NULL,
  cooldown         INTEGER NOT NULL,     -- milliseconds
  last_cause       TEXT NOT NULL,
  PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE cached_answers (
  seq              INTEGER PRIMARY KEY,  -- order of arrival: the oldest goes first
  server           TEXT NOT NULL,
  tool             TEXT NOT NULL,
  arguments        TEXT NOT NULL,        -- SHA-256 of their canonical JSON, hex
  answered_at      INTEGER NOT NULL,
  bytes            INTEGER NOT NULL,     -- of `result`
  result           TEXT NOT NULL         -- JSON as received
) STRICT;

CREATE UNIQUE INDEX cached_answers_by_call ON cached_answers (server, tool, arguments);

CREATE TABLE events (
  run_seq          INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  seq              INTEGER NOT NULL,     -- 1, 2, … within the run, no gaps
  at               INTEGER NOT NULL,
  type             TEXT NOT NULL,
  step             TEXT NOT NULL,        -- step id, '' for the run
  data             TEXT NOT NULL,        -- JSON object
  PRIMARY KEY (run_seq, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal (
  slot             INTEGER PRIMARY KEY,
  chunk            BLOB NOT NULL         -- part of a record, always as long as before, so that it is overwritten where it lies
) STRICT;

CREATE TABLE journal_folded (
  one              INTEGER PRIMARY KEY CHECK (one = 1),
  record           INTEGER NOT NULL      -- records up to this number are in the tables
) STRICT;

CREATE TABLE latency_windows (
  server           TEXT NOT NULL,
  tool             TEXT NOT NULL,
  slot             INTEGER NOT NULL,     -- 0 to 7: the day modulo eight, so that a new day replaces the one eight days older
  start            INTEGER NOT NULL,     -- of the day
  samples          TEXT NOT NULL,        -- bucket:answers[:given up], ascending, parted by blanks
  sized_deadline   INTEGER,              -- milliseconds in force, for a tool whose deadline is sized
  sized_since      INTEGER,
  PRIMARY KEY (server, tool, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE packed_runs (
  run_seq          INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
  packed           BLOB NOT NULL         -- steps, writes, attempts and events of a run that has ended, instead of their rows
) STRICT;

CREATE TABLE rate_gates (
  server           TEXT NOT NULL PRIMARY KEY,
  until            INTEGER,
  hits             INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  seq              INTEGER PRIMARY KEY,  -- order of acceptance; children and cursors refer to it
  id               TEXT NOT NULL UNIQUE,
  owner            TEXT NOT NULL,        -- token name, '' without tokens
  submit_key       TEXT,                 -- Idempotency-Key of the submission, if any
  submit_digest    TEXT NOT NULL,
  name             TEXT NOT NULL,
  mode             TEXT NOT NULL,
  created_at       INTEGER NOT NULL,     -- instants are milliseconds since 1970, UTC
  retry_limit      INTEGER NOT NULL,
  labels           TEXT NOT NULL,        -- JSON object of strings
  result_template  TEXT NOT NULL,        -- JSON, '' for none
  status           TEXT NOT NULL,
  reason           TEXT NOT NULL,        -- '' for none
  detail           TEXT NOT NULL,
  wait_for         TEXT NOT NULL,
  wait_until       INTEGER,
  started_at       INTEGER,
  finished_at      INTEGER,
  deadline         INTEGER NOT NULL,
  retry_spent      INTEGER NOT NULL,
  warnings         TEXT NOT NULL,        -- JSON array of strings
  result           TEXT NOT NULL,        -- JSON, '' for none
  cancel_requested INTEGER NOT NULL,
  cancel_reason    TEXT NOT NULL,
  finish_digest    TEXT NOT NULL,
  last_event       INTEGER NOT NULL,     -- seq of the newest event when this row was written; of an open run the rows of events tell
  settled          INTEGER NOT NULL      -- 1 when the run will never change again
) STRICT;

CREATE UNIQUE INDEX runs_by_submit_key ON runs (owner, submit_key) WHERE submit_key IS NOT NULL;

CREATE INDEX runs_ended_badly ON runs (status) WHERE status IN ('failed', 'cancelled');

CREATE INDEX runs_unsettled ON runs (settled) WHERE settled = 0;

CREATE TABLE steps (
  run_seq          INTEGER NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
  step             INTEGER NOT NULL,     -- index in the run
  id               TEXT NOT NULL,
  server           TEXT NOT NULL,
  tool             TEXT NOT NULL,
  named_target     TEXT NOT NULL,        -- as submitted, '' when none was named
  args             TEXT NOT NULL,        -- JSON object, references unresolved
  after_steps      TEXT NOT NULL,        -- indices joined by commas
  deadline         INTEGER,              -- per call, milliseconds
  named_attempts   INTEGER,              -- max_attempts as submitted
  on_failure       TEXT NOT NULL,
  on_circuit_open  TEXT NOT NULL,
  named_key        TEXT NOT NULL,        -- replaces the derived key, '' for none
  digest           TEXT NOT NULL,        -- open runs: of the step as posted
  effect           TEXT NOT NULL,
  target           TEXT NOT NULL,        -- effective
  max_attempts     INTEGER NOT NULL,
  status           TEXT NOT NULL,
  reason           TEXT NOT NULL,
  detail           TEXT NOT NULL,
  advice           TEXT NOT NULL,
  attempts         INTEGER NOT NULL,     -- counted sends
  attempt_rows     INTEGER NOT NULL,     -- rows of every kind
  wait_for         TEXT NOT NULL,
  wait_until       INTEGER,
  result           TEXT NOT NULL,        -- JSON as received, '' for none
  degraded         INTEGER NOT NULL,
  doubt            TEXT NOT NULL,        -- first ambiguous outcome that nothing has settled
  doubt_detail     TEXT NOT NULL,
  hinted_wait_used INTEGER NOT NULL,
  session_repaired INTEGER NOT NULL,
  ordered          INTEGER NOT NULL,
  once_rows        TEXT NOT NULL,
  checks           INTEGER NOT NULL,
  next_check       INTEGER,
  crashes          INTEGER NOT NULL,
  PRIMARY KEY (run_seq, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE writes (
  run_seq          INTEGER NOT NULL,
  step             INTEGER NOT NULL,
  key              TEXT NOT NULL,
  state            TEXT NOT NULL,
  request_head     TEXT NOT NULL,        -- frozen before the first attempt, sent unchanged on every later one
  request_body     TEXT NOT NULL,
  keyed            INTEGER NOT NULL,     -- 1: the key goes with the frozen request
  first_sent_at    INTEGER,
  last_sent_at     INTEGER,
  unknown_since    INTEGER,
  resolution       TEXT NOT NULL,
  resolution_note  TEXT NOT NULL,
  resolved_by      TEXT NOT NULL,
  resolved_at      INTEGER,
  open             INTEGER NOT NULL,     -- 1 while an unknown waits for a verdict
  PRIMARY KEY (run_seq, step),
  FOREIGN KEY (run_seq, step) REFERENCES steps (run_seq, step) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX writes_once_unknown ON writes (unknown_since) WHERE unknown_since IS NOT NULL;

CREATE INDEX writes_open ON writes (unknown_since) WHERE open = 1;
