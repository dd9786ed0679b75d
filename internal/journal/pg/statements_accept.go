package pg

// plainSQL stores what is new of entries that are in no ordering group and have no logical key, and returns the ids of
// the others. It does what acceptSQL does, and is faster where most
// events are: the server sets up every part of a statement, those with nothing to do too.
const plainSQL = `WITH ` + durable + `, won AS (
	INSERT INTO {{.}}events (id, source, key, event_type, digest, received_at, resource, rank, vouched, unrouted, rank_kind)
	SELECT e.* FROM durable, unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[],
		$7::text[], $8::bigint[], $9::smallint[], $10::bool[], $16::text[]) AS e
	ON CONFLICT (source, key) DO NOTHING
	RETURNING id
), stored AS (
	INSERT INTO {{.}}bodies (event_id, header, body)
	SELECT b.* FROM unnest($1::bigint[], $17::bytea[], $18::bytea[]) AS b (id, header, body)
	WHERE b.id IN (SELECT id FROM won)
), opened AS (
	INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at)
	SELECT d.id, d.destination,
		CASE WHEN d.hold THEN 'processing' ELSE 'pending' END, d.hold::int, d.hold::int,
		CASE WHEN d.hold THEN $15::timestamptz ELSE $14::timestamptz END
	FROM unnest($11::bigint[], $12::text[], $13::bool[]) AS d (id, destination, hold)
	WHERE d.id IN (SELECT id FROM won)
)
SELECT id, 0, '' FROM unnest($1::bigint[]) AS e (id) WHERE id NOT IN (SELECT id FROM won)`

// acceptSQL stores what is new. It returns the ids of the entries that are not, and the earlier logical duplicates of
// those that have one. Whatever several batches can share is locked in one order: events by source and
// key, which is the order of the rows, then logical keys, then ordering groups. The bodies are the last parameter,
// because pgx copies what it has encoded when more follows.
const acceptSQL = `WITH ` + durable + `, won AS (
	INSERT INTO {{.}}events (id, source, key, event_type, digest, received_at, resource, rank, vouched, unrouted, listed, rank_kind)
	SELECT e.* FROM durable, unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[],
		$7::text[], $8::bigint[], $9::smallint[], $10::bool[], $22::bool[], $24::text[]) AS e
	ON CONFLICT (source, key) DO NOTHING
	RETURNING id
), stored AS (
	INSERT INTO {{.}}bodies (event_id, header, body)
	SELECT b.* FROM unnest($1::bigint[], $25::bytea[], $26::bytea[]) AS b (id, header, body)
	WHERE b.id IN (SELECT id FROM won)
), logical AS (
	SELECT l.* FROM unnest($17::bigint[], $18::text[], $19::text[], $20::text[], $21::bool[])
		AS l (id, source, logical, key, dropped)
	WHERE l.id IN (SELECT id FROM won)
), owner AS (
	INSERT INTO {{.}}twins (event_id, first, source, logical, key)
	SELECT DISTINCT ON (source, logical) id, id, source, logical, key FROM logical ORDER BY source, logical, id
	ON CONFLICT (source, logical) DO UPDATE SET first = twins.first
	RETURNING event_id, source, logical, key
), logical_duplicate AS (
	INSERT INTO {{.}}twins (event_id, first, dropped)
	SELECT l.id, o.event_id, l.dropped FROM logical l JOIN owner o ON o.source = l.source AND o.logical = l.logical
	WHERE l.id <> o.event_id
	RETURNING event_id, first, dropped
), delivery AS (
	SELECT d.* FROM unnest($11::bigint[], $12::text[], $13::bool[], $14::text[], $23::smallint[]) AS d (id, destination, hold, resource, origin)
	WHERE d.id IN (SELECT id FROM won) AND d.id NOT IN (SELECT event_id FROM logical_duplicate WHERE dropped)
), opened AS (
	INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at, resource, origin)
	SELECT d.id, d.destination,
		CASE WHEN d.hold THEN 'processing' ELSE 'pending' END, d.hold::int, d.hold::int,
		CASE WHEN d.hold THEN $16::timestamptz ELSE $15::timestamptz END, d.resource, coalesce(d.origin, 0)
	FROM delivery d
), queued AS (
	INSERT INTO {{.}}lanes (destination, resource, due_at)
	SELECT DISTINCT destination, resource, $15::timestamptz FROM delivery
	WHERE resource IS NOT NULL ORDER BY destination, resource
	ON CONFLICT (destination, resource) DO UPDATE SET due_at = excluded.due_at
	WHERE lanes.event_id IS NULL AND lanes.due_at > excluded.due_at
)
SELECT id, 0, '' FROM unnest($1::bigint[]) AS e (id) WHERE id NOT IN (SELECT id FROM won)
UNION ALL
SELECT t.event_id, t.first, o.key FROM logical_duplicate t JOIN owner o ON o.event_id = t.first`

// copiesSQL finds what is stored under the given keys and makes its failed and dead deliveries due, or
// those of the earlier logical duplicate that stand for it. They are locked in one order, like everything that
// concurrent batches can share. Nothing is made due for an entry from a list, for one that went past the store, nor as long as
// the event has no digest to compare a copy with: the last column says so. What is found is acknowledged, so that it has to be
// where commits wait for it to be.
// That a delivery failed is said in words by which the index of those is not used: it would be gone through for each copy, after
// an outage that the statistics know nothing of.
const copiesSQL = `WITH ` + durable + `, ` + replicated + `, first AS (
	SELECT c.n, e.id, e.digest, coalesce(t.first, e.id) AS delivered, coalesce(c.listed, c.bypassed, false) AS idle,
		c.listed IS NULL AND e.listed IS NOT NULL AND e.digest IS NULL AS unsupplied
	FROM unnest($1::int[], $2::text[], $3::text[], $5::bool[], $6::bool[]) AS c (n, source, key, listed, bypassed)
	JOIN {{.}}events e ON e.source = c.source AND e.key = c.key
	LEFT JOIN {{.}}twins t ON t.event_id = e.id AND t.dropped
), failed AS (
	SELECT d.event_id, d.destination
	FROM {{.}}deliveries d, durable
	WHERE d.event_id IN (SELECT delivered FROM first WHERE NOT idle AND NOT unsupplied) AND d.state NOT IN ('pending', 'processing')
	ORDER BY d.event_id, d.destination
	FOR UPDATE OF d
), redriven AS (
	UPDATE {{.}}deliveries d SET state = 'pending', tries = 0, due_at = $4, origin = 1
	FROM failed f WHERE d.event_id = f.event_id AND d.destination = f.destination
	RETURNING d.event_id, d.destination, d.resource
), queued AS (
	INSERT INTO {{.}}lanes (destination, resource, due_at)
	SELECT DISTINCT destination, resource, $4::timestamptz FROM redriven
	WHERE resource IS NOT NULL ORDER BY destination, resource
	ON CONFLICT (destination, resource) DO UPDATE SET due_at = excluded.due_at
	WHERE lanes.event_id IS NULL AND lanes.due_at > excluded.due_at
)
SELECT n, id, digest,
	NOT EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = delivered),
	NOT idle AND delivered IN (SELECT event_id FROM redriven), unsupplied
FROM first, replicated`

// supplySQL gives events that were stored from a list the digests of their first copies from a webhook, as far as nobody
// has done so. The events are locked in the order of source and key.
const supplySQL = `WITH ` + durable + `, stored AS (
	SELECT e.id, c.digest
	FROM durable, unnest($1::text[], $2::text[], $3::bytea[]) AS c (source, key, digest)
	JOIN {{.}}events e ON e.source = c.source AND e.key = c.key AND e.listed AND e.digest IS NULL
	ORDER BY e.source, e.key
	FOR UPDATE OF e
)
UPDATE {{.}}events e SET digest = stored.digest FROM stored WHERE e.id = stored.id`

// releaseSQL takes the key from events of which not every wanted delivery is still to come: waits and was never taken, for
// whoever had one may have looked, and keep that it did. The events are locked in the order of source and key. That the
// deliveries are not is no matter: what begins after the snapshot begins after the entry arrived.
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
		WHERE d.event_id = stored.id AND d.destination = w.destination AND d.token = 0 AND d.state = 'pending')))`
