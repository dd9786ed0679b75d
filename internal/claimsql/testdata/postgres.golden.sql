-- ChangeEffect
WITH changed AS (
	UPDATE "hookonce".effects SET state = $3::text, deaths = CASE WHEN $3::text = 'processing' THEN deaths ELSE 0 END, due_at = $4::timestamptz, last_error = coalesce($5::text, last_error), updated_at = $6::timestamptz
	WHERE id = $1::bigint AND token = $2::bigint AND state = 'processing'
	RETURNING state, token
)
SELECT true, state, token FROM changed
UNION ALL
SELECT false, state, token FROM "hookonce".effects WHERE id = $1::bigint AND NOT EXISTS (SELECT 1 FROM changed)

-- Claim
WITH setting AS MATERIALIZED (SELECT current_setting('lock_timeout') AS before),
bounded AS MATERIALIZED (SELECT before, set_config('lock_timeout', coalesce($8::text, before), true) FROM setting),
seen AS MATERIALIZED (SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END),
created AS (
	INSERT INTO "hookonce".claims (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
	SELECT $1::text, $2::text, $3::text, 1, $4::timestamptz, $5::text, $6::bytea, $7::timestamptz, $7::timestamptz,
		CASE WHEN $9::boolean THEN 1 ELSE 0 END FROM bounded
	WHERE CASE WHEN bounded.before IS NOT NULL AND NOT EXISTS (SELECT FROM seen) THEN pg_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('"hookonce".claims', 0)))) IS NOT NULL ELSE false END
	ON CONFLICT (source, key) DO NOTHING
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
),
taken AS (
	UPDATE "hookonce".claims AS claims SET state = $3::text, token = claims.token + 1, lease_until = $4::timestamptz, updated_at = $7::timestamptz,
	event_type = coalesce(nullif($5::text, ''), claims.event_type), digest = coalesce($6::bytea, claims.digest),
	pinned = CASE WHEN $9::boolean AND claims.pinned = 0 THEN claims.token + 1 ELSE claims.pinned END
	FROM bounded, seen
	WHERE CASE WHEN bounded.before IS NOT NULL AND (seen.state IN ('failed', 'dead') OR (seen.state = 'processing' AND seen.lease_until <= $7::timestamptz)) AND (seen.pinned = 0 OR coalesce(seen.digest = $6::bytea, true))
		THEN pg_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('"hookonce".claims', 0)))) IS NOT NULL ELSE false END
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

-- ClaimOrFail
WITH setting AS MATERIALIZED (SELECT current_setting('lock_timeout') AS before),
bounded AS MATERIALIZED (SELECT before, set_config('lock_timeout', coalesce($8::text, before), true) FROM setting),
seen AS MATERIALIZED (SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END),
created AS (
	INSERT INTO "hookonce".claims (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
	SELECT $1::text, $2::text, $3::text, 1, $4::timestamptz, $5::text, $6::bytea, $7::timestamptz, $7::timestamptz,
		CASE WHEN $9::boolean THEN 1 ELSE 0 END FROM bounded
	WHERE CASE WHEN bounded.before IS NOT NULL AND NOT EXISTS (SELECT FROM seen) THEN pg_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('"hookonce".claims', 0)))) IS NOT NULL ELSE false END
	ON CONFLICT (source, key) DO NOTHING
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
),
taken AS (
	UPDATE "hookonce".claims AS claims SET state = $3::text, token = claims.token + 1, lease_until = $4::timestamptz, updated_at = $7::timestamptz,
	event_type = coalesce(nullif($5::text, ''), claims.event_type), digest = coalesce($6::bytea, claims.digest),
	pinned = CASE WHEN $9::boolean AND claims.pinned = 0 THEN claims.token + 1 ELSE claims.pinned END
	FROM bounded, seen
	WHERE CASE WHEN bounded.before IS NOT NULL AND (seen.state IN ('failed', 'dead') OR (seen.state = 'processing' AND seen.lease_until <= $7::timestamptz)) AND (seen.pinned = 0 OR coalesce(seen.digest = $6::bytea, true))
		THEN pg_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('"hookonce".claims', 0)))) IS NOT NULL ELSE false END
	AND claims.source = $1::text AND claims.key = $2::text AND claims.token = seen.token
	AND (claims.state IN ('failed', 'dead') OR (claims.state = 'processing' AND claims.lease_until <= $7::timestamptz)) AND (claims.pinned = 0 OR coalesce(claims.digest = $6::bytea, true))
	RETURNING claims.state, claims.token, claims.lease_until, claims.event_type, claims.digest, claims.first_seen, claims.updated_at, claims.last_error, claims.pinned
),
won AS (SELECT * FROM created UNION ALL SELECT * FROM taken)
SELECT set_config('lock_timeout', bounded.before, true), (CASE WHEN won.token IS NOT NULL THEN 'true' ELSE 'hookonce: the key was taken, and nothing of this batch is done' END)::boolean
FROM bounded LEFT JOIN won ON true

-- Complete
WITH changed AS (
	UPDATE "hookonce".claims SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
)
SELECT pg_notify('hookonce_claims', $1::text || chr(10) || $2::text) IS NOT NULL, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM changed
UNION ALL
SELECT false, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed) AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END

-- CompleteWith
WITH changed AS (
	UPDATE "hookonce".claims SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
), kept AS (
	INSERT INTO "hookonce".responses (source, key, token, status, header, body)
	SELECT $1::text, $2::text, $3::bigint, $8::integer, $9::bytea, $10::bytea FROM changed
ON CONFLICT (source, key) DO UPDATE SET
	token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body
)
SELECT pg_notify('hookonce_claims', $1::text || chr(10) || $2::text) IS NOT NULL, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM changed
UNION ALL
SELECT false, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed) AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END

-- Effects dead
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM "hookonce".effects WHERE state = 'dead' AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- Effects done
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM "hookonce".effects WHERE state = 'done' AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- Effects failed
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM "hookonce".effects WHERE state = 'failed' AND due_at IS NOT NULL AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- Effects pending
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM "hookonce".effects WHERE state = 'pending' AND due_at IS NOT NULL AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- Effects processing
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM "hookonce".effects WHERE state = 'processing' AND due_at IS NOT NULL AND id > $1::bigint ORDER BY id LIMIT $2::bigint

-- Enqueue
INSERT INTO "hookonce".effects (source, key, step, name, payload, due_at, enqueued_at, updated_at)
VALUES ($1::text, nullif($2::text, ''), $3::text, $4::text, $5::bytea, $6::timestamptz, $7::timestamptz, $7::timestamptz)
ON CONFLICT (source, key, step) DO NOTHING

-- Extend
WITH changed AS (
	UPDATE "hookonce".claims SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
)
SELECT true, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM changed
UNION ALL
SELECT false, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed) AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END

-- Fail
WITH changed AS (
	UPDATE "hookonce".claims SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz,
		pinned = CASE WHEN pinned NOT IN (0, token) THEN pinned WHEN $8::boolean THEN token ELSE 0 END
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
)
SELECT pg_notify('hookonce_claims', $1::text || chr(10) || $2::text) IS NOT NULL, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM changed
UNION ALL
SELECT false, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed) AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END

-- Find
SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END

-- Forget
WITH changed AS (
	DELETE FROM "hookonce".claims
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing' AND first_seen = $4::timestamptz
	RETURNING state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned
)
SELECT pg_notify('hookonce_claims', $1::text || chr(10) || $2::text) IS NOT NULL, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM changed
UNION ALL
SELECT false, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed) AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END
UNION ALL
SELECT false, absent.state, absent.token, absent.lease_until, absent.event_type, absent.digest, absent.first_seen, absent.updated_at, absent.last_error, absent.pinned FROM (SELECT 1) AS one LEFT JOIN "hookonce".claims AS absent ON absent.source = $1::text AND absent.key = $2::text
WHERE CASE WHEN absent.source IS NULL AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NULL ELSE false END

-- Fresh
INSERT INTO "hookonce".claims (source, key, state, token, event_type, digest, first_seen, updated_at)
SELECT $1::text, $2::text, 'done', 1, $3::text, $4::bytea, $5::timestamptz, $5::timestamptz
WHERE pg_try_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('"hookonce".claims', 0))))
ON CONFLICT (source, key) DO NOTHING
RETURNING txid_current()

-- FreshOrFail
WITH won AS (
INSERT INTO "hookonce".claims (source, key, state, token, event_type, digest, first_seen, updated_at)
SELECT $1::text, $2::text, 'done', 1, $3::text, $4::bytea, $5::timestamptz, $5::timestamptz
WHERE pg_try_advisory_xact_lock(hashtextextended($2::text, hashtextextended($1::text, hashtextextended('"hookonce".claims', 0))))
ON CONFLICT (source, key) DO NOTHING
RETURNING txid_current()
)
SELECT (CASE WHEN EXISTS (SELECT FROM won) THEN 'true' ELSE 'hookonce: the event is not new, and nothing of this batch is done' END)::boolean

-- Intact
SELECT (CASE WHEN txid_current_if_assigned() = $1 THEN 'true' WHEN txid_status($1) = 'committed' THEN 'false'
ELSE coalesce(txid_status($1), 'forgotten') END)::boolean

-- Keep
INSERT INTO "hookonce".responses (source, key, token, status, header, body)
SELECT source, key, token, $3::integer, $4::bytea, $5::bytea FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND state = 'done'
ON CONFLICT (source, key) DO UPDATE SET
	token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body

-- Lookup
SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM "hookonce".claims WHERE source = $1::text AND key = $2::text AND CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END
UNION ALL
SELECT absent.state, absent.token, absent.lease_until, absent.event_type, absent.digest, absent.first_seen, absent.updated_at, absent.last_error, absent.pinned FROM (SELECT 1) AS one LEFT JOIN "hookonce".claims AS absent ON absent.source = $1::text AND absent.key = $2::text
WHERE CASE WHEN absent.source IS NULL AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NULL ELSE false END

-- Newer
INSERT INTO "hookonce".versions AS versions (resource, version, updated_at, kind) VALUES ($1::text, $2::bigint, $3::timestamptz, $4::text)
ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
WHERE versions.kind <> excluded.kind OR versions.version < excluded.version OR versions.version = excluded.version AND excluded.kind = 'time'

-- Number
SELECT txid_current()

-- Purge done, count
SELECT count(*) FROM (SELECT FROM "hookonce".claims WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint) AS old

-- Purge done, delete
WITH purged AS (
	DELETE FROM "hookonce".claims WHERE ctid = ANY (ARRAY(SELECT ctid FROM "hookonce".claims WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
), unkept AS (
	DELETE FROM "hookonce".responses AS responses USING purged WHERE responses.source = purged.source AND responses.key = purged.key
)
SELECT count(*) FROM purged

-- Purge done, next
SELECT min(source) FROM "hookonce".claims WHERE source > $1::text

-- Purge effects, count
SELECT count(*) FROM (SELECT FROM "hookonce".effects WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint) AS old

-- Purge effects, delete
WITH purged AS (
	DELETE FROM "hookonce".effects WHERE ctid = ANY (ARRAY(SELECT ctid FROM "hookonce".effects WHERE source = $1::text AND state = 'done' AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
)
SELECT count(*) FROM purged

-- Purge effects, next
SELECT min(source) FROM "hookonce".effects WHERE source > $1::text

-- Purge failed, count
SELECT count(*) FROM (SELECT FROM "hookonce".claims WHERE source = $1::text AND state IN ('failed', 'dead') AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint) AS old

-- Purge failed, delete
WITH purged AS (
	DELETE FROM "hookonce".claims WHERE ctid = ANY (ARRAY(SELECT ctid FROM "hookonce".claims WHERE source = $1::text AND state IN ('failed', 'dead') AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
), unkept AS (
	DELETE FROM "hookonce".responses AS responses USING purged WHERE responses.source = purged.source AND responses.key = purged.key
)
SELECT count(*) FROM purged

-- Purge failed, next
SELECT min(source) FROM "hookonce".claims WHERE source > $1::text

-- Purge states, count
SELECT count(*) FROM (SELECT FROM "hookonce".states WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint) AS old

-- Purge states, delete
WITH purged AS (
	DELETE FROM "hookonce".states WHERE ctid = ANY (ARRAY(SELECT ctid FROM "hookonce".states WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
)
SELECT count(*) FROM purged

-- Purge states, next


-- Purge versions, count
SELECT count(*) FROM (SELECT FROM "hookonce".versions WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint) AS old

-- Purge versions, delete
WITH purged AS (
	DELETE FROM "hookonce".versions WHERE ctid = ANY (ARRAY(SELECT ctid FROM "hookonce".versions WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint FOR UPDATE SKIP LOCKED))
	RETURNING *
)
SELECT count(*) FROM purged

-- Purge versions, next


-- Redrive
WITH redriven AS (
	UPDATE "hookonce".effects SET state = 'failed', tries = 0, deaths = 0, due_at = $2::timestamptz, updated_at = $2::timestamptz
	WHERE id = $1::bigint AND state = 'dead'
	RETURNING id
)
SELECT EXISTS (SELECT 1 FROM redriven), state FROM "hookonce".effects WHERE id = $1::bigint

-- Response
SELECT status, header, body FROM "hookonce".responses WHERE source = $1::text AND key = $2::text

-- StateOf
SELECT state FROM "hookonce".states WHERE entity = $1::text

-- Status
SELECT coalesce(txid_status($1), 'forgotten')

-- Take
WITH fresh AS MATERIALIZED (
	SELECT e.id AS due_id, e.due_at AS since
	FROM (SELECT DISTINCT unnest($1::text[]) AS name) AS asked CROSS JOIN LATERAL (
		SELECT id, due_at FROM "hookonce".effects WHERE name = asked.name AND due_at <= $2::timestamptz AND state <> 'processing'
		ORDER BY due_at, id LIMIT $3::bigint FOR UPDATE SKIP LOCKED
	) AS e
	ORDER BY since, due_id LIMIT $3::bigint
), suspects AS MATERIALIZED (
	SELECT id AS due_id, due_at AS since FROM "hookonce".effects
	WHERE state = 'processing' AND name = ANY ($1::text[]) AND due_at <= $2::timestamptz
	ORDER BY due_at, id LIMIT $5::bigint FOR UPDATE SKIP LOCKED
), due AS (
	SELECT * FROM fresh UNION ALL SELECT * FROM suspects ORDER BY since, due_id LIMIT $3::bigint
), taken AS (
	UPDATE "hookonce".effects AS effects SET deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END,
	tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
	state = 'processing', token = token + 1, due_at = $4::timestamptz, updated_at = $2::timestamptz
	FROM due WHERE effects.id = due_id
	RETURNING effects.*, since
)
SELECT id, source, coalesce(key, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM taken ORDER BY since, id

-- Trace
WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', coalesce($9::text, current_setting('lock_timeout')), true))
INSERT INTO "hookonce".claims AS claims (source, key, state, token, event_type, digest, first_seen, updated_at, last_error, pinned)
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

-- Transition
INSERT INTO "hookonce".states AS states (entity, state, updated_at)
VALUES ($1::text, CASE WHEN $2::text = '' THEN $3::text ELSE '' END, $4::timestamptz)
ON CONFLICT (entity) DO UPDATE SET state = $3::text, updated_at = excluded.updated_at
WHERE states.state = $2::text

