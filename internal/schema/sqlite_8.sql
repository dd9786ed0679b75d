-- An attempt that reached the outside: only a request with the digest of the row may go on.
ALTER TABLE {{.}}claims ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;

-- How often a lease ran out before there was an outcome, since the last outcome.
ALTER TABLE {{.}}effects ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
