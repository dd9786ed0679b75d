-- Text is kept as the bytes of its UTF-8: keys are compared byte by byte, and nothing depends on a collation
-- or on the character set of a connection. To read it: CONVERT(last_error USING utf8mb4).
-- Times are microseconds since 1970-01-01 UTC.

-- Claims: one row per key inside its source. The library owns this table.
CREATE TABLE IF NOT EXISTS {{.}}claims (
    source      VARBINARY(255) NOT NULL,
    `key`       VARBINARY(255) NOT NULL,
    state       VARBINARY(16) NOT NULL,                       -- processing, done, failed, dead
    token       BIGINT NOT NULL,                              -- number of the current attempt, from 1, and the fence
    lease_until BIGINT,                                       -- while processing: when it may be taken over; null: never
    event_type  MEDIUMBLOB NOT NULL,
    digest      VARBINARY(255),                               -- of the content; another digest under the same key is a conflict
    first_seen  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    last_error  BLOB NOT NULL,
    PRIMARY KEY (source, `key`),
    KEY {{.}}claims_age (state, updated_at)                   -- what is open, and for the purge, which walks from the oldest
) ENGINE = InnoDB;
