-- The table that records versions. Safe to run again.
CREATE TABLE IF NOT EXISTS {{.}}goose_db_version (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL UNIQUE,                          -- so that of two who migrate at once, one fails
    is_applied INTEGER NOT NULL,
    tstamp     TIMESTAMP DEFAULT (datetime('now'))
);
INSERT INTO {{.}}goose_db_version (version_id, is_applied)
    SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM {{.}}goose_db_version);
