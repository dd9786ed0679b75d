-- Which of the source's secrets vouched for the event: a short keyed fingerprint of it. 0: none did, or it is not known.
ALTER TABLE {{.}}events ADD COLUMN vouched smallint NOT NULL DEFAULT 0;

-- True: no route wanted the event, so it never had a delivery. Null: one did, or it is not known.
ALTER TABLE {{.}}events ADD COLUMN unrouted boolean;

-- What was seen at sources with mode: observe. No row is a claim: nothing is decided by them.
CREATE TABLE {{.}}observations (
    id          bigint PRIMARY KEY,                           -- drawn by who writes, so that a row is there once
    source      text COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    kind        text COLLATE "C" NOT NULL,                    -- event, notice, refused, handshake, unread, gap
    requests    bigint NOT NULL,                              -- how many the row stands for; 0: it is a further event of the one before
    key         text COLLATE "C",                             -- null: it has none
    type        text COLLATE "C" NOT NULL,
    digest      bytea NOT NULL,                               -- of the content that is equal in every copy
    reason      text COLLATE "C" NOT NULL,                    -- why the gateway would have refused it, or did not look at it
    status      integer NOT NULL,                             -- of the application's answer; 0: there was none
    failure     text COLLATE "C" NOT NULL,                    -- why there was none
    took        bigint NOT NULL,                              -- until the answer began, in microseconds
    unheard     boolean NOT NULL                              -- the sender had given up by then
);
CREATE INDEX observations_age ON {{.}}observations (source, received_at);

-- What each gateway says of itself every few seconds, and how it finds its destinations. Nothing is decided by it, so it
-- is in no log of the server, and empty after a crash until they say it again.
CREATE {{.Unlogged}}TABLE {{.}}gateways (
    id           text COLLATE "C" PRIMARY KEY,                -- drawn at every start
    host         text NOT NULL,
    pid          integer NOT NULL,
    version      text NOT NULL,
    started_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,                        -- by its own clock
    destinations text NOT NULL                                -- as JSON
);
