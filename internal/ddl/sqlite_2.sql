-- What an event is about, and how new that is.
ALTER TABLE {{.}}events ADD COLUMN resource TEXT;             -- null: none, or not known
ALTER TABLE {{.}}events ADD COLUMN rank INTEGER;              -- version or time in microseconds, inside the resource

-- resource not null: in the lane of this resource, and only taken through it.
ALTER TABLE {{.}}deliveries ADD COLUMN resource TEXT;
-- forced: it was done before and is delivered again on purpose.
ALTER TABLE {{.}}deliveries ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;

ALTER TABLE {{.}}attempts ADD COLUMN answer BLOB;             -- how the destination's answer begins

-- What is due is looked for by destination, so that the backlog of one is not in the way of the others.
DROP INDEX {{.}}deliveries_due;
CREATE INDEX {{.}}deliveries_due ON {{.}}deliveries (destination, due_at, event_id)
    WHERE due_at IS NOT NULL AND resource IS NULL;
CREATE INDEX {{.}}deliveries_lane ON {{.}}deliveries (destination, resource, event_id)
    WHERE resource IS NOT NULL AND state <> 'dead';

-- Lanes: deliveries that follow each other, one row while there are any.
CREATE TABLE {{.}}lanes (
    destination TEXT NOT NULL,
    resource    TEXT NOT NULL,
    due_at      INTEGER NOT NULL,                             -- when to look at it: never later than its next delivery is due
    event_id    INTEGER,                                      -- whose turn it is, while that is processing
    PRIMARY KEY (destination, resource)
) WITHOUT ROWID;
CREATE INDEX {{.}}lanes_due ON {{.}}lanes (destination, due_at);

-- The newest rank of each resource that was delivered, where destinations ask for it.
CREATE TABLE {{.}}newest (
    destination TEXT NOT NULL,
    resource    TEXT NOT NULL,
    rank        INTEGER NOT NULL,
    event_id    INTEGER NOT NULL,                             -- the event that had it; tells the age
    PRIMARY KEY (destination, resource)
) WITHOUT ROWID;
CREATE INDEX {{.}}newest_age ON {{.}}newest (event_id);

-- Twins: events that say the same under different keys. One row per event that has a logical key.
CREATE TABLE {{.}}twins (
    event_id INTEGER PRIMARY KEY,
    first    INTEGER NOT NULL,                                -- the event that owns the logical key; itself, or its earlier twin
    dropped  INTEGER NOT NULL DEFAULT 0,                      -- stored without deliveries: those of first stand for it
    source   TEXT,                                            -- of the owner only, as are
    logical  TEXT,                                            -- its logical key
    key      TEXT,                                            -- and its key
    UNIQUE (source, logical)
);
