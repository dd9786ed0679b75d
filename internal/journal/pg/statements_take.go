package pg

import "github.com/hookonce/hookonce/internal/journal"

// targetsSQL are the destinations that there is open work for.
const targetsSQL = `SELECT DISTINCT destination FROM {{.}}deliveries WHERE due_at IS NOT NULL`

// wanted is what all statements that take begin with: $1 now, $2 lease, $3 error of a missing body, $4
// bytes, then the parts of the destinations.
const wanted = `WITH ` + durable + `, want AS (
	SELECT * FROM unnest($5::text[], $6::int[], $7::bigint[], $8::bool[]) AS w (destination, deliveries, bytes, stale)
)`

// takeSQL leases what is due and in no ordering group. The limit ends the search, so no more is locked than is
// taken, and the destinations come to their turn in the order in which they are given.
const takeSQL = wanted + `, due AS (
	SELECT d.* FROM want w, LATERAL (
		SELECT event_id, destination, due_at FROM {{.}}deliveries d
		WHERE d.destination = w.destination AND d.resource IS NULL AND d.due_at <= $1
		ORDER BY d.due_at, d.event_id LIMIT w.deliveries
		FOR UPDATE SKIP LOCKED
	) d
	LIMIT $9
)` + lease + leased

// lease leases what is in due, until there are bytes enough. What would go beyond is weighed without
// being read, and left. A delivery without its body ends as dead, and is not returned. One that is taken over costs no try:
// see [journal.Worker].
const lease = `, weighed AS (
	SELECT due.*, sum(coalesce(octet_length(b.header) + octet_length(b.body), 0)) OVER everything AS before,
		sum(coalesce(octet_length(b.header) + octet_length(b.body), 0)) OVER destination AS before_there
	FROM due ` + bodyOfDue + `
	WINDOW everything AS (ORDER BY due_at, due.event_id, destination ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
		destination AS (PARTITION BY destination ORDER BY due_at, due.event_id
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), taken AS (
	UPDATE {{.}}deliveries d SET
		state = CASE WHEN b.event_id IS NULL THEN 'dead' ELSE 'processing' END,
		due_at = CASE WHEN b.event_id IS NULL THEN NULL ELSE $2::timestamptz END,
		last_error = CASE WHEN b.event_id IS NULL THEN $3 ELSE d.last_error END,
		error_kind = CASE WHEN b.event_id IS NULL THEN '` + string(journal.ErrorBodyGone) + `' ELSE d.error_kind END,
		status = CASE WHEN b.event_id IS NULL THEN 0 ELSE d.status END,
		token = d.token + (b.event_id IS NOT NULL)::int,
		tries = d.tries + (b.event_id IS NOT NULL AND d.state <> 'processing')::int
	FROM durable, weighed due JOIN want w ON w.destination = due.destination
		` + bodyOfDue + `
	WHERE d.event_id = due.event_id AND d.destination = due.destination
		AND ($4::bigint = 0 OR due.before IS NULL OR due.before < $4)
		AND (w.bytes = 0 OR due.before_there IS NULL OR due.before_there < w.bytes)
	RETURNING d.event_id, d.destination, d.token, d.tries, d.forced, d.origin, d.resource, b.header, b.body, due.due_at, w.stale
)`

// bodyOfDue joins the body of what is due, wherever it is. It looks for each by itself, in the one partition
// that it can be in: the server has no other way to carry out a lateral join.
const bodyOfDue = `LEFT JOIN LATERAL (
			SELECT event_id, header, body FROM {{.}}bodies WHERE event_id = due.event_id
			UNION ALL SELECT event_id, header, body FROM {{.}}kept_bodies WHERE event_id = due.event_id
		) b ON true`

// leased returns what was taken.
const leased = `
SELECT t.event_id, t.destination, t.token, t.tries, t.forced, t.origin, t.header, t.body,
	e.source, coalesce(e.key, ''), e.event_type, e.received_at, coalesce(e.resource, ''), t.resource IS NOT NULL, coalesce(e.rank, 0), coalesce(e.rank_kind, ''), e.vouched,
	CASE WHEN t.stale AND e.rank IS NOT NULL
		THEN EXISTS (SELECT FROM {{.}}newest n WHERE n.destination = t.destination AND ` + journal.NewerSQL + `) ELSE false END,
	coalesce((SELECT f.key FROM {{.}}twins s JOIN {{.}}twins f ON f.event_id = s.first
		WHERE s.event_id = e.id AND s.first <> e.id), '')
FROM taken t JOIN {{.}}events e ON e.id = t.event_id
WHERE t.header IS NOT NULL
ORDER BY t.due_at, t.event_id, t.destination`

// groupsDueSQL reports whether there is an ordering group to look at.
const groupsDueSQL = `SELECT EXISTS (SELECT FROM {{.}}lanes WHERE destination = ANY ($1) AND due_at <= $2)`

// groupsSQL locks the ordering groups that are to be looked at and that nobody else looks at.
const groupsSQL = `SELECT l.* FROM unnest($1::text[], $2::int[]) AS w (destination, deliveries), LATERAL (
		SELECT destination, resource FROM {{.}}lanes l
		WHERE l.destination = w.destination AND l.due_at <= $3
		ORDER BY l.due_at LIMIT w.deliveries
		FOR UPDATE SKIP LOCKED
	) l
	LIMIT $4`

// turnsSQL leases in each of the given ordering groups the delivery whose turn it is: the one that is processing, or
// else the oldest that is not dead. The ordering groups must have been locked by an earlier statement of the
// transaction: then everything that happened in them is in this one's snapshot, and nothing else can
// happen until the commit.
const turnsSQL = wanted + `, turn AS (
	SELECT l.destination, l.resource, coalesce(p.event_id, o.event_id) AS event_id,
		coalesce(p.due_at, o.due_at) AS due_at, p.event_id AS begun
	FROM unnest($9::text[], $10::text[]) AS w (destination, resource)
	JOIN {{.}}lanes l ON l.destination = w.destination AND l.resource = w.resource
	LEFT JOIN {{.}}deliveries p ON p.event_id = l.event_id AND p.destination = l.destination AND p.state = 'processing'
	LEFT JOIN LATERAL (
		SELECT d.event_id, d.due_at FROM {{.}}deliveries d
		WHERE d.destination = l.destination AND d.resource = l.resource AND d.state <> 'dead' AND p.event_id IS NULL
		ORDER BY d.event_id LIMIT 1
	) o ON true
), empty AS (
	DELETE FROM {{.}}lanes l USING turn t
	WHERE l.destination = t.destination AND l.resource = t.resource AND t.event_id IS NULL
), waiting AS (
	UPDATE {{.}}lanes l SET due_at = t.due_at, event_id = t.begun FROM turn t
	WHERE l.destination = t.destination AND l.resource = t.resource AND t.due_at > $1
), due AS (
	SELECT d.event_id, d.destination, t.due_at FROM turn t
	JOIN {{.}}deliveries d ON d.event_id = t.event_id AND d.destination = t.destination
	WHERE t.due_at <= $1 AND d.due_at <= $1
	FOR UPDATE OF d SKIP LOCKED
)` + lease + `, moved AS (
	UPDATE {{.}}lanes l SET due_at = $2, event_id = t.event_id FROM taken t
	WHERE l.destination = t.destination AND l.resource = t.resource AND t.header IS NOT NULL
)` + leased

// choicesSQL finds what may be taken for a destination: $1, at $2, among $3 from each end of what is due and
// from somewhere in the middle. The last column is false for ordering groups that are looked at for nothing.
const choicesSQL = `WITH free AS NOT MATERIALIZED (
	SELECT event_id, due_at FROM {{.}}deliveries WHERE destination = $1 AND resource IS NULL AND due_at <= $2
), somewhere AS MATERIALIZED (
	SELECT min(due_at) + ($2::timestamptz - min(due_at)) * random() AS at FROM free
), choice AS (
	(SELECT event_id, '' AS ordering_group FROM free ORDER BY due_at DESC, event_id DESC LIMIT $3)
	UNION (SELECT event_id, '' FROM free ORDER BY due_at, event_id LIMIT $3)
	UNION (SELECT event_id, '' FROM free WHERE due_at >= (SELECT at FROM somewhere) ORDER BY due_at, event_id LIMIT $3)
	UNION SELECT o.event_id, l.resource FROM (
		(SELECT * FROM {{.}}lanes WHERE destination = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3)
		UNION (SELECT * FROM {{.}}lanes WHERE destination = $1 AND due_at <= $2 ORDER BY due_at DESC LIMIT $3)
	) l LEFT JOIN {{.}}deliveries p ON p.event_id = l.event_id AND p.destination = l.destination AND p.state = 'processing'
	LEFT JOIN LATERAL (
		SELECT coalesce(p.event_id, (SELECT d.event_id FROM {{.}}deliveries d
			WHERE d.destination = l.destination AND d.resource = l.resource AND d.state <> 'dead'
			ORDER BY d.event_id LIMIT 1)) AS event_id
	) o ON true
)
SELECT coalesce(c.event_id, 0), c.ordering_group, coalesce(d.tries = 0 AND d.last_error = '', false),
	coalesce(e.source, ''), coalesce(e.event_type, ''), coalesce(e.resource, ''), coalesce(d.due_at <= $2, false)
FROM choice c LEFT JOIN {{.}}deliveries d ON d.event_id = c.event_id AND d.destination = $1
LEFT JOIN {{.}}events e ON e.id = c.event_id`

// pickedSQL leases what was chosen, as far as it still is there.
const pickedSQL = wanted + `, due AS (
	SELECT event_id, destination, due_at FROM {{.}}deliveries d
	WHERE d.destination = (SELECT destination FROM want) AND d.event_id = ANY ($9::bigint[]) AND d.resource IS NULL AND d.due_at <= $1
	ORDER BY event_id FOR UPDATE SKIP LOCKED
)` + lease + leased

// pickedGroupsSQL locks the ordering groups that were chosen and that nobody else looks at.
const pickedGroupsSQL = `SELECT resource FROM {{.}}lanes WHERE destination = $1 AND resource = ANY ($2)
	ORDER BY resource FOR UPDATE SKIP LOCKED`
