-- The number of the first attempt that may have had effects outside: only a request with the digest of the row may go on. 0: none.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'ALTER TABLE {{.}}claims ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{{.}}claims' AND column_name = 'pinned');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;

-- How often a lease ran out before there was an outcome, since the last outcome. tries leaves these attempts out.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'ALTER TABLE {{.}}effects ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{{.}}effects' AND column_name = 'deaths');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;

-- What is being carried out is little, and those of which the lease ran out are looked for in every round.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'CREATE INDEX {{.}}effects_held ON {{.}}effects (state, name, due_at, id)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{{.}}effects' AND index_name = '{{.}}effects_held');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;

-- What the number of a resource is: of a version an equal one is a copy, of a time it may be another state.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'ALTER TABLE {{.}}versions ADD COLUMN kind VARBINARY(16) NOT NULL DEFAULT ''version''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{{.}}versions' AND column_name = 'kind');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;

-- For purges, which go source by source: what one is kept for longer is not in the way of the others.
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'CREATE INDEX {{.}}claims_done ON {{.}}claims (source, state, updated_at)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{{.}}claims' AND index_name = '{{.}}claims_done');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;
SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', 'CREATE INDEX {{.}}effects_done ON {{.}}effects (source, state, updated_at)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{{.}}effects' AND index_name = '{{.}}effects_done');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;
