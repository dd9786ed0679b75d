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

-- Why an attempt failed, in one word of a closed set; empty: it did not, or it did before there were words. The index by
-- which failures are grouped has those that failed.
ALTER TABLE {{.}}attempts ADD COLUMN error_kind TEXT NOT NULL DEFAULT '';
CREATE INDEX {{.}}attempts_failed ON {{.}}attempts (destination, error_kind, status, started_at) WHERE error_kind <> '';
