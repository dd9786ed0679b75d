-- The number of the first attempt that may have had effects outside: only a request with the digest of the row may go on. 0: none.
ALTER TABLE {{.}}claims ADD COLUMN pinned bigint NOT NULL DEFAULT 0;

-- How often a lease ran out before there was an outcome, since the last outcome. tries leaves these attempts out.
ALTER TABLE {{.}}effects ADD COLUMN deaths integer NOT NULL DEFAULT 0;
-- What is being carried out is little, and those of which the lease ran out are looked for in every round.
CREATE INDEX effects_held ON {{.}}effects (due_at, id) WHERE state = 'processing';

-- What the number of a resource is: of a version an equal one is a copy, of a time it may be another state.
ALTER TABLE {{.}}versions ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'version';

-- For purges, which go source by source: what one is kept for longer is not in the way of the others.
DROP INDEX {{.}}claims_age;
CREATE INDEX claims_age ON {{.}}claims (source, updated_at) WHERE state = 'done';
DROP INDEX {{.}}effects_age;
CREATE INDEX effects_age ON {{.}}effects (source, updated_at) WHERE state = 'done';
