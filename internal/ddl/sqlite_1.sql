-- Times are microseconds since 1970-01-01 UTC.

-- Claims: one row per key inside its source. The library owns this table.
CREATE TABLE {{.}}claims (
    source      TEXT NOT NULL,
    key         TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('processing', 'done', 'failed', 'dead')),
    token       INTEGER NOT NULL CHECK (token > 0),           -- number of the current attempt, and the fence
    lease_until INTEGER,                                      -- while processing: when it may be taken over; null: never
    event_type  TEXT NOT NULL DEFAULT '',
    digest      BLOB,                                         -- of the content; another digest under the same key is a conflict
    first_seen  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    last_error  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (source, key)
);
-- "Received but never completed" is a question people ask while they are paged.
CREATE INDEX {{.}}claims_open ON {{.}}claims (updated_at) WHERE state <> 'done';
-- For the purge, which walks from the oldest.
CREATE INDEX {{.}}claims_age ON {{.}}claims (updated_at) WHERE state = 'done';

-- The gateway's journal. Events are insert-only: what is still to be done lives in deliveries.
-- id is time-ordered: milliseconds since 2020-01-01 UTC << 22 | counter.
CREATE TABLE {{.}}events (
    id          INTEGER PRIMARY KEY,
    source      TEXT NOT NULL,
    key         TEXT,                                         -- null: unkeyed, never collapsed
    event_type  TEXT NOT NULL DEFAULT '',
    digest      BLOB,
    received_at INTEGER NOT NULL,
    UNIQUE (source, key)
);

-- Bodies are dropped sooner than ids.
CREATE TABLE {{.}}bodies (
    event_id INTEGER PRIMARY KEY,
    header   BLOB NOT NULL,                                   -- HTTP/1 field lines
    body     BLOB NOT NULL
);

-- Open work: one row per event and destination until the effect is done. No row: done.
CREATE TABLE {{.}}deliveries (
    event_id    INTEGER NOT NULL,
    destination TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'processing', 'failed', 'dead')),
    token       INTEGER NOT NULL,                             -- attempts begun so far, and the fence
    tries       INTEGER NOT NULL,                             -- attempts since it was accepted or last re-driven
    due_at      INTEGER,                                      -- pending, failed: when to try; processing: when the lease ends; dead: null
    last_error  TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (event_id, destination)
) WITHOUT ROWID;
CREATE INDEX {{.}}deliveries_due ON {{.}}deliveries (due_at) WHERE due_at IS NOT NULL;

-- What happened at each attempt.
CREATE TABLE {{.}}attempts (
    event_id    INTEGER NOT NULL,
    destination TEXT NOT NULL,
    token       INTEGER NOT NULL,
    outcome     TEXT NOT NULL,                                -- done, failed, dead
    status      INTEGER NOT NULL,                             -- HTTP status; 0: no answer
    error       TEXT NOT NULL DEFAULT '',
    started_at  INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    PRIMARY KEY (event_id, destination, token)
) WITHOUT ROWID;
