-- Which version of the schema a program must know, at least, to work on tables of this version: a program that is older than
-- the tables goes by it. NULL: the version itself.
ALTER TABLE {{.}}goose_db_version ADD COLUMN oldest bigint;

-- What is wrong, or was: one row for each rule and what it is about.
CREATE TABLE {{.}}alerts (
    rule       text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,                     -- a source or destination; empty: the gateway or its store
    state      text COLLATE "C" NOT NULL,                     -- pending, firing, resolved
    severity   text COLLATE "C" NOT NULL,
    transition bigint NOT NULL,                               -- counts what somebody may be told
    since      timestamptz NOT NULL,                          -- of the state
    fired_at   timestamptz,
    seen_at    timestamptz,                                   -- when it last held
    told_at    timestamptz,                                   -- since it fires
    told_as    text COLLATE "C" NOT NULL,
    cause      text COLLATE "C" NOT NULL,                     -- rule/subject of the alert that hides it
    body       bytea NOT NULL,                                -- what the rule says, as JSON
    ack_by     text NOT NULL,
    ack_reason text NOT NULL,
    ack_at     timestamptz,
    PRIMARY KEY (rule, subject)
){{.With "fillfactor = 70"}};

-- Which alerts nobody is told of for a while. Empty: any.
CREATE TABLE {{.}}alert_silences (
    id      bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    rule    text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    at      timestamptz NOT NULL,
    until   timestamptz NOT NULL,
    done_by text NOT NULL,
    reason  text NOT NULL
);

-- What happened to alerts.
CREATE TABLE {{.}}alert_records (
    id         bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    rule       text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    at         timestamptz NOT NULL,
    event      text COLLATE "C" NOT NULL,
    transition bigint NOT NULL,
    severity   text COLLATE "C" NOT NULL,
    text       text NOT NULL,
    done_by    text NOT NULL                                  -- a person; empty: a gateway
);
CREATE INDEX alert_records_rule ON {{.}}alert_records (rule, subject, id);

-- What has to be told, and to whom. What was told has no row.
CREATE TABLE {{.}}alert_notices (
    address    text COLLATE "C" NOT NULL,
    rule       text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    transition bigint NOT NULL,
    due_at     timestamptz NOT NULL,                          -- while it is leased: the end of the lease
    leased     boolean NOT NULL,
    since      timestamptz NOT NULL,
    tries      integer NOT NULL,
    token      bigint NOT NULL,                               -- the number of the attempt, and the fence
    body       bytea NOT NULL,                                -- what is told, as JSON
    PRIMARY KEY (address, rule, subject, transition)
){{.With "fillfactor = 70"}};

-- What `hookonce reconcile effects` found, for the dashboards and for alerts. Whoever records one deletes the oldest.
CREATE TABLE {{.}}reconciliations (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL,
    report text NOT NULL                                    -- JSON, of a bounded size
);
