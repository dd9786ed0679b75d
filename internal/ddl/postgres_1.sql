-- Claims: one row per key inside its source. The library and the SQL API own this table.
-- It has no CHECK constraints: two of them cost a tenth of an insert, and a claim is inserted by every event.
CREATE TABLE {{.}}claims (
    source      text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    state       text COLLATE "C" NOT NULL,                    -- processing, done, failed, dead
    token       bigint NOT NULL,                              -- number of the current attempt, from 1, and the fence
    lease_until timestamptz,                                  -- while processing: when it may be taken over; null: never
    event_type  text NOT NULL DEFAULT '',
    digest      bytea,                                        -- of the content; another digest under the same key is a conflict
    first_seen  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    last_error  text NOT NULL DEFAULT '',
    PRIMARY KEY (source, key)
);
-- "Received but never completed" is a question people ask while they are paged.
CREATE INDEX claims_open ON {{.}}claims (updated_at) WHERE state <> 'done';
-- For the purge, which walks from the oldest; block ranges cost next to nothing on insert.
CREATE INDEX claims_age ON {{.}}claims {{.Using "brin"}}(updated_at);

-- The gateway's journal. Events are insert-only: what is still to be done lives in deliveries.
-- id is time-ordered: milliseconds since 2020-01-01 UTC << 22 | writer << 10 | counter.
CREATE TABLE {{.}}events (
    id          bigint PRIMARY KEY,
    source      text COLLATE "C" NOT NULL,
    key         text COLLATE "C",                             -- null: unkeyed, never collapsed
    event_type  text NOT NULL DEFAULT '',
    digest      bytea,
    received_at timestamptz NOT NULL,
    UNIQUE (source, key)
);

-- Bodies are dropped sooner than ids. The storage parameter keeps webhook-sized rows out of TOAST.
CREATE TABLE {{.}}bodies (
    event_id bigint PRIMARY KEY,
    header   bytea NOT NULL,                                  -- HTTP/1 field lines
    body     bytea NOT NULL
){{.With "toast_tuple_target = 8160"}};

-- Open work: one row per event and destination until the effect is done. No row: done.
CREATE TABLE {{.}}deliveries (
    event_id    bigint NOT NULL,
    destination text COLLATE "C" NOT NULL,
    state       text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'processing', 'failed', 'dead')),
    token       bigint NOT NULL,                              -- attempts begun so far, and the fence
    tries       integer NOT NULL,                             -- attempts since it was accepted or last re-driven
    due_at      timestamptz,                                  -- pending, failed: when to try; processing: when the lease ends; dead: null
    last_error  text NOT NULL DEFAULT '',
    PRIMARY KEY (event_id, destination)
);
CREATE INDEX deliveries_due ON {{.}}deliveries (due_at) WHERE due_at IS NOT NULL;

-- What happened at each attempt.
CREATE TABLE {{.}}attempts (
    event_id    bigint NOT NULL,
    destination text COLLATE "C" NOT NULL,
    token       bigint NOT NULL,
    outcome     text COLLATE "C" NOT NULL,                    -- done, failed, dead
    status      integer NOT NULL,                             -- HTTP status; 0: no answer
    error       text NOT NULL DEFAULT '',
    started_at  timestamptz NOT NULL,
    duration_us bigint NOT NULL,
    PRIMARY KEY (event_id, destination, token)
);

-- Numbers the processes that write to the journal, for the writer part of events.id.
CREATE SEQUENCE {{.}}writers MAXVALUE 4095 CYCLE;
