package sqlstore

// statements are what a dialect says.
type statements struct {
	// Claims. The statement that claims and the one that leaves a trace have texts of each dialect's own.
	claim, takeOver, leave, lookup, complete, fail, forget, extend statement
	// Responses.
	keep, response statement
	// Guards.
	newest, transition, state statement
	// Effects.
	enqueue, due, suspects, takeEffects, effect, completeEffect, failEffect, extendEffect, revive, effects statement
	// Reads under locks, where statements that write return nothing.
	lockClaim, lockEffects statement
	// Purges.
	doneClaims, failedClaims, doneEffects, oldVersions, oldStates doom
}

const (
	claimColumns  = `state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned`
	effectColumns = `id, source, coalesce({key}, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error`
)

// claimable is [hookonce.Claim.VerdictFor] for the row c, with the time in excluded.updated_at, but for what it
// is pinned to, which is open.
const (
	claimable = `(c.state IN ('failed', 'dead') OR (c.state = 'processing' AND c.lease_until <= excluded.updated_at))`
	open      = `(c.pinned = 0 OR coalesce(c.digest = excluded.digest, TRUE))`
)

// begun is what taking does to an effect. MySQL works from left to right with what it has set, so the old state
// is read first.
const begun = `
	deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END,
	tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
	state = 'processing', token = token + 1`

// common are the statements that are the same in all dialects but for a word.
func common(sql func(string) statement) statements {
	return statements{
		lookup: sql(`SELECT {claim} FROM {claims} WHERE source = @1 AND {key} = @2`),
		complete: sql(`
			UPDATE {claims} SET state = 'done', lease_until = NULL, updated_at = @4{passed}
			WHERE source = @1 AND {key} = @2 AND token = @3 AND state = 'processing'
			{returning claim}`),
		fail: sql(`
			UPDATE {claims} SET state = @5, lease_until = NULL, updated_at = @4, last_error = @6,
				pinned = CASE WHEN pinned NOT IN (0, token) THEN pinned WHEN @7 THEN token ELSE 0 END{passed}
			WHERE source = @1 AND {key} = @2 AND token = @3 AND state = 'processing'
			{returning claim}`),
		forget: sql(`DELETE FROM {claims} WHERE source = @1 AND {key} = @2 AND token = @3 AND state = 'processing' AND first_seen = @4`),
		extend: sql(`
			UPDATE {claims} SET lease_until = @5, updated_at = @4{passed}
			WHERE source = @1 AND {key} = @2 AND token = @3 AND state = 'processing'
			{returning claim}`),

		response: sql(`SELECT status, header, body FROM {responses} WHERE source = @1 AND {key} = @2`),

		state: sql(`SELECT state FROM {states} WHERE entity = @1{locked}`),

		due: sql(`
			SELECT id, due_at FROM {effects} WHERE name = @1 AND due_at <= @2 AND state <> 'processing'
			ORDER BY due_at, id LIMIT @3`),
		suspects: sql(`
			SELECT id, due_at FROM {effects} WHERE name = @1 AND due_at <= @2 AND state = 'processing'
			ORDER BY due_at, id LIMIT @3`),
		effect: sql(`SELECT {effect} FROM {effects} WHERE id = @1`),
		completeEffect: sql(`
			UPDATE {effects} SET state = 'done', deaths = 0, due_at = NULL, updated_at = @3{passed}
			WHERE id = @1 AND token = @2 AND state = 'processing'
			{returning effect}`),
		failEffect: sql(`
			UPDATE {effects} SET state = @4, deaths = 0, due_at = @5, updated_at = @3, last_error = @6{passed}
			WHERE id = @1 AND token = @2 AND state = 'processing'
			{returning effect}`),
		extendEffect: sql(`
			UPDATE {effects} SET due_at = @4, updated_at = @3{passed}
			WHERE id = @1 AND token = @2 AND state = 'processing'
			{returning effect}`),
		revive: sql(`
			UPDATE {effects} SET state = 'failed', tries = 0, deaths = 0, due_at = @2, updated_at = @2{passed}
			WHERE id = @1 AND state = 'dead'
			{returning effect}`),
		effects: sql(`SELECT {effect} FROM {effects} WHERE state = @1 AND id > @2 ORDER BY id LIMIT @3`),
	}
}

// withConflicts adds the statements that SQLite and Postgres share, both of which have ON CONFLICT. bytes is
// the type of a column of bytes.
func (s statements) withConflicts(sql func(string) statement, bytes string) statements {
	// The trace gives way to done work, to a lease that somebody holds, and to newer attempts; no row is
	// affected then. Attempts that began afresh at the same time have the same token; of those, one that
	// gave up is never made an ordinary failure again, because its sender was told to stop. What the claim is
	// pinned to stays. Work is no more done that the attempt itself stored as done at the time @12, in a commit
	// that was not the store's.
	s.leave = sql(`
		INSERT INTO {claims} AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @8, @9, @10, @11)
		ON CONFLICT (source, key) DO UPDATE SET
			state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
			digest = coalesce(excluded.digest, c.digest), updated_at = excluded.updated_at, last_error = excluded.last_error,
			pinned = CASE WHEN c.pinned = 0 THEN excluded.pinned ELSE c.pinned END
		WHERE {open} AND ((c.token < excluded.token AND {claimable})
			OR (c.token = excluded.token AND (c.state = 'failed' OR (c.state = 'dead' AND excluded.state = 'dead')
				OR (c.state = 'done' AND c.first_seen = excluded.first_seen AND c.updated_at = @12))))`)
	// In a transaction a claim is done from the start. A row of another state is somebody else's.
	s.keep = sql(`
		INSERT INTO {responses} (source, key, token, status, header, body)
		SELECT source, key, token, CAST(@3 AS integer), CAST(@4 AS ` + bytes + `), CAST(@5 AS ` + bytes + `)
		FROM {claims} WHERE source = @1 AND key = @2 AND state = 'done'
		ON CONFLICT (source, key) DO UPDATE SET
			token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body`)
	s.newest = sql(`
		INSERT INTO {versions} AS v (resource, version, updated_at, kind) VALUES (@1, @2, @3, @4)
		ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
		WHERE v.kind <> excluded.kind OR v.version < excluded.version OR v.version = excluded.version AND excluded.kind = 'time'`)
	// A conflict locks the row even where its condition is false. An entity that was never seen, and is not
	// to move from there, gets a row to be locked.
	s.transition = sql(`
		INSERT INTO {states} AS s (entity, state, updated_at)
		VALUES (@1, CASE WHEN CAST(@2 AS text) = '' THEN CAST(@3 AS text) ELSE '' END, @4)
		ON CONFLICT (entity) DO UPDATE SET state = @3, updated_at = excluded.updated_at
		WHERE s.state = @2`)
	s.enqueue = sql(`
		INSERT INTO {effects} (source, key, step, name, payload, due_at, enqueued_at, updated_at)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @7)
		ON CONFLICT (source, key, step) DO NOTHING`)
	return s
}

// takeOver is what the claiming statement does to a row that it takes over. It keeps what a later copy
// does not say.
const takeOver = `
	state = excluded.state, token = c.token + 1, lease_until = excluded.lease_until, updated_at = excluded.updated_at,
	event_type = CASE WHEN excluded.event_type = '' THEN c.event_type ELSE excluded.event_type END,
	digest = coalesce(excluded.digest, c.digest),
	pinned = CASE WHEN c.pinned = 0 AND excluded.pinned <> 0 THEN c.token + 1 ELSE c.pinned END`
