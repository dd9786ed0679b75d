-- Which version of the schema a program must know, at least, to work on tables of this version: a program that is older than
-- the tables goes by it. NULL: the version itself.
{{.AddColumn "goose_db_version" "oldest" "BIGINT"}}

-- What `hookonce reconcile` found, for the dashboard. Whoever records one deletes the oldest.
CREATE TABLE IF NOT EXISTS {{.}}reconciliations (
    id     BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at     BIGINT NOT NULL,
    report MEDIUMBLOB NOT NULL                              -- JSON, of a bounded size
) ENGINE = InnoDB;
