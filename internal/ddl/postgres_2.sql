-- What an event is about, and how new that is.
ALTER TABLE {{.}}events
    ADD COLUMN resource text COLLATE "C",                     -- null: none, or not known
    ADD COLUMN rank     bigint;                               -- version or time in microseconds, inside the resource

ALTER TABLE {{.}}deliveries
    ADD COLUMN resource text COLLATE "C",                     -- not null: in the lane of this resource, and only taken through it
    ADD COLUMN forced   boolean NOT NULL DEFAULT false;       -- it was done before and is delivered again on purpose

ALTER TABLE {{.}}attempts ADD COLUMN answer bytea;            -- how the destination's answer begins

-- What is due is looked for by destination, so that the backlog of one is not in the way of the others.
DROP INDEX {{.}}deliveries_due;
CREATE INDEX deliveries_due ON {{.}}deliveries (destination, due_at, event_id)
    WHERE due_at IS NOT NULL AND resource IS NULL;
CREATE INDEX deliveries_lane ON {{.}}deliveries (destination, resource, event_id)
    WHERE resource IS NOT NULL AND state <> 'dead';

-- Lanes: deliveries that follow each other, one row while there are any. Whoever takes one of them, or
-- changes what is open, holds the lock of the row until the commit.
CREATE TABLE {{.}}lanes (
    destination text COLLATE "C" NOT NULL,
    resource    text COLLATE "C" NOT NULL,
    due_at      timestamptz NOT NULL,                         -- when to look at it: never later than its next delivery is due
    event_id    bigint,                                       -- whose turn it is, while that is processing
    PRIMARY KEY (destination, resource)
);
CREATE INDEX lanes_due ON {{.}}lanes (destination, due_at);

-- The newest rank of each resource that was delivered, where destinations ask for it.
CREATE TABLE {{.}}newest (
    destination text COLLATE "C" NOT NULL,
    resource    text COLLATE "C" NOT NULL,
    rank        bigint NOT NULL,
    event_id    bigint NOT NULL,                              -- the event that had it; tells the age
    PRIMARY KEY (destination, resource)
);
CREATE INDEX newest_age ON {{.}}newest (event_id);

-- Twins: events that say the same under different keys. One row per event that has a logical key.
CREATE TABLE {{.}}twins (
    event_id bigint PRIMARY KEY,
    first    bigint NOT NULL,                                 -- the event that owns the logical key; itself, or its earlier twin
    dropped  boolean NOT NULL DEFAULT false,                  -- stored without deliveries: those of first stand for it
    source   text COLLATE "C",                                -- of the owner only, as are
    logical  text COLLATE "C",                                -- its logical key
    key      text COLLATE "C",                                -- and its key
    UNIQUE (source, logical)
);
