-- Times are Unix milliseconds. Ids are never used twice, so that a window showing a deleted chat cannot act on a new one.

CREATE TABLE chats (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  title      TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE messages (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  chat_id    INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
  role       TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
  content    TEXT    NOT NULL,
  reasoning  TEXT,
  status     TEXT    NOT NULL
             CHECK (status IN ('streaming', 'complete', 'length', 'stopped', 'failed', 'interrupted')),
  -- The process that generates it, while it does.
  owner      TEXT,
  -- JSON of the error, if it failed.
  error      TEXT,
  created_at INTEGER NOT NULL,
  CHECK ((status = 'streaming') = (owner IS NOT NULL))
) STRICT;

CREATE INDEX messages_by_chat ON messages (chat_id, id);
CREATE INDEX messages_streaming ON messages (owner) WHERE owner IS NOT NULL;

-- What the engine did for a reply.
CREATE TABLE runs (
  message_id             INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  model                  TEXT    NOT NULL,
  speculating            INTEGER NOT NULL,
  reason                 TEXT,
  block_size             INTEGER NOT NULL,
  prompt_tokens          INTEGER NOT NULL,
  tokens                 INTEGER NOT NULL,
  prefill_ms             REAL    NOT NULL,
  ttft_ms                REAL    NOT NULL,
  decode_ms              REAL    NOT NULL,
  tokens_per_second      REAL    NOT NULL,
  rounds                 INTEGER NOT NULL,
  drafted                INTEGER NOT NULL,
  accepted               INTEGER NOT NULL,
  acceptance_rate        REAL    NOT NULL,
  tokens_per_round       REAL    NOT NULL,
  -- JSON lists.
  acceptance_by_position TEXT    NOT NULL,
  accepted_per_round     TEXT    NOT NULL,
  seed                   INTEGER NOT NULL
) STRICT;

-- One JSON value a key.
CREATE TABLE settings (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
