package pg

import (
	"strings"

	"github.com/hookonce/hookonce/internal/pgstandby"
)

// statements are the texts of everything that the store asks, with the schema filled in. Tables keep the names that
// the schema gave them: lanes has the ordering groups, twins the logical duplicates, sightings the duplicate receipts.
type statements struct {
	storing          // whatever map of cells there is
	uncelled storing // if there is none

	copies, supply, release                 string
	targets, groupsDue, groups, turns, take string
	choices, picked, pickedGroups           string
	extend, finish, finishReplies           string
	answers, bypassing, bypassed            string
	ping, writer                            string
}

func newStatements(prefix string) statements {
	in := func(text string) string { return strings.ReplaceAll(text, "{{.}}", prefix) }
	all := storing{in(plainSQL), in(acceptSQL)}
	return statements{
		storing: all, uncelled: all.behind(in(noCells)), copies: in(copiesSQL), supply: in(supplySQL), release: in(releaseSQL),
		targets: in(targetsSQL), groupsDue: in(groupsDueSQL), groups: in(groupsSQL), turns: in(turnsSQL), take: in(takeSQL),
		choices: in(choicesSQL), picked: in(pickedSQL), pickedGroups: in(pickedGroupsSQL),
		extend: in(extendSQL), finish: in(finishSQL), finishReplies: in(finishRepliesSQL), answers: in(answersSQL),
		bypassing: in(bypassingSQL), bypassed: in(bypassedSQL),
		ping: in(pingSQL), writer: in(writerSQL),
	}
}

// durable is a common table expression of exactly one row that makes the statement's own transaction
// commit synchronously when the server or the role is set to lose commits in a crash, and say so when somebody
// cancels its wait for a standby, see [pgstandby.Watch]. A SET on the connection would not do: behind a transaction
// pooler it lands on somebody else's connection.
const durable = `durable AS (SELECT count(set_config(name, safe, true)) ` + pgstandby.UnsafeSettings + `)`

// setDurable does for an explicit transaction what [durable] does for a statement.
const setDurable = `SELECT set_config(name, safe, true) ` + pgstandby.UnsafeSettings

// replicated is a common table expression of exactly one row for a statement that has somebody told of what it reads. It has the
// statement's commit wait for a standby where commits do, and so for everything that it reads: what is read may be in the
// tables of the primary alone, of a commit that waited when the primary crashed, or when its client gave up. A transaction that
// writes nothing would not wait. It stands behind [durable], or the commit would wait for nobody where the role is set to lose
// commits, and is read by whatever is told.
const replicated = `replicated AS (
	SELECT count(pg_logical_emit_message(true, 'hookonce', '')) FROM durable
	WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery())`

// extendSQL moves leases and returns the deliveries that still are held.
const extendSQL = `WITH ` + durable + `
UPDATE {{.}}deliveries d SET due_at = $4
FROM durable, unnest($1::bigint[], $2::text[], $3::bigint[]) AS h (event_id, destination, token)
WHERE d.event_id = h.event_id AND d.destination = h.destination
	AND d.token = h.token AND d.state = 'processing'
RETURNING d.event_id, d.destination, d.token`

// finishSQL applies outcomes and returns the numbers of those whose token was current. The ordering groups of what
// was applied are free: somebody has to look whose turn it is now. They are locked in one order, after the
// deliveries, like everywhere.
const finishSQL = finished + finishedRows

// finishRepliesSQL records outcomes of which some come with replies.
const finishRepliesSQL = finished + `, replied AS (
	INSERT INTO {{.}}answers (event_id, destination, status, header, body)
	SELECT o.event_id, o.destination, r.status, r.header, r.body
	FROM unnest($17::int[], $18::int[], $19::bytea[], $20::bytea[]) AS r (n, status, header, body)
	JOIN outcome o ON o.n = r.n WHERE o.n IN (SELECT n FROM done)
	ON CONFLICT (event_id, destination) DO UPDATE
	SET status = excluded.status, header = excluded.header, body = excluded.body
)` + finishedRows

const finishedRows = `
SELECT n FROM applied`

const finished = `WITH ` + durable + `, outcome AS (
	SELECT o.* FROM durable, unnest($1::int[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
		$6::timestamptz[], $7::int[], $8::text[], $9::timestamptz[], $10::bigint[], $11::bytea[],
		$12::text[], $13::bigint[], $14::text[], $15::bool[], $16::text[])
		AS o (n, event_id, destination, token, state, due_at, status, error, started_at, duration_us, answer,
			resource, rank, rank_kind, spared, error_kind)
), done AS (
	DELETE FROM {{.}}deliveries d USING outcome o
	WHERE d.event_id = o.event_id AND d.destination = o.destination
		AND d.token = o.token AND d.state = 'processing' AND o.state = 'done'
	RETURNING o.n, d.resource
), kept AS (
	UPDATE {{.}}deliveries d SET state = o.state, due_at = o.due_at,
		tries = d.tries - (o.state = 'pending' OR coalesce(o.spared, false))::int,
		last_error = CASE WHEN o.state = 'pending' THEN d.last_error ELSE o.error END,
		error_kind = CASE WHEN o.state = 'pending' THEN d.error_kind ELSE coalesce(o.error_kind, '') END,
		status = CASE WHEN o.state = 'pending' THEN d.status ELSE o.status END
	FROM outcome o
	WHERE d.event_id = o.event_id AND d.destination = o.destination
		AND d.token = o.token AND d.state = 'processing' AND o.state <> 'done'
	RETURNING o.n, d.resource
), applied AS (
	SELECT n, resource FROM done UNION ALL SELECT n, resource FROM kept
), tried AS (
	INSERT INTO {{.}}attempts (event_id, destination, token, outcome, status, error, started_at, duration_us, answer, error_kind)
	SELECT o.event_id, o.destination, o.token, o.state, o.status, o.error, o.started_at, o.duration_us, o.answer, coalesce(o.error_kind, '')
	FROM outcome o WHERE o.state <> 'pending' AND o.n IN (SELECT n FROM applied)
), freed AS (
	INSERT INTO {{.}}lanes (destination, resource, due_at)
	SELECT o.destination, a.resource, min(o.started_at) FROM applied a JOIN outcome o ON o.n = a.n
	WHERE a.resource IS NOT NULL
	GROUP BY o.destination, a.resource ORDER BY o.destination, a.resource
	ON CONFLICT (destination, resource) DO UPDATE SET due_at = least(lanes.due_at, excluded.due_at), event_id = NULL
), raised AS (
	` + raise + `WHERE o.state = 'done' AND o.rank IS NOT NULL AND o.n IN (SELECT n FROM done)
	` + raised + `
)`

// raise records the ranks of outcomes o, and raised says of several in one ordering group that the highest counts, and what
// becomes of the row that is there: a rank of another kind takes its place, because the two cannot be compared. See
// [hookonce.Rank.Supersedes].
const (
	raise = `INSERT INTO {{.}}newest (destination, resource, rank, rank_kind, event_id)
	SELECT DISTINCT ON (destination, resource) destination, resource, rank, rank_kind, event_id
	FROM outcome o `
	raised = `ORDER BY destination, resource, rank DESC
	ON CONFLICT (destination, resource) DO UPDATE SET rank = excluded.rank, rank_kind = excluded.rank_kind, event_id = excluded.event_id
	WHERE newest.rank < excluded.rank OR newest.rank_kind <> excluded.rank_kind`
)

const pingSQL = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool`

const writerSQL = `SELECT nextval('{{.}}writers')`
