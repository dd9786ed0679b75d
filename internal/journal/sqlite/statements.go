package sqlite

import "github.com/hookonce/hookonce/internal/journal"

// Tables keep the names that the schema gave them: lanes has the ordering groups, twins the logical duplicates,
// sightings the duplicate receipts.

const insertEventSQL = `INSERT INTO {{.}}events (id, source, key, event_type, digest, received_at, resource, rank, rank_kind, vouched, unrouted, listed)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, key) DO NOTHING`

const insertBodySQL = `INSERT INTO {{.}}bodies (event_id, header, body) VALUES (?, ?, ?)`

const insertDeliverySQL = `INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at, resource, origin)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

// firstSQL finds what is stored under a key, the event whose deliveries stand for it, and whether the digest is still to be
// supplied.
const firstSQL = `SELECT e.id, e.digest, coalesce(t.first, e.id), e.listed IS NOT NULL AND e.digest IS NULL FROM {{.}}events e
	LEFT JOIN {{.}}twins t ON t.event_id = e.id AND t.dropped WHERE e.source = ? AND e.key = ?`

const supplyDigestSQL = `UPDATE {{.}}events SET digest = ? WHERE id = ?`

const redriveSQL = `UPDATE {{.}}deliveries SET state = 'pending', tries = 0, due_at = ?, origin = 1
	WHERE event_id = ? AND state IN ('failed', 'dead') RETURNING destination, resource`

const hasOpenSQL = `SELECT 1 FROM {{.}}deliveries WHERE event_id = ? LIMIT 1`

// comingSQL finds where a delivery is still to begin: waits, and was never taken.
const comingSQL = `SELECT destination FROM {{.}}deliveries WHERE event_id = ? AND token = 0 AND state = 'pending'`

const releaseKeySQL = `UPDATE {{.}}events SET key = NULL WHERE id = ?`

const ownLogicalSQL = `INSERT INTO {{.}}twins (event_id, first, source, logical, key) VALUES (?1, ?1, ?2, ?3, ?4)
	ON CONFLICT (source, logical) DO NOTHING`

const ownerSQL = `SELECT event_id, key FROM {{.}}twins WHERE source = ? AND logical = ?`

const insertLogicalDuplicateSQL = `INSERT INTO {{.}}twins (event_id, first, dropped) VALUES (?, ?, ?)`

// openGroupSQL has an ordering group looked at when it gets another delivery. One whose delivery is processing is
// looked at when that ends.
const openGroupSQL = `INSERT INTO {{.}}lanes (destination, resource, due_at) VALUES (?, ?, ?)
	ON CONFLICT (destination, resource) DO UPDATE SET due_at = excluded.due_at
	WHERE event_id IS NULL AND due_at > excluded.due_at`

const groupsSQL = `SELECT resource, coalesce(event_id, 0) FROM {{.}}lanes
	WHERE destination = ? AND due_at <= ? ORDER BY due_at LIMIT ?`

// turnSQL finds whose turn it is in an ordering group: the delivery that is processing, or else the oldest one. ?3 is
// the event that had the turn last.
const turnSQL = `SELECT event_id, due_at, 1 FROM {{.}}deliveries
		WHERE event_id = ?3 AND destination = ?1 AND state = 'processing'
	UNION ALL
	SELECT * FROM (SELECT event_id, due_at, 0 FROM {{.}}deliveries
		WHERE destination = ?1 AND resource = ?2 AND state <> 'dead' ORDER BY event_id LIMIT 1)
	LIMIT 1`

const moveGroupSQL = `UPDATE {{.}}lanes SET due_at = ?3, event_id = ?4 WHERE destination = ?1 AND resource = ?2`

const dropGroupSQL = `DELETE FROM {{.}}lanes WHERE destination = ? AND resource = ?`

// freeGroupSQL ends the turn of a delivery, or that of nobody, and has the ordering group looked at.
const freeGroupSQL = `UPDATE {{.}}lanes SET due_at = min(due_at, ?4), event_id = NULL
	WHERE destination = ?1 AND resource = ?2 AND coalesce(event_id, ?3) = ?3`

// targetsSQL are the destinations that there is open work for.
const targetsSQL = `SELECT DISTINCT destination FROM {{.}}deliveries WHERE due_at IS NOT NULL`

// dueSQL leaves the bodies alone: sorting would load all of them.
const dueSQL = `SELECT event_id, due_at FROM {{.}}deliveries
	WHERE destination = ? AND resource IS NULL AND due_at <= ? ORDER BY due_at, event_id LIMIT ?`

const bodySQL = `SELECT header, body FROM {{.}}bodies WHERE event_id = ?`

// leaseSQL counts no try where a lease ran out: see [journal.Worker].
const leaseSQL = `UPDATE {{.}}deliveries SET state = 'processing', token = token + 1, tries = tries + (state <> 'processing'), due_at = ?3
	WHERE event_id = ?1 AND destination = ?2`

// workSQL describes a leased delivery. ?3: whether to compare its rank.
const workSQL = `SELECT d.token, d.tries, d.forced, d.origin, e.source, coalesce(e.key, ''), e.event_type, e.received_at,
		coalesce(e.resource, ''), coalesce(e.rank, 0), coalesce(e.rank_kind, ''),
		?3 AND e.rank IS NOT NULL AND EXISTS (SELECT 1 FROM {{.}}newest n
			WHERE n.destination = d.destination AND ` + journal.NewerSQL + `),
		coalesce((SELECT f.key FROM {{.}}twins t JOIN {{.}}twins f ON f.event_id = t.first
			WHERE t.event_id = e.id AND t.first <> e.id), ''), e.vouched, d.resource IS NOT NULL
	FROM {{.}}deliveries d JOIN {{.}}events e ON e.id = d.event_id
	WHERE d.event_id = ?1 AND d.destination = ?2`

// burySQL makes dead a delivery that has nothing to deliver.
const burySQL = `UPDATE {{.}}deliveries SET state = 'dead', due_at = NULL, last_error = ?, error_kind = ?, status = 0
	WHERE event_id = ? AND destination = ?`

const extendSQL = `UPDATE {{.}}deliveries SET due_at = ?
	WHERE event_id = ? AND destination = ? AND token = ? AND state = 'processing'`

const doneSQL = `DELETE FROM {{.}}deliveries
	WHERE event_id = ? AND destination = ? AND token = ? AND state = 'processing'`

// keptSQL records every outcome but done; handing work back takes its try back and keeps the last error.
const keptSQL = `UPDATE {{.}}deliveries SET state = ?4, due_at = ?5,
		tries = tries - (?4 = 'pending' OR ?7), last_error = iif(?4 = 'pending', last_error, ?6),
		error_kind = iif(?4 = 'pending', error_kind, ?8), status = iif(?4 = 'pending', status, ?9)
	WHERE event_id = ?1 AND destination = ?2 AND token = ?3 AND state = 'processing'`

const insertAttemptSQL = `INSERT INTO {{.}}attempts
	(event_id, destination, token, outcome, status, error, started_at, duration_us, answer, error_kind)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// raiseSQL has a rank of another kind than the newest one take its place, because the two cannot be compared: see
// [hookonce.Rank.Supersedes].
const raiseSQL = `INSERT INTO {{.}}newest (destination, resource, rank, rank_kind, event_id) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (destination, resource) DO UPDATE SET rank = excluded.rank, rank_kind = excluded.rank_kind, event_id = excluded.event_id
	WHERE rank < excluded.rank OR rank_kind <> excluded.rank_kind`

// endSQL ends a delivery whoever has it.
const endSQL = `DELETE FROM {{.}}deliveries WHERE event_id = ? AND destination = ? RETURNING token, resource`

// triedSQL finds the last token of the attempts at a delivery, and whether one of them, which began at ?3, is on record as done.
const triedSQL = `SELECT coalesce(max(token), 0), coalesce(max(outcome = 'done' AND started_at = ?3), 0)
	FROM {{.}}attempts WHERE event_id = ?1 AND destination = ?2`

const insertAnswerSQL = `INSERT INTO {{.}}answers (event_id, destination, status, header, body) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (event_id, destination) DO UPDATE
	SET status = excluded.status, header = excluded.header, body = excluded.body`

const orphansSQL = `UPDATE {{.}}deliveries SET due_at = ? WHERE state = 'processing'`

const orphanGroupsSQL = `UPDATE {{.}}lanes SET due_at = ?1 WHERE due_at > ?1 AND event_id IS NOT NULL`

const lastIDSQL = `SELECT coalesce(max(id), 0) FROM {{.}}events`

// probeSQL stores a body of no event: their identifiers begin at 1.
const probeSQL = `INSERT INTO {{.}}bodies (event_id, header, body) VALUES (0, x'', zeroblob(?))`

const unprobeSQL = `DELETE FROM {{.}}bodies WHERE event_id = 0`
