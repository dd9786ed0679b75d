package pgstore

import (
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/schema"
)

// statements are the texts of what the store asks, with the names of the tables filled in.
type statements struct {
	fresh, claim, trace, extend, complete, fail, forget, lookup string                    // claims
	completeWith, keep, response                                string                    // responses
	newer, transition, stateOf                                  string                    // guards
	enqueue, take, changeEffect, reviveEffect                   string                    // the outbox
	purge                                                       map[string]doom           // by what goes
	effects                                                     map[hookonce.State]string // lists, by state
}

// newStatements fills in the prefix of the tables, and the channel on which ends of work are told; empty:
// they are not told.
func newStatements(prefix, channel string) statements {
	told := "true"
	if channel != "" {
		told = strings.ReplaceAll(toldSQL, "{channel}", channel)
	}
	fill := strings.NewReplacer("{claims}", prefix+"claims", "{responses}", prefix+"responses",
		"{versions}", prefix+"versions", "{states}", prefix+"states", "{effects}", prefix+"effects",
		"{columns}", columns, "{claims.columns}", "claims."+strings.ReplaceAll(columns, ", ", ", claims."), "{effect}", effectColumns,
		"{lock}", schema.KeyLock(prefix+"claims", "$1::text", "$2::text")).Replace
	return statements{
		fresh:  fill(freshSQL),
		claim:  fill(claimSQL),
		trace:  fill(traceSQL),
		extend: fill(changedSQL("") + standsSQL("true")),
		lookup: fill(lookupSQL),

		complete:     fill(changedSQL("") + standsSQL(told)),
		fail:         fill(changedSQL(", pinned = "+pinnedSQL) + standsSQL(told)),
		forget:       fill(forgottenSQL + standsSQL(told)),
		completeWith: fill(changedSQL("") + keptSQL + standsSQL(told)),
		keep:         fill(keepSQL),
		response:     fill(responseSQL),

		newer:      fill(newerSQL),
		transition: fill(transitionSQL),
		stateOf:    fill(stateOfSQL),

		enqueue:      fill(enqueueSQL),
		take:         fill(takeSQL),
		changeEffect: fill(changeEffectSQL),
		effects:      effectLists(fill),
		reviveEffect: fill(reviveEffectSQL),
		purge:        dooms(fill),
	}
}

// columns are what record reads, in its order.
const columns = `state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned`

// freshSQL claims a key that was never seen, which nearly every event has, for little more than a bare
// insert costs. One row is affected if it won, and none, with nothing written, if there is a claim or
// somebody is making one.
//
// An insert waits for a transaction that has inserted the same key, for as long as that takes. So
// everybody who keeps a claim in a transaction holds the key's lock (see [schema.KeyLock]), and this
// statement inserts only if it gets that lock at once. claimSQL waits for it, with a bound: setting and
// restoring lock_timeout costs several times what the lock does.
const freshSQL = `
INSERT INTO {claims} (source, key, state, token, event_type, digest, first_seen, updated_at)
SELECT $1::text, $2::text, 'done', 1, $3::text, $4::bytea, $5::timestamptz, $5::timestamptz
WHERE pg_try_advisory_xact_lock({lock})
ON CONFLICT (source, key) DO NOTHING
RETURNING txid_current()`

// numberSQL gives the transaction of an event without a key its number.
const numberSQL = `SELECT txid_current()`

// intactSQL looks whether the transaction with that number is still under way, in one round trip with COMMIT: the
// handler may have ended it, and begun another one. What it did after a commit of its own is committed as well,
// because nothing would do it again; the answer is false then. After a rollback the cast fails, and with it the
// COMMIT.
const intactSQL = `
SELECT (CASE WHEN txid_current_if_assigned() = $1 THEN 'true' WHEN txid_status($1) = 'committed' THEN 'false'
ELSE coalesce(txid_status($1), 'forgotten') END)::boolean`

// statusSQL asks what became of the transaction with that number.
// https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
const statusSQL = `SELECT coalesce(txid_status($1), 'forgotten')`

// claimSQL decides who owns the key, and always returns one row.
//
// "seen" is the claim before. Only if there is none is an insert tried, and an update only if it is
// claimable, so a copy of finished or held work takes no row lock and writes nothing. Both meet whatever
// happened since the snapshot was taken: they wait for a transaction that holds the key or its lock, and
// give way unless what was seen still holds, which the token tells. When they gave way although the key had
// looked free, the caller asks again. So it does when the claim was finished and purged meanwhile: an insert
// would make a new one with the old one's token and digest. An outcome leaves the token as it is, so what it
// changes is looked at again.
//
// The wait is bounded by lock_timeout, which the same statement puts back. Each step reads the output
// of the one before, which fixes their order; $8 null leaves the setting alone.
const claimSQL = `
WITH setting AS MATERIALIZED (SELECT current_setting('lock_timeout') AS before),
bounded AS MATERIALIZED (SELECT before, set_config('lock_timeout', coalesce($8::text, before), true) FROM setting),
seen AS MATERIALIZED (SELECT {columns} FROM {claims} WHERE source = $1::text AND key = $2::text),
created AS (
	INSERT INTO {claims} (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
	SELECT $1::text, $2::text, $3::text, 1, $4::timestamptz, $5::text, $6::bytea, $7::timestamptz, $7::timestamptz,
		CASE WHEN $9::boolean THEN 1 ELSE 0 END FROM bounded
	WHERE CASE WHEN bounded.before IS NOT NULL AND NOT EXISTS (SELECT FROM seen) THEN pg_advisory_xact_lock({lock}) IS NOT NULL ELSE false END
	ON CONFLICT (source, key) DO NOTHING
	RETURNING {columns}
),
taken AS (
	UPDATE {claims} AS claims SET
		state = $3::text, token = seen.token + 1, lease_until = $4::timestamptz, updated_at = $7::timestamptz,
		event_type = coalesce(nullif($5::text, ''), claims.event_type), digest = coalesce($6::bytea, claims.digest),
		pinned = CASE WHEN $9::boolean AND claims.pinned = 0 THEN seen.token + 1 ELSE claims.pinned END
	FROM bounded, seen
	WHERE CASE WHEN bounded.before IS NOT NULL AND (seen.state IN ('failed', 'dead')
		OR (seen.state = 'processing' AND seen.lease_until <= $7::timestamptz))
		AND (seen.pinned = 0 OR coalesce(seen.digest = $6::bytea, true))
		THEN pg_advisory_xact_lock({lock}) IS NOT NULL ELSE false END
	AND claims.source = $1::text AND claims.key = $2::text AND claims.token = seen.token AND (claims.state IN ('failed', 'dead')
		OR (claims.state = 'processing' AND claims.lease_until <= $7::timestamptz))
	AND (claims.pinned = 0 OR coalesce(claims.digest = $6::bytea, true))
	RETURNING {claims.columns}
),
won AS (SELECT * FROM created UNION ALL SELECT * FROM taken)
SELECT set_config('lock_timeout', bounded.before, true), won.token IS NOT NULL, seen.digest,
	coalesce(won.state, seen.state, ''), coalesce(won.token, seen.token, 0),
	CASE WHEN won.token IS NULL THEN seen.lease_until ELSE won.lease_until END,
	coalesce(won.event_type, seen.event_type, ''), coalesce(won.digest, seen.digest),
	coalesce(won.first_seen, seen.first_seen, $7::timestamptz), coalesce(won.updated_at, seen.updated_at, $7::timestamptz),
	coalesce(won.last_error, seen.last_error, ''), coalesce(won.pinned, seen.pinned, 0),
	CASE WHEN won.token IS NULL THEN 0 ELSE txid_current() END
FROM bounded LEFT JOIN seen ON true LEFT JOIN won ON true`

// traceSQL leaves the trace of a failed attempt, unless the work is done, owned by somebody else, or
// a newer attempt's; no row is affected then. Attempts that began afresh at the same time have the
// same token; of those, one that gave up is never made an ordinary failure again, because its sender
// was told to stop. Content that the claim is pinned to stays.
const traceSQL = `
WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', $9::text, true))
INSERT INTO {claims} AS claims (source, key, state, token, event_type, digest, first_seen, updated_at, last_error, pinned)
SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bytea, $10::timestamptz, $7::timestamptz, $8::text, $11::bigint FROM bounded
ON CONFLICT (source, key) DO UPDATE SET
	state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
	digest = coalesce(excluded.digest, claims.digest), updated_at = excluded.updated_at, last_error = excluded.last_error,
	pinned = CASE WHEN claims.pinned = 0 THEN excluded.pinned ELSE claims.pinned END
WHERE (claims.pinned = 0 OR coalesce(claims.digest = excluded.digest, true)) AND ((claims.token < excluded.token AND (claims.state IN ('failed', 'dead')
		OR (claims.state = 'processing' AND claims.lease_until <= excluded.updated_at)))
	OR (claims.token = excluded.token AND (claims.state = 'failed' OR (claims.state = 'dead' AND excluded.state = 'dead'))))`

// changedSQL changes a claim that is processing under the given token. Also is what else it sets.
func changedSQL(also string) string {
	return `
WITH changed AS (
	UPDATE {claims} SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz` + also + `
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING {columns}
)`
}

// pinnedSQL is what a failure leaves pinned: it takes back what its own attempt pinned, and nothing else.
const pinnedSQL = `CASE WHEN pinned NOT IN (0, token) THEN pinned WHEN $8::boolean THEN token ELSE 0 END`

// forgottenSQL deletes a first attempt. Its token is the first of whoever begins anew as well, so the time tells
// them apart.
const forgottenSQL = `
WITH changed AS (
	DELETE FROM {claims}
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing' AND first_seen = $4::timestamptz
	RETURNING {columns}
)`

// standsSQL follows changedSQL or forgottenSQL, and returns whether it changed the claim and how the claim stands. Applied
// is the expression that stands for yes.
func standsSQL(applied string) string {
	return `
SELECT ` + applied + `, {columns} FROM changed
UNION ALL
SELECT false, {columns} FROM {claims} WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed)`
}

// toldSQL is true, and tells those who listen which claim was changed. A line break stands in no source.
const toldSQL = `pg_notify('{channel}', $1::text || chr(10) || $2::text) IS NOT NULL`

const lookupSQL = `SELECT {columns} FROM {claims} WHERE source = $1::text AND key = $2::text`
