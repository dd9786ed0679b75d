-- What the first attempt follows: 0 the event's first copy, 1 a later copy that made failed or dead work begin again, 2 a replay.
ALTER TABLE {{.}}deliveries ADD COLUMN origin smallint NOT NULL DEFAULT 0;

-- How often what happened, by the minute. Who writes adds to the hour as well, in the same statement.
CREATE TABLE {{.}}tallies (
    minute      timestamptz NOT NULL,
    source      text COLLATE "C" NOT NULL,                    -- empty: what is counted belongs to none
    destination text COLLATE "C" NOT NULL,
    what        text COLLATE "C" NOT NULL,                    -- one of a closed set of words
    n           bigint NOT NULL,
    PRIMARY KEY (minute, source, destination, what)
) WITH (fillfactor = 70);

CREATE TABLE {{.}}tally_hours (
    hour        timestamptz NOT NULL,
    source      text COLLATE "C" NOT NULL,
    destination text COLLATE "C" NOT NULL,
    what        text COLLATE "C" NOT NULL,
    n           bigint NOT NULL,
    PRIMARY KEY (hour, source, destination, what)
) WITH (fillfactor = 70);

-- Which batch of each process was added last: one whose outcome the process did not hear of is sent again, and added once.
CREATE TABLE {{.}}tally_writers (
    process text COLLATE "C" PRIMARY KEY,                     -- drawn at every start
    seq     bigint NOT NULL,
    minute  timestamptz NOT NULL                              -- the youngest in that batch
) WITH (fillfactor = 70);
