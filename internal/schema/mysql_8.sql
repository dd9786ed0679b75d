-- An attempt that reached the outside: only a request with the digest of the row may go on.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'ALTER TABLE {{.}}claims ADD COLUMN pinned BOOLEAN NOT NULL DEFAULT FALSE')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{{.}}claims' AND column_name = 'pinned');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;

-- How often a lease ran out before there was an outcome, since the last outcome.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'ALTER TABLE {{.}}effects ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{{.}}effects' AND column_name = 'deaths');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;
