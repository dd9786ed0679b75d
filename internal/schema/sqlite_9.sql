-- Which of the source's secrets vouched for the event: a short keyed fingerprint of it. 0: none did, or it is not known.
ALTER TABLE {{.}}events ADD COLUMN vouched INTEGER NOT NULL DEFAULT 0;
