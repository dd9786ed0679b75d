package pg

import "strings"

// statements are the texts of everything that the store asks, with the schema filled in.
type statements struct {
	accept, copies, release  string
	take, extend, finish     string
	purgeBodies, purgeEvents string
	openCounts, events       string
	ping, writer             string
}

func newStatements(prefix string) statements {
	in := func(text string) string { return strings.ReplaceAll(text, "{{.}}", prefix) }
	return statements{
		accept: in(acceptSQL), copies: in(copiesSQL), release: in(releaseSQL),
		take: in(takeSQL), extend: in(extendSQL), finish: in(finishSQL),
		purgeBodies: in(purgeBodiesSQL), purgeEvents: in(purgeEventsSQL),
		openCounts: in(openCountsSQL), events: in(eventsSQL),
		ping: in(pingSQL), writer: in(writerSQL),
	}
}

// durable is a common table expression of exactly one row that makes the statement's own transaction
// commit synchronously when the server or the role is set to lose commits in a crash. A SET on the
// connection would not do: behind a transaction pooler it lands on somebody else's connection.
const durable = `durable AS (
	SELECT count(set_config('synchronous_commit', 'on', true))
	WHERE current_setting('synchronous_commit') = 'off')`

// acceptSQL stores what is new, and returns the ids of the entries that are not. The rows come in
// the order of source and key, so that concurrent batches wait for each other in one order. The
// bodies are the last parameter, because pgx copies what it has encoded when more follows.
const acceptSQL = `WITH ` + durable + `, won AS (
	INSERT INTO {{.}}events (id, source, key, event_type, digest, received_at)
	SELECT e.* FROM durable,
		unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[]) AS e
	ON CONFLICT (source, key) DO NOTHING
	RETURNING id
), stored AS (
	INSERT INTO {{.}}bodies (event_id, header, body)
	SELECT b.* FROM unnest($1::bigint[], $12::bytea[], $13::bytea[]) AS b (id, header, body)
	WHERE b.id IN (SELECT id FROM won)
), opened AS (
	INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at)
	SELECT d.id, d.destination,
		CASE WHEN d.hold THEN 'processing' ELSE 'pending' END, d.hold::int, d.hold::int,
		CASE WHEN d.hold THEN $11::timestamptz ELSE $10::timestamptz END
	FROM unnest($7::bigint[], $8::text[], $9::bool[]) AS d (id, destination, hold)
	WHERE d.id IN (SELECT id FROM won)
)
SELECT id FROM unnest($1::bigint[]) AS e (id) WHERE id NOT IN (SELECT id FROM won)`

// copiesSQL finds what is stored under the given keys and makes its failed and dead deliveries due.
// They are locked in one order, like everything that concurrent batches can share.
const copiesSQL = `WITH ` + durable + `, first AS (
	SELECT c.n, e.id, e.digest
	FROM unnest($1::int[], $2::text[], $3::text[]) AS c (n, source, key)
	JOIN {{.}}events e ON e.source = c.source AND e.key = c.key
), failed AS (
	SELECT d.event_id, d.destination
	FROM {{.}}deliveries d JOIN first ON d.event_id = first.id, durable
	WHERE d.state IN ('failed', 'dead')
	ORDER BY d.event_id, d.destination
	FOR UPDATE OF d
), redriven AS (
	UPDATE {{.}}deliveries d SET state = 'pending', tries = 0, due_at = $4
	FROM failed f WHERE d.event_id = f.event_id AND d.destination = f.destination
	RETURNING d.event_id
)
SELECT n, id, digest,
	NOT EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = id),
	id IN (SELECT event_id FROM redriven)
FROM first`

// releaseSQL takes the key from events of which not every wanted delivery is still to come. The events
// are locked in the order of source and key. That the deliveries are not is no matter: what begins after
// the snapshot begins after the entry arrived.
const releaseSQL = `WITH ` + durable + `, stored AS (
	SELECT c.n, e.id
	FROM durable, unnest($1::int[], $2::text[], $3::text[]) AS c (n, source, key)
	JOIN {{.}}events e ON e.source = c.source AND e.key = c.key
	ORDER BY e.source, e.key
	FOR UPDATE OF e
), wanted AS (
	SELECT n, destination FROM unnest($4::int[], $5::text[]) AS w (n, destination)
)
UPDATE {{.}}events e SET key = NULL FROM stored
WHERE e.id = stored.id AND (
	NOT EXISTS (SELECT FROM wanted w WHERE w.n = stored.n)
	OR EXISTS (SELECT FROM wanted w WHERE w.n = stored.n AND NOT EXISTS (
		SELECT FROM {{.}}deliveries d
		WHERE d.event_id = stored.id AND d.destination = w.destination AND d.state <> 'processing')))`

// takeSQL leases what is due. A delivery without its body ends as dead, and is not returned. What
// would go beyond the bytes is weighed without being read, and left.
const takeSQL = `WITH ` + durable + `, due AS (
	SELECT event_id, destination, due_at FROM {{.}}deliveries
	WHERE due_at <= $1 AND ($6::text[] IS NULL OR destination = ANY ($6))
	ORDER BY due_at, event_id, destination
	LIMIT $3
	FOR UPDATE SKIP LOCKED
), weighed AS (
	SELECT due.*, sum(coalesce(octet_length(b.header) + octet_length(b.body), 0))
		OVER (ORDER BY due_at, due.event_id, destination ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
	FROM due LEFT JOIN {{.}}bodies b ON b.event_id = due.event_id
), taken AS (
	UPDATE {{.}}deliveries d SET
		state = CASE WHEN b.event_id IS NULL THEN 'dead' ELSE 'processing' END,
		due_at = CASE WHEN b.event_id IS NULL THEN NULL ELSE $2::timestamptz END,
		last_error = CASE WHEN b.event_id IS NULL THEN $4 ELSE d.last_error END,
		token = d.token + (b.event_id IS NOT NULL)::int,
		tries = d.tries + (b.event_id IS NOT NULL)::int
	FROM durable, weighed due LEFT JOIN {{.}}bodies b ON b.event_id = due.event_id
	WHERE d.event_id = due.event_id AND d.destination = due.destination
		AND ($5::bigint = 0 OR due.before IS NULL OR due.before < $5)
	RETURNING d.event_id, d.destination, d.token, d.tries, b.header, b.body, due.due_at
)
SELECT t.event_id, t.destination, t.token, t.tries, t.header, t.body,
	e.source, coalesce(e.key, ''), e.event_type, e.received_at
FROM taken t JOIN {{.}}events e ON e.id = t.event_id
WHERE t.header IS NOT NULL
ORDER BY t.due_at, t.event_id, t.destination`

// extendSQL moves leases and returns the deliveries that still are held.
const extendSQL = `WITH ` + durable + `
UPDATE {{.}}deliveries d SET due_at = $4
FROM durable, unnest($1::bigint[], $2::text[], $3::bigint[]) AS h (event_id, destination, token)
WHERE d.event_id = h.event_id AND d.destination = h.destination
	AND d.token = h.token AND d.state = 'processing'
RETURNING d.event_id, d.destination, d.token`

// finishSQL applies outcomes and returns the numbers of those whose token was current.
const finishSQL = `WITH ` + durable + `, outcome AS (
	SELECT o.* FROM durable, unnest($1::int[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
		$6::timestamptz[], $7::int[], $8::text[], $9::timestamptz[], $10::bigint[])
		AS o (n, event_id, destination, token, state, due_at, status, error, started_at, duration_us)
), done AS (
	DELETE FROM {{.}}deliveries d USING outcome o
	WHERE d.event_id = o.event_id AND d.destination = o.destination
		AND d.token = o.token AND d.state = 'processing' AND o.state = 'done'
	RETURNING o.n
), kept AS (
	UPDATE {{.}}deliveries d SET state = o.state, due_at = o.due_at,
		tries = d.tries - (o.state = 'pending')::int,
		last_error = CASE WHEN o.state = 'pending' THEN d.last_error ELSE o.error END
	FROM outcome o
	WHERE d.event_id = o.event_id AND d.destination = o.destination
		AND d.token = o.token AND d.state = 'processing' AND o.state <> 'done'
	RETURNING o.n
), applied AS (
	SELECT n FROM done UNION ALL SELECT n FROM kept
), tried AS (
	INSERT INTO {{.}}attempts (event_id, destination, token, outcome, status, error, started_at, duration_us)
	SELECT o.event_id, o.destination, o.token, o.state, o.status, o.error, o.started_at, o.duration_us
	FROM outcome o WHERE o.state <> 'pending' AND o.n IN (SELECT n FROM applied)
)
SELECT n FROM applied`

// purgeBodiesSQL deletes old bodies and attempts, oldest first, of events with no open delivery.
const purgeBodiesSQL = `WITH old AS (
	SELECT b.event_id FROM {{.}}bodies b
	WHERE b.event_id < $1
		AND NOT EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = b.event_id)
	ORDER BY b.event_id LIMIT $2
), tried AS (
	DELETE FROM {{.}}attempts a USING old WHERE a.event_id = old.event_id
)
DELETE FROM {{.}}bodies b USING old WHERE b.event_id = old.event_id`

// purgeEventsSQL deletes old events, oldest first, that have neither a body nor an open delivery.
const purgeEventsSQL = `WITH old AS (
	SELECT e.id FROM {{.}}events e
	WHERE e.id < $1
		AND NOT EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = e.id)
		AND NOT EXISTS (SELECT FROM {{.}}bodies b WHERE b.event_id = e.id)
	ORDER BY e.id LIMIT $2
)
DELETE FROM {{.}}events e USING old WHERE e.id = old.id`

const openCountsSQL = `SELECT state, count(*) FROM {{.}}deliveries GROUP BY state`

// eventsSQL estimates the number of events: what the last ANALYZE counted, or what the server's
// activity statistics believe, which know about a young table sooner.
const eventsSQL = `SELECT greatest(reltuples::bigint, pg_stat_get_live_tuples(oid), 0)
	FROM pg_class WHERE oid = to_regclass('{{.}}events')`

const pingSQL = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool`

const writerSQL = `SELECT nextval('{{.}}writers')`
