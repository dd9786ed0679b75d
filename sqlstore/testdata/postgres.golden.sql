-- claim
WITH setting AS MATERIALIZED (SELECT current_setting('lock_timeout') AS before),
bounded AS MATERIALIZED (SELECT before, set_config('lock_timeout', coalesce($8::text, before), true) FROM setting),
seen AS MATERIALIZED (SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM hookonce_claims WHERE source = $1::text AND key = $2::text AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END),
created AS (
	INSERT INTO hookonce_claims (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
	SELECT $1::text, $2::text, $3::text, 1, $4::timestamptz, $5::text, $6::bytea, $7::timestamptz, $7::timestamptz,
		CASE WHEN $9::boolean THEN 1 ELSE 0 END FROM bounded
	WHERE CASE WHEN bounded.before IS NOT NULL AND NOT EXISTS (SELECT FROM seen) THEN pg_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('hookonce_claims', 0)))) IS NOT NULL ELSE false END
	ON CONFLICT (source, key) DO NOTHING
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
),
taken AS (
	UPDATE hookonce_claims AS claims SET state = $3::text, token = claims.token + 1, lease_until = $4::timestamptz, updated_at = $7::timestamptz,
	event_type = coalesce(nullif($5::text, ''), claims.event_type), digest = coalesce($6::bytea, claims.digest),
	pinned = CASE WHEN $9::boolean AND claims.pinned = 0 THEN claims.token + 1 ELSE claims.pinned END
	FROM bounded, seen
	WHERE CASE WHEN bounded.before IS NOT NULL AND (seen.state IN ('failed', 'dead') OR (seen.state = 'processing' AND seen.lease_until <= $7::timestamptz)) AND (seen.pinned = 0 OR coalesce(seen.digest = $6::bytea, true))
		THEN pg_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('hookonce_claims', 0)))) IS NOT NULL ELSE false END
	AND claims.source = $1::text AND claims.key = $2::text AND claims.token = seen.token
	AND (claims.state IN ('failed', 'dead') OR (claims.state = 'processing' AND claims.lease_until <= $7::timestamptz)) AND (claims.pinned = 0 OR coalesce(claims.digest = $6::bytea, true))
	RETURNING claims.state, claims.token, claims.lease_until, claims.event_type, claims.digest, claims.first_seen, claims.updated_at, claims.last_error, claims.pinned
),
won AS (SELECT * FROM created UNION ALL SELECT * FROM taken)
SELECT set_config('lock_timeout', bounded.before, true), won.token IS NOT NULL, seen.digest,
	coalesce(won.state, seen.state, ''), coalesce(won.token, seen.token, 0),
	CASE WHEN won.token IS NULL THEN seen.lease_until ELSE won.lease_until END,
	coalesce(won.event_type, seen.event_type, ''), coalesce(won.digest, seen.digest),
	coalesce(won.first_seen, seen.first_seen, $7::timestamptz), coalesce(won.updated_at, seen.updated_at, $7::timestamptz),
	coalesce(won.last_error, seen.last_error, ''), coalesce(won.pinned, seen.pinned, 0),
	CASE WHEN won.token IS NULL THEN 0 ELSE txid_current() END
FROM bounded LEFT JOIN seen ON true LEFT JOIN won ON true

-- complete
UPDATE hookonce_claims SET state = 'done', lease_until = NULL, updated_at = $4
			WHERE source = $1 AND key = $2 AND token = $3 AND state = 'processing'
			RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- completeEffect
UPDATE hookonce_effects SET state = 'done', deaths = 0, due_at = NULL, updated_at = $3
			WHERE id = $1 AND token = $2 AND state = 'processing'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- due
SELECT id, due_at FROM hookonce_effects WHERE name = $1 AND due_at <= $2 AND state <> 'processing'
			ORDER BY due_at, id LIMIT $3

-- effect
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE id = $1

-- effects, dead
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'dead' AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- effects, done
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'done' AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- effects, failed
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'failed' AND due_at IS NOT NULL AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- effects, pending
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'pending' AND due_at IS NOT NULL AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- effects, processing
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'processing' AND due_at IS NOT NULL AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- enqueue
INSERT INTO hookonce_effects (source, key, step, name, payload, due_at, enqueued_at, updated_at)
VALUES ($1::text, nullif($2::text, ''), $3::text, $4::text, $5::bytea, $6::timestamptz, $7::timestamptz, $7::timestamptz)
ON CONFLICT (source, key, step) DO NOTHING

-- extend
UPDATE hookonce_claims SET lease_until = $5, updated_at = $4
			WHERE source = $1 AND key = $2 AND token = $3 AND state = 'processing'
			RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- extendEffect
UPDATE hookonce_effects SET due_at = $4, updated_at = $3
			WHERE id = $1 AND token = $2 AND state = 'processing'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- fail
UPDATE hookonce_claims SET state = $5, lease_until = NULL, updated_at = $4, last_error = $6,
				pinned = CASE WHEN pinned NOT IN (0, token) THEN pinned WHEN $7 THEN token ELSE 0 END
			WHERE source = $1 AND key = $2 AND token = $3 AND state = 'processing'
			RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned

-- failEffect
UPDATE hookonce_effects SET state = $4, deaths = 0, due_at = $5, updated_at = $3, last_error = $6
			WHERE id = $1 AND token = $2 AND state = 'processing'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- forget
DELETE FROM hookonce_claims WHERE source = $1 AND key = $2 AND token = $3 AND state = 'processing' AND first_seen = $4

-- keep
INSERT INTO hookonce_responses (source, key, token, status, header, body)
SELECT source, key, token, $3::integer, $4::bytea, $5::bytea FROM hookonce_claims WHERE source = $1::text AND key = $2::text AND state = 'done'
ON CONFLICT (source, key) DO UPDATE SET
	token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body

-- leave
WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', coalesce($9::text, current_setting('lock_timeout')), true))
INSERT INTO hookonce_claims AS claims (source, key, state, token, event_type, digest, first_seen, updated_at, last_error, pinned)
SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bytea, $10::timestamptz, $7::timestamptz, $8::text, $11::bigint FROM bounded
ON CONFLICT (source, key) DO UPDATE SET
	state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
	digest = coalesce(excluded.digest, claims.digest), updated_at = excluded.updated_at,
	last_error = CASE WHEN claims.state = 'done' OR claims.token = excluded.token AND claims.last_error = $14::text
		THEN $14::text ELSE excluded.last_error END,
	pinned = CASE WHEN claims.pinned = 0 THEN excluded.pinned ELSE claims.pinned END
WHERE (claims.pinned = 0 OR coalesce(claims.digest = excluded.digest, true)) AND ((claims.token < excluded.token AND (claims.state IN ('failed', 'dead') OR (claims.state = 'processing' AND claims.lease_until <= excluded.updated_at)))
	OR (claims.token = excluded.token AND ((claims.state = 'failed' OR (claims.state = 'dead' AND excluded.state = 'dead'))
		OR (claims.state = 'done' AND claims.first_seen = excluded.first_seen AND claims.updated_at = CASE WHEN claims.xmin::text::bigint = $13::bigint & 4294967295 THEN $12::timestamptz END))))
RETURNING coalesce(last_error = $14::text, false)

-- lookup
SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM hookonce_claims WHERE source = $1::text AND key = $2::text AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END
UNION ALL
SELECT absent.state, absent.token, absent.lease_until, absent.event_type, absent.digest, absent.first_seen, absent.updated_at, absent.last_error, absent.pinned FROM (SELECT 1) AS one LEFT JOIN hookonce_claims AS absent ON absent.source = $1::text AND absent.key = $2::text
WHERE CASE WHEN absent.source IS NULL AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NULL ELSE false END

-- newest
INSERT INTO hookonce_versions AS versions (resource, version, updated_at, kind) VALUES ($1::text, $2::bigint, $3::timestamptz, $4::text)
ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
WHERE versions.kind <> excluded.kind OR versions.version < excluded.version OR versions.version = excluded.version AND excluded.kind = 'time'

-- purge done, count
SELECT count(*) FROM (SELECT FROM hookonce_claims WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint) AS old

-- purge done, next
SELECT min(source) FROM hookonce_claims WHERE source > $1::text

-- purge done, rows
WITH purged AS (
	DELETE FROM hookonce_claims WHERE ctid = ANY (ARRAY(SELECT ctid FROM hookonce_claims WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
), unkept AS (
	DELETE FROM hookonce_responses AS responses USING purged WHERE responses.source = purged.source AND responses.key = purged.key
)
SELECT count(*) FROM purged

-- purge effects, count
SELECT count(*) FROM (SELECT FROM hookonce_effects WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint) AS old

-- purge effects, next
SELECT min(source) FROM hookonce_effects WHERE source > $1::text

-- purge effects, rows
WITH purged AS (
	DELETE FROM hookonce_effects WHERE ctid = ANY (ARRAY(SELECT ctid FROM hookonce_effects WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
)
SELECT count(*) FROM purged

-- purge failed, count
SELECT count(*) FROM (SELECT FROM hookonce_claims WHERE source = $1::text AND state IN ('failed', 'dead') AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint) AS old

-- purge failed, next
SELECT min(source) FROM hookonce_claims WHERE source > $1::text

-- purge failed, rows
WITH purged AS (
	DELETE FROM hookonce_claims WHERE ctid = ANY (ARRAY(SELECT ctid FROM hookonce_claims WHERE source = $1::text AND state IN ('failed', 'dead') AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
), unkept AS (
	DELETE FROM hookonce_responses AS responses USING purged WHERE responses.source = purged.source AND responses.key = purged.key
)
SELECT count(*) FROM purged

-- purge states, count
SELECT count(*) FROM (SELECT FROM hookonce_states WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint) AS old

-- purge states, rows
WITH purged AS (
	DELETE FROM hookonce_states WHERE ctid = ANY (ARRAY(SELECT ctid FROM hookonce_states WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
)
SELECT count(*) FROM purged

-- purge versions, count
SELECT count(*) FROM (SELECT FROM hookonce_versions WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint) AS old

-- purge versions, rows
WITH purged AS (
	DELETE FROM hookonce_versions WHERE ctid = ANY (ARRAY(SELECT ctid FROM hookonce_versions WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
)
SELECT count(*) FROM purged

-- redrive
UPDATE hookonce_effects SET state = 'failed', tries = 0, deaths = 0, due_at = $2, updated_at = $2
			WHERE id = $1 AND state = 'dead'
			RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- response
SELECT status, header, body FROM hookonce_responses WHERE source = $1 AND key = $2

-- state
SELECT state FROM hookonce_states WHERE entity = $1

-- suspects
SELECT id, due_at FROM hookonce_effects WHERE name = $1 AND due_at <= $2 AND state = 'processing'
			ORDER BY due_at, id LIMIT $3

-- takeEffects
UPDATE hookonce_effects SET deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END,
	tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
	state = 'processing', token = token + 1, due_at = $4, updated_at = $3
		WHERE id IN (
			SELECT id FROM hookonce_effects WHERE id = ANY (string_to_array($1, ',')::bigint[]) AND due_at <= $3
				AND (state <> 'processing' OR id = ANY (string_to_array($2, ',')::bigint[]))
			FOR UPDATE SKIP LOCKED)
		RETURNING id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error

-- transition
INSERT INTO hookonce_states AS states (entity, state, updated_at)
VALUES ($1::text, CASE WHEN $2::text = '' THEN $3::text ELSE '' END, $4::timestamptz)
ON CONFLICT (entity) DO UPDATE SET state = $3::text, updated_at = excluded.updated_at
WHERE states.state = $2::text

