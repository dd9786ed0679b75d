-- Which version of the schema a program must know, at least, to work on tables of this version: a program that is older than
-- the tables goes by it. NULL: the version itself.
ALTER TABLE {{.}}goose_db_version ADD COLUMN oldest INTEGER;

-- What is wrong, or was: one row for each rule and what it is about. Times are microseconds since 1970.
CREATE TABLE {{.}}alerts (
    rule       TEXT NOT NULL,
    subject    TEXT NOT NULL,                                 -- a source or destination; empty: the gateway or its store
    state      TEXT NOT NULL,                                 -- pending, firing, resolved
    severity   TEXT NOT NULL,
    transition INTEGER NOT NULL,                              -- counts what somebody may be told
    since      INTEGER NOT NULL,                              -- of the state
    fired_at   INTEGER,
    seen_at    INTEGER,                                       -- when it last held
    told_at    INTEGER,                                       -- since it fires
    told_as    TEXT NOT NULL,
    cause      TEXT NOT NULL,                                 -- rule/subject of the alert that hides it
    body       BLOB NOT NULL,                                 -- what the rule says, as JSON
    ack_by     TEXT NOT NULL,
    ack_reason TEXT NOT NULL,
    ack_at     INTEGER,
    PRIMARY KEY (rule, subject)
) WITHOUT ROWID;

-- Which alerts nobody is told of for a while. Empty: any.
CREATE TABLE {{.}}alert_silences (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    rule    TEXT NOT NULL,
    subject TEXT NOT NULL,
    at      INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    done_by TEXT NOT NULL,
    reason  TEXT NOT NULL
);

-- What happened to alerts.
CREATE TABLE {{.}}alert_records (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    rule       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    at         INTEGER NOT NULL,
    event      TEXT NOT NULL,
    transition INTEGER NOT NULL,
    severity   TEXT NOT NULL,
    text       TEXT NOT NULL,
    done_by    TEXT NOT NULL                                  -- a person; empty: a gateway
);
CREATE INDEX {{.}}alert_records_rule ON {{.}}alert_records (rule, subject, id);

-- What has to be told, and to whom. What was told has no row.
CREATE TABLE {{.}}alert_notices (
    address    TEXT NOT NULL,
    rule       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    transition INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,                              -- while it is leased: the end of the lease
    leased     INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    token      INTEGER NOT NULL,                              -- the number of the attempt, and the fence
    body       BLOB NOT NULL,                                 -- what is told, as JSON
    PRIMARY KEY (address, rule, subject, transition)
) WITHOUT ROWID;

-- What `hookonce reconcile effects` found, for the dashboards and for alerts. Whoever records one deletes the oldest.
CREATE TABLE {{.}}reconciliations (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,                                -- microseconds since 1970
    report TEXT NOT NULL                                    -- JSON, of a bounded size
);
