-- What the library keeps beside its claims.

-- Responses to requests with an Idempotency-Key, one per finished claim. Purged with the claim.
CREATE TABLE {{.}}responses (
    source text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    token  bigint NOT NULL,                                   -- of the attempt that gave it
    status integer NOT NULL,
    header bytea NOT NULL,                                    -- HTTP/1 field lines
    body   bytea NOT NULL,
    PRIMARY KEY (source, key)
);

-- Outbox: what is to be done after the commit that stored it.
CREATE TABLE {{.}}effects (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source      text COLLATE "C" NOT NULL,
    key         text COLLATE "C",                             -- of the event that asked for it; null: it has none
    step        text COLLATE "C" NOT NULL,                    -- tells the effects of one event apart
    name        text COLLATE "C" NOT NULL,                    -- who carries it out
    payload     bytea NOT NULL,
    state       text COLLATE "C" NOT NULL DEFAULT 'pending',  -- pending, processing, failed, dead, done
    token       bigint NOT NULL DEFAULT 0,                    -- attempts begun so far, and the fence
    tries       integer NOT NULL DEFAULT 0,                   -- attempts since it was enqueued or redriven
    due_at      timestamptz,                                  -- pending, failed: when to try; processing: when the lease ends; else null
    enqueued_at timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    last_error  text NOT NULL DEFAULT '',
    UNIQUE (source, key, step)
);
CREATE INDEX effects_due ON {{.}}effects (name, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX effects_dead ON {{.}}effects (id) WHERE state = 'dead';
CREATE INDEX effects_age ON {{.}}effects {{.Using "brin"}}(updated_at);

-- The newest version of each resource that was applied.
CREATE TABLE {{.}}versions (
    resource   text COLLATE "C" PRIMARY KEY,
    version    bigint NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Where each named state machine stands.
CREATE TABLE {{.}}states (
    entity     text COLLATE "C" PRIMARY KEY,
    state      text COLLATE "C" NOT NULL,
    updated_at timestamptz NOT NULL
);
