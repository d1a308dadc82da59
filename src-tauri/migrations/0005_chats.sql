-- Messages form a tree: what answers or follows a message has it as its parent, and messages with one parent are
-- versions of each other. A chat shows the way from its leaf up.
ALTER TABLE messages ADD COLUMN parent_id INTEGER REFERENCES messages (id);
-- The reply's ids up to now, u32 little-endian, while and where it may go on.
ALTER TABLE messages ADD COLUMN token_ids BLOB;
-- JSON: the model and the options it is made with.
ALTER TABLE messages ADD COLUMN made TEXT;
-- JSON: how many bytes of answer and thinking those ids had shown; without it, all of them.
ALTER TABLE messages ADD COLUMN shown TEXT;
-- JSON list: for each round that showed some of the answer, its length in UTF-16 units, tokens, drafts, accepted drafts.
ALTER TABLE messages ADD COLUMN rounds TEXT;

ALTER TABLE chats ADD COLUMN leaf_id INTEGER;
ALTER TABLE chats ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
-- JSON list.
ALTER TABLE chats ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE chats ADD COLUMN draft TEXT NOT NULL DEFAULT '';
-- JSON: system prompt and options of this chat alone.
ALTER TABLE chats ADD COLUMN config TEXT;
-- Deleted, but not gone yet.
ALTER TABLE chats ADD COLUMN deleted_at INTEGER;

UPDATE messages SET parent_id =
  (SELECT max(before.id) FROM messages before WHERE before.chat_id = messages.chat_id AND before.id < messages.id);
UPDATE chats SET leaf_id = (SELECT max(id) FROM messages WHERE chat_id = chats.id);

CREATE INDEX messages_by_parent ON messages (parent_id);

-- Any three letters in a row can be found, in every script. A reply that is being written is not indexed each time that it is saved.
CREATE VIRTUAL TABLE message_search USING fts5(content, content = 'messages', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO message_search (rowid, content) SELECT id, content FROM messages WHERE status <> 'streaming';

CREATE TRIGGER search_insert AFTER INSERT ON messages WHEN new.status <> 'streaming' BEGIN
  INSERT INTO message_search (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER search_delete AFTER DELETE ON messages WHEN old.status <> 'streaming' BEGIN
  INSERT INTO message_search (message_search, rowid, content) VALUES ('delete', old.id, old.content);
END;
CREATE TRIGGER search_update_old BEFORE UPDATE OF content, status ON messages WHEN old.status <> 'streaming' BEGIN
  INSERT INTO message_search (message_search, rowid, content) VALUES ('delete', old.id, old.content);
END;
CREATE TRIGGER search_update_new AFTER UPDATE OF content, status ON messages WHEN new.status <> 'streaming' BEGIN
  INSERT INTO message_search (rowid, content) VALUES (new.id, new.content);
END;
