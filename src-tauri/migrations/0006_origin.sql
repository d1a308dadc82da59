-- JSON of how a reply came, in place of `rounds`, which is still read: for each round its drafts, accepted drafts, what each
-- token showed of answer and thinking block in UTF-16 units, and the rejected draft; rounds without drafts are one entry.
-- Then its pace: rounds, tokens and milliseconds of each stretch.
ALTER TABLE messages ADD COLUMN origin TEXT;
