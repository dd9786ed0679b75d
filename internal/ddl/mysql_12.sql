-- Which version of the schema a program must know, at least, to work on tables of this version: a program that is older than
-- the tables goes by it. NULL: the version itself.
{{.AddColumn "goose_db_version" "oldest" "BIGINT"}}

-- What `hookonce reconcile effects` found, for the dashboard. Whoever records one deletes the oldest.
CREATE TABLE IF NOT EXISTS {{.}}reconciliations (
    id     BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at     BIGINT NOT NULL,
    report MEDIUMBLOB NOT NULL                              -- JSON, of a bounded size
) ENGINE = InnoDB;

-- How often what happened, by the minute. Who writes adds to the hour as well, in the same transaction.
CREATE TABLE IF NOT EXISTS {{.}}tallies (
    minute      BIGINT NOT NULL,                            -- microseconds since 1970
    source      VARBINARY(255) NOT NULL,
    destination VARBINARY(255) NOT NULL,                    -- empty: programs have none
    what        VARBINARY(64) NOT NULL,                     -- one of a closed set of words
    n           BIGINT NOT NULL,
    PRIMARY KEY (minute, source, destination, what)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {{.}}tally_hours (
    hour        BIGINT NOT NULL,                            -- microseconds since 1970
    source      VARBINARY(255) NOT NULL,
    destination VARBINARY(255) NOT NULL,
    what        VARBINARY(64) NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (hour, source, destination, what)
) ENGINE = InnoDB;

-- Which batch of each process was added last: one whose outcome the process did not hear of is sent again, and added once.
CREATE TABLE IF NOT EXISTS {{.}}tally_writers (
    process VARBINARY(64) NOT NULL PRIMARY KEY,             -- drawn at every start
    seq     BIGINT NOT NULL,
    minute  BIGINT NOT NULL                                 -- the youngest in that batch, microseconds since 1970
) ENGINE = InnoDB;
