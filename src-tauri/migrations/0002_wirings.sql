-- How a reply's drafter was wired, where there is a choice.
ALTER TABLE runs ADD COLUMN wiring TEXT;

-- How often the drafts of each wiring were right, for each pair of folders; an empty drafter is the target's own head.
CREATE TABLE wirings (
  target   TEXT    NOT NULL,
  drafter  TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  rounds   INTEGER NOT NULL,
  drafted  INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  PRIMARY KEY (target, drafter, name)
) STRICT;
