-- The table that records versions. Safe to run again.
CREATE TABLE IF NOT EXISTS {{.}}goose_db_version (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    version_id BIGINT NOT NULL UNIQUE,                           -- so that of two who migrate at once, one fails
    is_applied BOOLEAN NOT NULL,
    tstamp     TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE = InnoDB;
INSERT IGNORE INTO {{.}}goose_db_version (version_id, is_applied) VALUES (0, true);
