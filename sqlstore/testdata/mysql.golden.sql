-- claim
INSERT INTO hookonce_claims (source, `key`, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(token)

-- complete
UPDATE hookonce_claims SET state = 'done', lease_until = NULL, updated_at = ?, token = LAST_INSERT_ID(token)
			WHERE source = ? AND `key` = ? AND token = ? AND state = 'processing'

-- completeEffect
UPDATE hookonce_effects SET state = 'done', deaths = 0, due_at = NULL, updated_at = ?, token = LAST_INSERT_ID(token)
			WHERE id = ? AND token = ? AND state = 'processing'

-- due
SELECT id, due_at FROM hookonce_effects WHERE name = ? AND due_at <= ? AND state <> 'processing'
			ORDER BY due_at, id LIMIT ?

-- effect
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE id = ?

-- effects, dead
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'dead' AND id > ? ORDER BY id LIMIT ?

-- effects, done
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'done' AND id > ? ORDER BY id LIMIT ?

-- effects, failed
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'failed' AND id > ? ORDER BY id LIMIT ?

-- effects, pending
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'pending' AND id > ? ORDER BY id LIMIT ?

-- effects, processing
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE state = 'processing' AND id > ? ORDER BY id LIMIT ?

-- enqueue
INSERT INTO hookonce_effects (source, `key`, step, name, payload, due_at, enqueued_at, updated_at, last_error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, '')

-- extend
UPDATE hookonce_claims SET lease_until = ?, updated_at = ?, token = LAST_INSERT_ID(token)
			WHERE source = ? AND `key` = ? AND token = ? AND state = 'processing'

-- extendEffect
UPDATE hookonce_effects SET due_at = ?, updated_at = ?, token = LAST_INSERT_ID(token)
			WHERE id = ? AND token = ? AND state = 'processing'

-- fail
UPDATE hookonce_claims SET state = ?, lease_until = NULL, updated_at = ?, last_error = ?,
				pinned = CASE WHEN pinned NOT IN (0, token) THEN pinned WHEN ? THEN token ELSE 0 END, token = LAST_INSERT_ID(token)
			WHERE source = ? AND `key` = ? AND token = ? AND state = 'processing'

-- failEffect
UPDATE hookonce_effects SET state = ?, deaths = 0, due_at = ?, updated_at = ?, last_error = ?, token = LAST_INSERT_ID(token)
			WHERE id = ? AND token = ? AND state = 'processing'

-- forget
DELETE FROM hookonce_claims WHERE source = ? AND `key` = ? AND token = ? AND state = 'processing' AND first_seen = ?

-- keep
REPLACE INTO hookonce_responses (source, `key`, token, status, header, body)
		SELECT source, `key`, token, ?, ?, ? FROM hookonce_claims WHERE source = ? AND `key` = ? AND state = 'done'

-- leave
UPDATE hookonce_claims SET state = ?, lease_until = NULL, event_type = ?, digest = coalesce(?, digest), updated_at = ?,
			last_error = ?, pinned = IF(pinned = 0, ?, pinned), token = LAST_INSERT_ID(greatest(token, ?))
		WHERE source = ? AND `key` = ? AND (pinned = 0 OR coalesce(digest = ?, true)) AND ((token < ? AND (state IN ('failed', 'dead') OR (state = 'processing' AND lease_until <= ?)))
			OR (token = ? AND ((state = 'failed' OR (state = 'dead' AND ? = 'dead'))
				OR (state = 'done' AND first_seen = ? AND updated_at = ?))))

-- lockClaim
SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM hookonce_claims WHERE source = ? AND `key` = ? FOR UPDATE

-- lockEffects
SELECT id, source, coalesce(`key`, ''), step, name, payload, state, token, tries, deaths, due_at, enqueued_at, last_error FROM hookonce_effects WHERE id IN ({ids}) AND due_at <= ? AND (state <> 'processing' OR FIND_IN_SET(id, ?) > 0)
		FOR UPDATE SKIP LOCKED

-- lookup
SELECT state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned FROM hookonce_claims WHERE source = ? AND `key` = ?

-- newest
INSERT INTO hookonce_versions (resource, version, updated_at, kind) VALUES (?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE
			updated_at = IF(kind <> VALUES(kind) OR VALUES(version) > version OR VALUES(version) = version AND kind = 'time',
				VALUES(updated_at), IF(LAST_INSERT_ID(1 + 0 * updated_at), updated_at, NULL)),
			version = IF(kind <> VALUES(kind), VALUES(version), greatest(version, VALUES(version))),
			kind = VALUES(kind)

-- purge done, along
DELETE FROM hookonce_responses WHERE source = ? AND `key` IN ({ids})

-- purge done, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_claims WHERE source = ? AND state = 'done' AND updated_at >= ? AND updated_at < ? ORDER BY updated_at LIMIT ?) AS old

-- purge done, look
SELECT CONCAT('0x', HEX(`key`)) FROM hookonce_claims WHERE source = ? AND state = 'done' AND updated_at >= ? AND updated_at < ? ORDER BY updated_at LIMIT ? FOR UPDATE

-- purge done, next
SELECT min(source) FROM hookonce_claims WHERE source > ?

-- purge done, rows
DELETE FROM hookonce_claims WHERE source = ? AND `key` IN ({ids})

-- purge effects, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_effects WHERE source = ? AND state = 'done' AND updated_at >= ? AND updated_at < ? ORDER BY updated_at LIMIT ?) AS old

-- purge effects, look
SELECT CAST(id AS CHAR) FROM hookonce_effects WHERE source = ? AND state = 'done' AND updated_at >= ? AND updated_at < ? ORDER BY updated_at LIMIT ? FOR UPDATE

-- purge effects, next
SELECT min(source) FROM hookonce_effects WHERE source > ?

-- purge effects, rows
DELETE FROM hookonce_effects WHERE source = ? AND id IN ({ids})

-- purge failed, along
DELETE FROM hookonce_responses WHERE source = ? AND `key` IN ({ids})

-- purge failed, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_claims WHERE source = ? AND state IN ('failed', 'dead') AND updated_at >= ? AND updated_at < ? ORDER BY updated_at LIMIT ?) AS old

-- purge failed, look
SELECT CONCAT('0x', HEX(`key`)) FROM hookonce_claims WHERE source = ? AND state IN ('failed', 'dead') AND updated_at >= ? AND updated_at < ? ORDER BY updated_at LIMIT ? FOR UPDATE

-- purge failed, next
SELECT min(source) FROM hookonce_claims WHERE source > ?

-- purge failed, rows
DELETE FROM hookonce_claims WHERE source = ? AND `key` IN ({ids})

-- purge states, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_states WHERE updated_at >= ? AND updated_at < ? LIMIT ?) AS old

-- purge states, look
SELECT CONCAT('0x', HEX(entity)) FROM hookonce_states WHERE updated_at >= ? AND updated_at < ? LIMIT ?

-- purge states, rows
DELETE FROM hookonce_states WHERE entity IN ({ids}) AND updated_at >= ? AND updated_at < ?

-- purge versions, count
SELECT count(*) FROM (SELECT 1 AS one FROM hookonce_versions WHERE updated_at >= ? AND updated_at < ? LIMIT ?) AS old

-- purge versions, look
SELECT CONCAT('0x', HEX(resource)) FROM hookonce_versions WHERE updated_at >= ? AND updated_at < ? LIMIT ?

-- purge versions, rows
DELETE FROM hookonce_versions WHERE resource IN ({ids}) AND updated_at >= ? AND updated_at < ?

-- redrive
UPDATE hookonce_effects SET state = 'failed', tries = 0, deaths = 0, due_at = ?, updated_at = ?, token = LAST_INSERT_ID(token)
			WHERE id = ? AND state = 'dead'

-- response
SELECT status, header, body FROM hookonce_responses WHERE source = ? AND `key` = ?

-- state
SELECT state FROM hookonce_states WHERE entity = ? FOR UPDATE

-- suspects
SELECT id, due_at FROM hookonce_effects WHERE name = ? AND due_at <= ? AND state = 'processing'
			ORDER BY due_at, id LIMIT ?

-- takeEffects
UPDATE hookonce_effects SET deaths = deaths + CASE WHEN state = 'processing' THEN 1 ELSE 0 END,
	tries = tries + CASE WHEN state = 'processing' THEN 0 ELSE 1 END,
	state = 'processing', token = token + 1, due_at = ?, updated_at = ? WHERE id IN ({ids})

-- takeOver
UPDATE hookonce_claims SET state = ?, token = LAST_INSERT_ID(token + 1), lease_until = ?, event_type = ?, digest = ?, updated_at = ?, pinned = ?
		WHERE source = ? AND `key` = ? AND token = ? AND state = ? AND first_seen = ? AND pinned = ? AND (state IN ('failed', 'dead') OR (state = 'processing' AND lease_until <= ?))

-- transition
INSERT INTO hookonce_states (entity, state, updated_at) VALUES (?, IF(CAST(? AS BINARY) = '', ?, ''), ?)
		ON DUPLICATE KEY UPDATE
			updated_at = IF(state = ?, VALUES(updated_at), IF(LAST_INSERT_ID(1 + 0 * updated_at), updated_at, NULL)),
			state = IF(state = ?, ?, state)

