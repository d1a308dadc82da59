-- What loads measured of this machine, as JSON, by what it depends on: self-checks of checkpoints, costs of pairs.
CREATE TABLE measured (
  kind        TEXT    NOT NULL CHECK (kind IN ('self_check', 'costs')),
  key         TEXT    NOT NULL,
  value       TEXT    NOT NULL,
  measured_at INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT;

-- What speculation did, in one word and in one sentence; empty for replies of earlier versions.
ALTER TABLE runs ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN sentence TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN exactness TEXT NOT NULL DEFAULT 'exact';
ALTER TABLE runs ADD COLUMN exactness_sentence TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN plain_rounds INTEGER NOT NULL DEFAULT 0;
-- A JSON list beside accepted_per_round; empty where every round had block_size - 1 drafts.
ALTER TABLE runs ADD COLUMN drafted_per_round TEXT NOT NULL DEFAULT '[]';
