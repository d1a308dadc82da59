-- What was measured: comparisons of one request with speculation off and on, and benchmarks of the prompt set. The whole
-- result is JSON; the columns are what is searched and listed by. An empty drafter is the target's own head.

CREATE TABLE comparisons (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at  INTEGER NOT NULL,
  machine     TEXT    NOT NULL,
  target      TEXT    NOT NULL,
  drafter     TEXT    NOT NULL,
  model       TEXT    NOT NULL,
  app_version TEXT    NOT NULL,
  mlx_version TEXT    NOT NULL,
  -- Whether all texts were the same; absent where that was not found out.
  identical   INTEGER,
  -- Only beyond the noise.
  speedup     REAL,
  result      TEXT    NOT NULL
) STRICT;

CREATE TABLE benches (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at  INTEGER NOT NULL,
  machine     TEXT    NOT NULL,
  target      TEXT    NOT NULL,
  drafter     TEXT    NOT NULL,
  model       TEXT    NOT NULL,
  app_version TEXT    NOT NULL,
  mlx_version TEXT    NOT NULL,
  identical   INTEGER,
  speedup     REAL,
  result      TEXT    NOT NULL
) STRICT;

CREATE INDEX benches_by_pair ON benches (machine, target, drafter, id);
