-- Which of the source's secrets vouched for the event: a short keyed fingerprint of it. 0: none did, or it is not known.
ALTER TABLE {{.}}events ADD COLUMN vouched INTEGER NOT NULL DEFAULT 0;

-- True: no route wanted the event, so it never had a delivery. Null: one did, or it is not known.
ALTER TABLE {{.}}events ADD COLUMN unrouted INTEGER;

-- What was seen at sources with mode: observe. No row is a claim: nothing is decided by them.
CREATE TABLE {{.}}observations (
    id          INTEGER PRIMARY KEY,                          -- drawn by who writes, so that a row is there once
    source      TEXT NOT NULL,
    received_at INTEGER NOT NULL,                             -- microseconds since 1970
    kind        TEXT NOT NULL,                                -- event, notice, refused, handshake, unread, gap
    requests    INTEGER NOT NULL,                             -- how many the row stands for; 0: it is a further event of the one before
    key         TEXT,                                         -- null: it has none
    type        TEXT NOT NULL,
    digest      BLOB NOT NULL,                                -- of the content that is equal in every copy
    reason      TEXT NOT NULL,                                -- why the gateway would have refused it, or did not look at it
    status      INTEGER NOT NULL,                             -- of the application's answer; 0: there was none
    failure     TEXT NOT NULL,                                -- why there was none
    took        INTEGER NOT NULL,                             -- until the answer began, in microseconds
    unheard     INTEGER NOT NULL                              -- the sender had given up by then
);
CREATE INDEX {{.}}observations_age ON {{.}}observations (source, received_at);
