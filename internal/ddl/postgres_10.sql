-- How often what happened, by the minute. Who writes adds to the hour as well, in the same statement.
CREATE TABLE {{.}}tallies (
    minute      timestamptz NOT NULL,
    source      text COLLATE "C" NOT NULL,                    -- empty: what is counted belongs to none
    destination text COLLATE "C" NOT NULL,
    what        text COLLATE "C" NOT NULL,                    -- one of a closed set of words
    n           bigint NOT NULL,
    PRIMARY KEY (minute, source, destination, what)
){{.With "fillfactor = 70"}};

CREATE TABLE {{.}}tally_hours (
    hour        timestamptz NOT NULL,
    source      text COLLATE "C" NOT NULL,
    destination text COLLATE "C" NOT NULL,
    what        text COLLATE "C" NOT NULL,
    n           bigint NOT NULL,
    PRIMARY KEY (hour, source, destination, what)
){{.With "fillfactor = 70"}};

-- Which batch of each process was added last: one whose outcome the process did not hear of is sent again, and added once.
CREATE TABLE {{.}}tally_writers (
    process text COLLATE "C" PRIMARY KEY,                     -- drawn at every start
    seq     bigint NOT NULL,
    minute  timestamptz NOT NULL                              -- the youngest in that batch
){{.With "fillfactor = 70"}};

-- Why an attempt failed, in one word of a closed set; empty: it did not, or it did before there were words. The indexes by
-- which failures are grouped have those that failed. To make them the server reads all attempts, while none can be stored.
-- The deliveries, without which nothing is accepted, are left to a version, and so a transaction, of their own: what
-- finishes one holds it and waits for the attempts.
ALTER TABLE {{.}}attempts ADD COLUMN error_kind text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE {{.}}kept_attempts ADD COLUMN error_kind text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX attempts_failed ON {{.}}attempts (destination, error_kind, status, started_at) WHERE error_kind <> '';
CREATE INDEX kept_attempts_failed ON {{.}}kept_attempts (destination, error_kind, status, started_at) WHERE error_kind <> '';
