-- What the library keeps beside its claims.

-- Responses to requests with an Idempotency-Key, one per finished claim. Purged with the claim.
CREATE TABLE IF NOT EXISTS {{.}}responses (
    source VARBINARY(255) NOT NULL,
    `key`  VARBINARY(255) NOT NULL,
    token  BIGINT NOT NULL,                                   -- of the attempt that gave it
    status INTEGER NOT NULL,
    header MEDIUMBLOB NOT NULL,                               -- HTTP/1 field lines
    body   LONGBLOB NOT NULL,
    PRIMARY KEY (source, `key`)
) ENGINE = InnoDB;

-- Outbox: what is to be done after the commit that stored it.
CREATE TABLE IF NOT EXISTS {{.}}effects (
    id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    source      VARBINARY(255) NOT NULL,
    `key`       VARBINARY(255),                               -- of the event that asked for it; null: it has none
    step        VARBINARY(255) NOT NULL,                      -- tells the effects of one event apart
    name        VARBINARY(255) NOT NULL,                      -- who carries it out
    payload     MEDIUMBLOB NOT NULL,
    state       VARBINARY(16) NOT NULL DEFAULT 'pending',     -- pending, processing, failed, dead, done
    token       BIGINT NOT NULL DEFAULT 0,                    -- attempts begun so far, and the fence
    tries       INTEGER NOT NULL DEFAULT 0,                   -- attempts since it was enqueued or redriven
    due_at      BIGINT,                                       -- pending, failed: when to try; processing: when the lease ends; else null
    enqueued_at BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    last_error  BLOB NOT NULL,
    UNIQUE KEY {{.}}effects_step (source, `key`, step),
    KEY {{.}}effects_due (name, due_at, id),
    KEY {{.}}effects_state (state, updated_at)
) ENGINE = InnoDB;

-- The newest version of each resource that was applied.
CREATE TABLE IF NOT EXISTS {{.}}versions (
    resource   VARBINARY(255) PRIMARY KEY,
    version    BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
) ENGINE = InnoDB;

-- Where each named state machine stands.
CREATE TABLE IF NOT EXISTS {{.}}states (
    entity     VARBINARY(255) PRIMARY KEY,
    state      VARBINARY(255) NOT NULL,
    updated_at BIGINT NOT NULL
) ENGINE = InnoDB;
