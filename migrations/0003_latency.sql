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
