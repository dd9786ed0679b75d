-- The number of the first attempt that may have had effects outside: only a request with the digest of the row may go on. 0: none.
{{.AddColumn "claims" "pinned" "BIGINT NOT NULL DEFAULT 0"}}
-- How often a lease ran out before there was an outcome, since the last outcome. tries leaves these attempts out.
{{.AddColumn "effects" "deaths" "INTEGER NOT NULL DEFAULT 0"}}
-- What is being carried out is little, and those of which the lease ran out are looked for in every round.
{{.AddIndex "effects" "effects_held" "state, name, due_at, id"}}
-- What the number of a resource is: of a version an equal one is a copy, of a time it may be another state.
{{.AddColumn "versions" "kind" "VARBINARY(16) NOT NULL DEFAULT ''version''"}}
-- For purges, which go source by source: what one is kept for longer is not in the way of the others.
{{.AddIndex "claims" "claims_done" "source, state, updated_at"}}
{{.AddIndex "effects" "effects_done" "source, state, updated_at"}}
