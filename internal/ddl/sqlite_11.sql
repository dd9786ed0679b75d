-- What the first attempt follows: 0 the event's first copy, 1 a later copy that made failed or dead work begin again, 2 a replay.
ALTER TABLE {{.}}deliveries ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;

-- Why the last attempt failed, in one word of a closed set, and the status of its answer, or 0. Of what failed before there
-- were words, or in a process that knows none, nothing more is known than that; of what did not fail the word means nothing.
ALTER TABLE {{.}}deliveries ADD COLUMN error_kind TEXT NOT NULL DEFAULT 'other';
ALTER TABLE {{.}}deliveries ADD COLUMN status INTEGER NOT NULL DEFAULT 0;

-- By which failures are grouped.
CREATE INDEX {{.}}deliveries_failed ON {{.}}deliveries (destination, error_kind, status, event_id, state) WHERE state IN ('failed', 'dead');
