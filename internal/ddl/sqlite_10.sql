-- What the first attempt follows: 0 the event's first copy, 1 a later copy that made failed or dead work begin again, 2 a replay.
ALTER TABLE {{.}}deliveries ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;

-- How often what happened, by the minute. Who writes adds to the hour as well, in the same transaction.
CREATE TABLE {{.}}tallies (
    minute      INTEGER NOT NULL,                             -- microseconds since 1970
    source      TEXT NOT NULL,                                -- empty: what is counted belongs to none
    destination TEXT NOT NULL,
    what        TEXT NOT NULL,                                -- one of a closed set of words
    n           INTEGER NOT NULL,
    PRIMARY KEY (minute, source, destination, what)
) WITHOUT ROWID;

CREATE TABLE {{.}}tally_hours (
    hour        INTEGER NOT NULL,                             -- microseconds since 1970
    source      TEXT NOT NULL,
    destination TEXT NOT NULL,
    what        TEXT NOT NULL,
    n           INTEGER NOT NULL,
    PRIMARY KEY (hour, source, destination, what)
) WITHOUT ROWID;

-- Which batch of each process was added last: one whose outcome the process did not hear of is sent again, and added once.
CREATE TABLE {{.}}tally_writers (
    process TEXT PRIMARY KEY,                                 -- drawn at every start
    seq     INTEGER NOT NULL,
    minute  INTEGER NOT NULL                                  -- the youngest in that batch, microseconds since 1970
) WITHOUT ROWID;

-- Why the last attempt failed, in one word of a closed set, and the status of its answer, or 0. Of what failed before
-- there were words nothing more is known.
ALTER TABLE {{.}}deliveries ADD COLUMN error_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE {{.}}deliveries ADD COLUMN status INTEGER NOT NULL DEFAULT 0;
UPDATE {{.}}deliveries SET error_kind = 'other' WHERE state IN ('failed', 'dead');
ALTER TABLE {{.}}attempts ADD COLUMN error_kind TEXT NOT NULL DEFAULT '';

-- By which failures are grouped. What succeeds is in none of them.
CREATE INDEX {{.}}deliveries_failed ON {{.}}deliveries (destination, error_kind, status, event_id, state) WHERE state IN ('failed', 'dead');
CREATE INDEX {{.}}attempts_failed ON {{.}}attempts (destination, error_kind, status, started_at) WHERE error_kind <> '';
