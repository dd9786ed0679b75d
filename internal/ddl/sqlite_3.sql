-- When copies of an event came, and what they were. Of each kind the last row that there is room for
-- sums up what comes later.
CREATE TABLE {{.}}sightings (
    event_id INTEGER NOT NULL,
    kind     TEXT NOT NULL,                                   -- duplicate, conflict, redriven
    n        INTEGER NOT NULL,                                -- from 1
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    copies   INTEGER NOT NULL,
    PRIMARY KEY (event_id, kind, n)
) WITHOUT ROWID;
CREATE INDEX {{.}}sightings_rare ON {{.}}sightings (kind, event_id) WHERE kind <> 'duplicate';

-- Destinations that nothing is delivered to, by the decision of an operator.
CREATE TABLE {{.}}pauses (
    destination TEXT PRIMARY KEY,
    paused_at   INTEGER NOT NULL,
    paused_by   TEXT NOT NULL,
    reason      TEXT NOT NULL
) WITHOUT ROWID;

-- What operators did. A replay counts on while it goes on.
CREATE TABLE {{.}}audits (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    done_by  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    action   TEXT NOT NULL,                                   -- replay, pause, resume
    filter   TEXT NOT NULL,                                   -- of a replay, in JSON; else the destination
    affected INTEGER NOT NULL                                 -- deliveries that a replay made due
);
