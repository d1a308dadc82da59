-- Comparisons and benchmarks in one table, and with them what automatic depth found out in replies. The whole result is
-- JSON; the columns are what is searched and listed by. An empty drafter is the target's own head.
CREATE TABLE measurements (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  kind        TEXT    NOT NULL CHECK (kind IN ('comparison', 'benchmark', 'reply')),
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

INSERT INTO measurements (kind, created_at, machine, target, drafter, model, app_version, mlx_version, identical, speedup, result)
SELECT kind, created_at, machine, target, drafter, model, app_version, mlx_version, identical, speedup, result FROM (
  SELECT 'comparison' AS kind, * FROM comparisons UNION ALL SELECT 'benchmark', * FROM benches
) ORDER BY created_at, id;

DROP TABLE comparisons;
DROP TABLE benches;

CREATE INDEX measurements_by_pair ON measurements (machine, kind, target, drafter, id);
