{{/* What the stores ask of PostgreSQL. Each text is sent as it is expanded: what is said of one stands before it. */}}

{{/* fresh claims a key that was never seen, which nearly every event has, for little more than a bare
insert costs. One row is affected if it won, and none, with nothing written, if there is a claim or
somebody is making one.

An insert waits for a transaction that has inserted the same key, for as long as that takes. So
everybody who keeps a claim in a transaction holds the key's lock (see KeyLock), and this
statement inserts only if it gets that lock at once. claim waits for it, with a bound: setting and
restoring lock_timeout costs several times what the lock does.

$1 source, $2 key, $3 type, $4 digest, $5 now */}}
{{define "fresh"}}
INSERT INTO {{.}}claims (source, key, state, token, event_type, digest, first_seen, updated_at)
SELECT $1::text, $2::text, 'done', 1, $3::text, $4::bytea, $5::timestamptz, $5::timestamptz
WHERE pg_try_advisory_xact_lock({{.KeyLock "$1::text" "$2::text"}})
ON CONFLICT (source, key) DO NOTHING
RETURNING txid_current()
{{end}}

{{/* freshOrFail is fresh for a batch of statements, which goes on unless a statement fails: it fails where fresh
affects no row. The cast depends on the row, so that no planner makes it beforehand. Its text is read by people in the
server's log, and by stores (see NotFresh). */}}
{{define "freshOrFail"}}
WITH won AS ({{template "fresh" .}})
SELECT (CASE WHEN EXISTS (SELECT FROM won) THEN 'true' ELSE '{{.NotFresh}}' END)::boolean
{{end}}

{{/* claim decides who owns the key, and always returns one row.

"seen" is the claim before. Only if there is none is an insert tried, and an update only if it is
claimable, so a copy of finished or held work takes no row lock and writes nothing. Both meet whatever
happened since the snapshot was taken: they wait for a transaction that holds the key or its lock, and
give way unless what was seen still holds, which the token tells. When they gave way although the key had
looked free, the caller asks again. So it does when the claim was finished and purged meanwhile: an insert
would make a new one with the old one's token and digest. An outcome leaves the token as it is, so what it
changes is looked at again.

The wait is bounded by lock_timeout, which the same statement puts back. Each step reads the output
of the one before, which fixes their order; $8 null leaves the setting alone.

$1 source, $2 key, $3 state, $4 lease, $5 type, $6 digest, $7 now, $8 lock_timeout, $9 whether to pin.
It returns the setting, whether it won, the digest before, the columns of the claim, and the number of the
transaction that won, else 0. A claim that was not won and has the token 0, or is claimable, lost to somebody who is
not visible in its snapshot. */}}
{{define "claim"}}{{template "contended" .}}
SELECT set_config('lock_timeout', bounded.before, true), won.token IS NOT NULL, seen.digest,
	coalesce(won.state, seen.state, ''), coalesce(won.token, seen.token, 0),
	CASE WHEN won.token IS NULL THEN seen.lease_until ELSE won.lease_until END,
	coalesce(won.event_type, seen.event_type, ''), coalesce(won.digest, seen.digest),
	coalesce(won.first_seen, seen.first_seen, $7::timestamptz), coalesce(won.updated_at, seen.updated_at, $7::timestamptz),
	coalesce(won.last_error, seen.last_error, ''), coalesce(won.pinned, seen.pinned, 0),
	CASE WHEN won.token IS NULL THEN 0 ELSE txid_current() END
FROM bounded LEFT JOIN seen ON true LEFT JOIN won ON true
{{end}}

{{/* claimOrFail is claim for a batch of statements: it fails where claim does not win. */}}
{{define "claimOrFail"}}{{template "contended" .}}
SELECT set_config('lock_timeout', bounded.before, true), (CASE WHEN won.token IS NOT NULL THEN 'true' ELSE '{{.NotWon}}' END)::boolean
FROM bounded LEFT JOIN won ON true
{{end}}

{{define "contended"}}
WITH setting AS MATERIALIZED (SELECT current_setting('lock_timeout') AS before),
bounded AS MATERIALIZED (SELECT before, set_config('lock_timeout', coalesce($8::text, before), true) FROM setting),
seen AS MATERIALIZED (SELECT {{columns ""}} FROM {{.}}claims WHERE source = $1::text AND key = $2::text AND {{template "replicated"}}),
created AS (
	INSERT INTO {{.}}claims (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
	SELECT $1::text, $2::text, $3::text, 1, $4::timestamptz, $5::text, $6::bytea, $7::timestamptz, $7::timestamptz,
		CASE WHEN $9::boolean THEN 1 ELSE 0 END FROM bounded
	WHERE CASE WHEN bounded.before IS NOT NULL AND NOT EXISTS (SELECT FROM seen) THEN pg_advisory_xact_lock({{.KeyLock "$1::text" "$2::text"}}) IS NOT NULL ELSE false END
	ON CONFLICT (source, key) DO NOTHING
	RETURNING {{columns ""}}
),
taken AS (
	UPDATE {{.}}claims AS claims SET {{taken "claims" "$3::text" "$4::timestamptz" "$7::timestamptz" "$5::text" "$6::bytea" "$9::boolean"}}
	FROM bounded, seen
	WHERE CASE WHEN bounded.before IS NOT NULL AND {{claimable "seen" "$7::timestamptz"}} AND {{open "seen" "$6::bytea"}}
		THEN pg_advisory_xact_lock({{.KeyLock "$1::text" "$2::text"}}) IS NOT NULL ELSE false END
	AND claims.source = $1::text AND claims.key = $2::text AND claims.token = seen.token
	AND {{claimable "claims" "$7::timestamptz"}} AND {{open "claims" "$6::bytea"}}
	RETURNING {{columns "claims"}}
),
won AS (SELECT * FROM created UNION ALL SELECT * FROM taken)
{{- end}}

{{/* trace leaves the trace of a failed attempt, unless it has to give way; no row is returned then. Of an attempt whose
handler committed the claim by itself it opens that again, and returns true. The row tells: xmin is the transaction that wrote
it, whose number has an epoch in front.
$1 source, $2 key, $3 state, $4 token, $5 type, $6 digest, $7 now, $8 error, $9 lock_timeout (null: as it is),
$10 first seen, $11 pinned, $12 the time of the attempt's claim, $13 the number of its transaction (null: whatever is done
stays so), $14 the error if the claim is opened again, other than $8 */}}
{{define "trace"}}
WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', coalesce($9::text, current_setting('lock_timeout')), true))
INSERT INTO {{.}}claims AS claims (source, key, state, token, event_type, digest, first_seen, updated_at, last_error, pinned)
SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bytea, $10::timestamptz, $7::timestamptz, $8::text, $11::bigint FROM bounded
ON CONFLICT (source, key) DO UPDATE SET
	state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
	digest = coalesce(excluded.digest, claims.digest), updated_at = excluded.updated_at,
	last_error = CASE WHEN claims.state = 'done' OR claims.token = excluded.token AND claims.last_error = $14::text
		THEN $14::text ELSE excluded.last_error END,
	pinned = CASE WHEN claims.pinned = 0 THEN excluded.pinned ELSE claims.pinned END
WHERE {{overwrites "claims" "excluded" "CASE WHEN claims.xmin::text::bigint = $13::bigint & 4294967295 THEN $12::timestamptz END"}}
RETURNING coalesce(last_error = $14::text, false)
{{end}}

{{/* What changes a claim that is processing under a token, and returns whether it did and how the claim stands.
$1 source, $2 key, $3 token, $4 state, $5 lease, $6 error (null: as it was), $7 now */}}
{{define "change"}}{{template "changed" .}}
){{template "stands" .}}{{end}}

{{define "changed" -}}
WITH changed AS (
	UPDATE {{.}}claims SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz
	{{- template "mine" .}}
{{- end}}
{{define "mine"}}
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing'
	RETURNING {{columns ""}}
{{- end}}

{{/* fail has in $8 whether the failure pins the claim. */}}
{{define "fail" -}}
WITH changed AS (
	UPDATE {{.}}claims SET state = $4::text, lease_until = $5::timestamptz, last_error = coalesce($6::text, last_error), updated_at = $7::timestamptz,
		pinned = {{pinned "" "$8::boolean"}}
	{{- template "mine" .}}
){{template "stands" .}}{{end}}

{{/* forget deletes a first attempt. Its token is the first of whoever begins anew as well, so the time tells them
apart: $4 first seen. */}}
{{define "forget"}}
WITH changed AS (
	DELETE FROM {{.}}claims
	WHERE source = $1::text AND key = $2::text AND token = $3::bigint AND state = 'processing' AND first_seen = $4::timestamptz
	RETURNING {{columns ""}}
){{template "stands" .}}UNION ALL
SELECT false, {{columns "absent"}} FROM {{template "absent" .}}{{end}}

{{/* completeWith keeps the response of a claim that it completed: $8 status, $9 header, $10 body */}}
{{define "completeWith"}}{{template "changed" .}}
), kept AS (
	INSERT INTO {{.}}responses (source, key, token, status, header, body)
	SELECT $1::text, $2::text, $3::bigint, $8::integer, $9::bytea, $10::bytea FROM changed{{template "replace"}}
){{template "stands" .}}{{end}}

{{/* Ends of work are told to those who listen, if anybody is to: the text names the claim. A line break stands in no
source. */}}
{{define "stands"}}
SELECT {{if .Channel}}pg_notify('{{.Channel}}', $1::text || chr(10) || $2::text) IS NOT NULL{{else}}true{{end}}, {{columns ""}} FROM changed
UNION ALL
SELECT false, {{columns ""}} FROM {{.}}claims WHERE source = $1::text AND key = $2::text AND NOT EXISTS (SELECT 1 FROM changed) AND {{template "replicated"}}
{{end}}
{{define "find"}}SELECT {{columns ""}} FROM {{.}}claims WHERE source = $1::text AND key = $2::text AND {{template "replicated"}}{{end}}

{{/* lookup is find for who is told where there is none. */}}
{{define "lookup"}}{{template "find" .}}
UNION ALL
SELECT {{columns "absent"}} FROM {{template "absent" .}}{{end}}

{{/* absent has no row, and writes the message of replicated where there is no claim: it may be gone from the tables of the primary
alone, and who forgets it once more is told that it is. */}}
{{define "absent"}}(SELECT 1) AS one LEFT JOIN {{.}}claims AS absent ON absent.source = $1::text AND absent.key = $2::text
WHERE CASE WHEN absent.source IS NULL AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NULL ELSE false END{{end}}

{{/* replicated is true. Of work that is done, failed or dead somebody is told, and so is who records an outcome once more: it has
to be where commits wait for it to be. It may be in the tables of the primary alone, of a commit that waited for a standby when
the primary crashed, or when its client gave up. A transaction that writes nothing does not wait, so one that saw such a claim
writes an empty message into the log. */}}
{{define "replicated"}}CASE WHEN state <> 'processing' AND current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
	THEN pg_logical_emit_message(true, 'hookonce', '') IS NOT NULL ELSE true END{{end}}

{{/* keep takes the token from the claim that the same transaction made, which is done from the start. One in
another state is somebody else's. $1 source, $2 key, $3 status, $4 header, $5 body */}}
{{define "keep"}}
INSERT INTO {{.}}responses (source, key, token, status, header, body)
SELECT source, key, token, $3::integer, $4::bytea, $5::bytea FROM {{.}}claims WHERE source = $1::text AND key = $2::text AND state = 'done'{{template "replace"}}
{{end}}
{{define "replace"}}
ON CONFLICT (source, key) DO UPDATE SET
	token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body
{{- end}}

{{define "response"}}SELECT status, header, body FROM {{.}}responses WHERE source = $1::text AND key = $2::text{{end}}

{{/* newer affects one row if the rank supersedes the recorded one. Otherwise it only locks the row: that is what a
conflict does even where its condition is false. $1 resource, $2 number, $3 now, $4 kind */}}
{{define "newer"}}
INSERT INTO {{.}}versions AS versions (resource, version, updated_at, kind) VALUES ($1::text, $2::bigint, $3::timestamptz, $4::text)
ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
WHERE {{supersedes "versions" "excluded"}}
{{end}}

{{/* transition moves the entity $1 if it is in the state $2, and locks its row in any case. For one that was
never seen, and is not asked to move from there, a row is made to be locked. $3 to, $4 now */}}
{{define "transition"}}
INSERT INTO {{.}}states AS states (entity, state, updated_at)
VALUES ($1::text, CASE WHEN $2::text = '' THEN $3::text ELSE '' END, $4::timestamptz)
ON CONFLICT (entity) DO UPDATE SET state = $3::text, updated_at = excluded.updated_at
WHERE states.state = $2::text
{{end}}

{{/* stateOf follows transition as a statement of its own: it sees what was committed while that one waited for the
lock. */}}
{{define "stateOf"}}SELECT state FROM {{.}}states WHERE entity = $1::text{{end}}

{{/* enqueue affects no row if the event has an effect with that step. An effect without a key never meets another
one, because null is not equal to null. $1 source, $2 key, $3 step, $4 name, $5 payload, $6 due, $7 now */}}
{{define "enqueue"}}
INSERT INTO {{.}}effects (source, key, step, name, payload, due_at, enqueued_at, updated_at)
VALUES ($1::text, nullif($2::text, ''), $3::text, $4::text, $5::bytea, $6::timestamptz, $7::timestamptz, $7::timestamptz)
ON CONFLICT (source, key, step) DO NOTHING
{{end}}

{{/* take looks at each name by itself, so that a long queue of one costs what is taken of it and not
what waits. Effects that another caller is taking are passed over.
$1 names, $2 now, $3 limit, $4 lease, $5 how many of those whose lease ran out */}}
{{define "take"}}
WITH fresh AS MATERIALIZED (
	SELECT e.id AS due_id, e.due_at AS since
	FROM (SELECT DISTINCT unnest($1::text[]) AS name) AS asked CROSS JOIN LATERAL (
		SELECT id, due_at FROM {{.}}effects WHERE name = asked.name AND due_at <= $2::timestamptz AND state <> 'processing'
		ORDER BY due_at, id LIMIT $3::bigint FOR UPDATE SKIP LOCKED
	) AS e
	ORDER BY since, due_id LIMIT $3::bigint
), suspects AS MATERIALIZED (
	SELECT id AS due_id, due_at AS since FROM {{.}}effects
	WHERE state = 'processing' AND name = ANY ($1::text[]) AND due_at <= $2::timestamptz
	ORDER BY due_at, id LIMIT $5::bigint FOR UPDATE SKIP LOCKED
), due AS (
	SELECT * FROM fresh UNION ALL SELECT * FROM suspects ORDER BY since, due_id LIMIT $3::bigint
), taken AS (
	UPDATE {{.}}effects AS effects SET {{begun}}, due_at = $4::timestamptz, updated_at = $2::timestamptz
	FROM due WHERE effects.id = due_id
	RETURNING effects.*, since
)
SELECT {{effect}} FROM taken ORDER BY since, id
{{end}}

{{/* changeEffect changes an effect that is processing under the token, and returns whether it did and how the effect
stands. $1 number, $2 token, $3 state, $4 due, $5 error (null: as it was), $6 now */}}
{{define "changeEffect"}}
WITH changed AS (
	UPDATE {{.}}effects SET state = $3::text, deaths = CASE WHEN $3::text = 'processing' THEN deaths ELSE 0 END, due_at = $4::timestamptz, last_error = coalesce($5::text, last_error), updated_at = $6::timestamptz
	WHERE id = $1::bigint AND token = $2::bigint AND state = 'processing'
	RETURNING state, token
)
SELECT true, state, token FROM changed
UNION ALL
SELECT false, state, token FROM {{.}}effects WHERE id = $1::bigint AND NOT EXISTS (SELECT 1 FROM changed)
{{end}}

{{/* $1 the number after which to begin, $2 limit */}}
{{define "effects"}}SELECT {{effect}} FROM {{.}}effects WHERE {{.Condition}} AND id > $1::bigint ORDER BY id LIMIT $2::bigint{{end}}

{{/* redrive returns whether the dead effect $1 is to be carried out again, and the state before. $2 now */}}
{{define "redrive"}}
WITH redriven AS (
	UPDATE {{.}}effects SET state = 'failed', tries = 0, deaths = 0, due_at = $2::timestamptz, updated_at = $2::timestamptz
	WHERE id = $1::bigint AND state = 'dead'
	RETURNING id
)
SELECT EXISTS (SELECT 1 FROM redriven), state FROM {{.}}effects WHERE id = $1::bigint
{{end}}

{{/* Purges go source by source where rows have one, and skip what another purge is deleting at the same moment. */}}
{{define "purgeNext"}}SELECT min(source) FROM {{.}}{{.Table}} WHERE source > $1::text{{end}}
{{define "purgeCount"}}SELECT count(*) FROM (SELECT {{template "old" .}}) AS old{{end}}
{{define "purgeDelete"}}
WITH purged AS (
	DELETE FROM {{.}}{{.Table}} WHERE ctid = ANY (ARRAY(SELECT ctid {{template "old" .}} FOR UPDATE SKIP LOCKED))
	RETURNING *
){{if eq .Table "claims"}}, unkept AS (
	DELETE FROM {{.}}responses AS responses USING purged WHERE responses.source = purged.source AND responses.key = purged.key
){{end}}
SELECT count(*) FROM purged
{{end}}
{{define "old" -}}
{{if .Condition -}}
FROM {{.}}{{.Table}} WHERE source = $1::text AND {{.Condition}} AND updated_at >= $2::timestamptz AND updated_at < $3::timestamptz
	ORDER BY updated_at LIMIT $4::bigint
{{- else -}}
FROM {{.}}{{.Table}} WHERE updated_at >= $1::timestamptz AND updated_at < $2::timestamptz LIMIT $3::bigint
{{- end}}
{{- end}}
