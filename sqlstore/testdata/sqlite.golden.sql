-- claim
INSERT INTO hookonce_claims AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
		VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?7, ?8)
		ON CONFLICT (source, key) DO UPDATE SET state = excluded.state, token = c.token + 1, lease_until = excluded.lease_until, updated_at = excluded.updated_at,
	event_type = coalesce(nullif(excluded.event_type, ''), c.event_type), digest = coalesce(excluded.digest, c.digest),
	pinned = CASE WHEN excluded.pinned <> 0 AND c.pinned = 0 THEN c.token + 1 ELSE c.pinned END
		WHERE c.token = ?9 AND c.first_seen = ?10 AND (c.state IN ('failed', 'dead') OR (c.state = 'processing' AND c.lease_until <= excluded.updated_at)) AND (c.pinned = 0 OR coalesce(c.digest = excluded.digest, true))
		RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- complete
UPDATE hookonce_claims SET state = 'done', lease_until = NULL, updated_at = ?4
			WHERE source = ?1 AND key = ?2 AND token = ?3 AND state = 'processing'
			RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- completeEffect
UPDATE hookonce_effects SET state = 'done', deaths = 0, due_at = NULL, updated_at = ?3
			WHERE id = ?1 AND token = ?2 AND state = 'processing'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- due
SELECT id, due_at FROM hookonce_effects WHERE name = ?1 AND due_at <= ?2 AND state <> 'processing'
			ORDER BY due_at, id LIMIT ?3

-- effect
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE id = ?1

-- effects, dead
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'dead' AND id > ?1 ORDER BY id LIMIT ?2

-- effects, done
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'done' AND id > ?1 ORDER BY id LIMIT ?2

-- effects, failed
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'failed' AND id > ?1 ORDER BY id LIMIT ?2

-- effects, pending
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'pending' AND id > ?1 ORDER BY id LIMIT ?2

-- effects, processing
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'processing' AND id > ?1 ORDER BY id LIMIT ?2

-- enqueue
INSERT INTO hookonce_effects (source, key, step, name, payload, due_at, enqueued_at, updated_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
		ON CONFLICT (source, key, step) DO NOTHING

-- extend
UPDATE hookonce_claims SET lease_until = ?5, updated_at = ?4
			WHERE source = ?1 AND key = ?2 AND token = ?3 AND state = 'processing'
			RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- extendEffect
UPDATE hookonce_effects SET due_at = ?4, updated_at = ?3
			WHERE id = ?1 AND token = ?2 AND state = 'processing'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- fail
UPDATE hookonce_claims SET state = ?5, lease_until = NULL, updated_at = ?4, last_error = ?6,
				pinned = CASE WHEN pinned NOT IN (0, token) THEN pinned WHEN ?7 THEN token ELSE 0 END
			WHERE source = ?1 AND key = ?2 AND token = ?3 AND state = 'processing'
			RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- failEffect
UPDATE hookonce_effects SET state = ?4, deaths = 0, due_at = ?5, updated_at = ?3, last_error = ?6
			WHERE id = ?1 AND token = ?2 AND state = 'processing'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- forget
DELETE FROM hookonce_claims WHERE source = ?1 AND key = ?2 AND token = ?3 AND state = 'processing' AND first_seen = ?4

-- keep
INSERT INTO hookonce_responses (source, key, token, status, header, body)
		SELECT source, key, token, CAST(?3 AS integer), CAST(?4 AS BLOB), CAST(?5 AS BLOB)
		FROM hookonce_claims WHERE source = ?1 AND key = ?2 AND state = 'done'
		ON CONFLICT (source, key) DO UPDATE SET
			token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body

-- leave
INSERT INTO hookonce_claims AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
		ON CONFLICT (source, key) DO UPDATE SET
			state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
			digest = coalesce(excluded.digest, c.digest), updated_at = excluded.updated_at, last_error = excluded.last_error,
			pinned = CASE WHEN c.pinned = 0 THEN excluded.pinned ELSE c.pinned END
		WHERE (c.pinned = 0 OR coalesce(c.digest = excluded.digest, true)) AND ((c.token < excluded.token AND (c.state IN ('failed', 'dead') OR (c.state = 'processing' AND c.lease_until <= excluded.updated_at)))
	OR (c.token = excluded.token AND ((c.state = 'failed' OR (c.state = 'dead' AND excluded.state = 'dead'))
		OR (c.state = 'done' AND c.first_seen = excluded.first_seen AND c.updated_at = ?12))))

-- lookup
SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM hookonce_claims WHERE source = ?1 AND key = ?2

-- newest
INSERT INTO hookonce_versions AS v (resource, version, updated_at, kind) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
		WHERE v.kind <> excluded.kind OR v.version < excluded.version OR v.version = excluded.version AND excluded.kind = 'time'

-- purge done, along
DELETE FROM hookonce_responses WHERE (source, key) IN (SELECT source, key FROM hookonce_claims WHERE source = ?1 AND state = 'done' AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4)

-- purge done, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_claims WHERE source = ?1 AND state = 'done' AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4) AS old

-- purge done, next
SELECT min(source) FROM hookonce_claims WHERE source > ?1

-- purge done, rows
DELETE FROM hookonce_claims WHERE (source, key) IN (SELECT source, key FROM hookonce_claims WHERE source = ?1 AND state = 'done' AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4)

-- purge effects, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_effects WHERE source = ?1 AND state = 'done' AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4) AS old

-- purge effects, next
SELECT min(source) FROM hookonce_effects WHERE source > ?1

-- purge effects, rows
DELETE FROM hookonce_effects WHERE (id) IN (SELECT id FROM hookonce_effects WHERE source = ?1 AND state = 'done' AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4)

-- purge failed, along
DELETE FROM hookonce_responses WHERE (source, key) IN (SELECT source, key FROM hookonce_claims WHERE source = ?1 AND state IN ('failed', 'dead') AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4)

-- purge failed, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_claims WHERE source = ?1 AND state IN ('failed', 'dead') AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4) AS old

-- purge failed, next
SELECT min(source) FROM hookonce_claims WHERE source > ?1

-- purge failed, rows
DELETE FROM hookonce_claims WHERE (source, key) IN (SELECT source, key FROM hookonce_claims WHERE source = ?1 AND state IN ('failed', 'dead') AND updated_at >= ?2 AND updated_at < ?3 ORDER BY updated_at LIMIT ?4)

-- purge states, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_states WHERE updated_at >= ?1 AND updated_at < ?2 LIMIT ?3) AS old

-- purge states, rows
DELETE FROM hookonce_states WHERE (entity) IN (SELECT entity FROM hookonce_states WHERE updated_at >= ?1 AND updated_at < ?2 LIMIT ?3)

-- purge versions, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_versions WHERE updated_at >= ?1 AND updated_at < ?2 LIMIT ?3) AS old

-- purge versions, rows
DELETE FROM hookonce_versions WHERE (resource) IN (SELECT resource FROM hookonce_versions WHERE updated_at >= ?1 AND updated_at < ?2 LIMIT ?3)

-- redrive
UPDATE hookonce_effects SET state = 'failed', tries = 0, deaths = 0, due_at = ?2, updated_at = ?2
			WHERE id = ?1 AND state = 'dead'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- response
SELECT status, header, body FROM hookonce_responses WHERE source = ?1 AND key = ?2

-- state
SELECT state FROM hookonce_states WHERE entity = ?1

-- suspects
SELECT id, due_at FROM hookonce_effects WHERE name = ?1 AND due_at <= ?2 AND state = 'processing'
			ORDER BY due_at, id LIMIT ?3

-- takeEffects
UPDATE hookonce_effects SET deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END,
	tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
	state = 'processing', token = token + 1, due_at = ?4, updated_at = ?3
		WHERE id IN (SELECT value FROM json_each('[' || ?1 || ']')) AND due_at <= ?3
			AND (state <> 'processing' OR id IN (SELECT value FROM json_each('[' || ?2 || ']')))
		RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- transition
INSERT INTO hookonce_states AS s (entity, state, updated_at)
		VALUES (?1, CASE WHEN CAST(?2 AS text) = '' THEN CAST(?3 AS text) ELSE '' END, ?4)
		ON CONFLICT (entity) DO UPDATE SET state = ?3, updated_at = excluded.updated_at
		WHERE s.state = ?2

