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
