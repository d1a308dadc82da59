-- A comparison that was made from a message holds its words: it goes with the chat.
ALTER TABLE measurements ADD COLUMN chat_id INTEGER REFERENCES chats (id) ON DELETE CASCADE;

UPDATE measurements
SET chat_id = (SELECT chat_id FROM messages WHERE messages.id = json_extract(measurements.result, '$.messageId'))
WHERE kind = 'comparison';

-- Those of messages that are gone already.
DELETE FROM measurements
WHERE kind = 'comparison' AND chat_id IS NULL AND json_extract(result, '$.messageId') IS NOT NULL;

CREATE INDEX measurements_by_chat ON measurements (chat_id) WHERE chat_id IS NOT NULL;
