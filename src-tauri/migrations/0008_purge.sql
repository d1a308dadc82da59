-- What is deleted leaves no words in the search index, also before its parts are merged.
INSERT INTO message_search (message_search, rank) VALUES ('secure-delete', 1);
