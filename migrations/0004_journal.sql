CREATE TABLE journal (
  slot             INTEGER PRIMARY KEY,
  chunk            BLOB NOT NULL         -- part of a record, always as long as before, so that it is overwritten where it lies
) STRICT;

CREATE TABLE journal_folded (
  one              INTEGER PRIMARY KEY CHECK (one = 1),
  record           INTEGER NOT NULL      -- records up to this number are in the tables
) STRICT;

INSERT INTO journal_folded VALUES (1, 0);

CREATE TABLE packed_runs (
  run_seq          INTEGER PRIMARY KEY REFERENCES runs (seq) ON DELETE CASCADE,
  packed           BLOB NOT NULL         -- steps, writes, attempts and events of a run that has ended, instead of their rows
) STRICT;
