-- What the library keeps beside its claims.

-- Responses to requests with an Idempotency-Key, one per finished claim. Purged with the claim.
CREATE TABLE {{.}}responses (
    source TEXT NOT NULL,
    key    TEXT NOT NULL,
    token  INTEGER NOT NULL,                                  -- of the attempt that gave it
    status INTEGER NOT NULL,
    header BLOB NOT NULL,                                     -- HTTP/1 field lines
    body   BLOB NOT NULL,
    PRIMARY KEY (source, key)
) WITHOUT ROWID;

-- Outbox: what is to be done after the commit that stored it.
CREATE TABLE {{.}}effects (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    source      TEXT NOT NULL,
    key         TEXT,                                         -- of the event that asked for it; null: it has none
    step        TEXT NOT NULL,                                -- tells the effects of one event apart
    name        TEXT NOT NULL,                                -- who carries it out
    payload     BLOB NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending',              -- pending, processing, failed, dead, done
    token       INTEGER NOT NULL DEFAULT 0,                   -- attempts begun so far, and the fence
    tries       INTEGER NOT NULL DEFAULT 0,                   -- attempts since it was enqueued or redriven
    due_at      INTEGER,                                      -- pending, failed: when to try; processing: when the lease ends; else null
    enqueued_at INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    last_error  TEXT NOT NULL DEFAULT '',
    UNIQUE (source, key, step)
);
CREATE INDEX {{.}}effects_due ON {{.}}effects (name, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX {{.}}effects_state ON {{.}}effects (state, updated_at);

-- The newest version of each resource that was applied.
CREATE TABLE {{.}}versions (
    resource   TEXT PRIMARY KEY,
    version    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Where each named state machine stands.
CREATE TABLE {{.}}states (
    entity     TEXT PRIMARY KEY,
    state      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
