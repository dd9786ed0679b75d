package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ended"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/hookonce/hookonce/internal/schema"
)

func postgres(prefix string) dialect {
	sql := language{placeholder: "$", key: "key", returning: true}.prefixed(prefix)
	d := dialect{
		statements: common(sql).withConflicts(sql, "bytea").withDooms(sql, doomPostgres(sql)),
		time:       func(t time.Time) any { return t },
		decide:     decidePostgres,
		trace:      traceAtOnce,
		change:     changeReturning,
		mark:       markPostgres,
		unmark:     unmarkPostgres,
		committed:  committedPostgres,
		applied:    wrote,
		take:       takeAtOnce,
		purge:      purgePostgres,
		sound:      schema.Transactional,
		contended:  contendedPostgres,
		oversize:   oversizePostgres,
		exists:     never,
		refused:    pgerror.NotCommitted,
		unmigrated: unmigratedPostgres,
	}
	// One statement, one round trip. What is not claimable is only read: it takes no row lock and
	// writes nothing. A row is taken over only if it is the one that was seen, so that the digest
	// from before is known. The bounded wait applies to this statement alone; a caller's setting is
	// put back, also when the round is lost. Who writes holds the key's lock, as every store on this table
	// does, so that others can tell without waiting. The last part is the row of nothing seen and nothing won.
	d.claim = sql(`
		WITH bound AS MATERIALIZED (
			SELECT current_setting('lock_timeout') AS previous,
				set_config('lock_timeout', coalesce(@8::text, current_setting('lock_timeout')), true)
		), seen AS (
			SELECT {claim} FROM {claims} WHERE source = @1 AND key = @2
		), won AS (
			INSERT INTO {claims} AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
			SELECT @1::text, @2::text, @3::text, 1, @4::timestamptz, @5::text, @6::bytea, @7::timestamptz, @7::timestamptz, @9::bigint
			FROM bound WHERE CASE WHEN NOT EXISTS (
				SELECT FROM seen WHERE state = 'done'
				OR (state = 'processing' AND (lease_until IS NULL OR lease_until > @7::timestamptz))
				OR (pinned <> 0 AND digest <> @6::bytea))
				THEN pg_advisory_xact_lock(` + schema.KeyLock("{claims}", "@1::text", "@2::text") + `) IS NOT NULL ELSE false END
			ON CONFLICT (source, key) DO UPDATE SET ` + takeOver + `
			WHERE c.token = (SELECT token FROM seen) AND {claimable} AND {open}
			{returning claim}
		)
		SELECT true, won.*, seen.digest, set_config('lock_timeout', bound.previous, true), txid_current()
		FROM won CROSS JOIN bound LEFT JOIN seen ON true
		UNION ALL
		SELECT false, seen.*, seen.digest, set_config('lock_timeout', bound.previous, true), 0
		FROM seen CROSS JOIN bound WHERE NOT EXISTS (SELECT FROM won)
		UNION ALL
		SELECT false, '', 0, NULL, '', NULL, @7::timestamptz, @7::timestamptz, '', 0, NULL, set_config('lock_timeout', previous, true), 0
		FROM bound WHERE NOT EXISTS (SELECT FROM won) AND NOT EXISTS (SELECT FROM seen)`)
	d.takeEffects = sql(`
		UPDATE {effects} SET {begun}, due_at = @4, updated_at = @3
		WHERE id IN (
			SELECT id FROM {effects} WHERE id = ANY (string_to_array(@1, ',')::bigint[]) AND due_at <= @3
				AND (state <> 'processing' OR id = ANY (string_to_array(@2, ',')::bigint[]))
			FOR UPDATE SKIP LOCKED)
		{returning effect}`)
	return d
}

// decidePostgres runs the statement again when its answer is overtaken: the token 0 means that a row
// appeared after its snapshot, and a claimable row that was not won has changed since.
func decidePostgres(d dialect, ctx context.Context, q querier, p proposal) (ruling, error) {
	var setting string
	args := []any{p.Source, p.Key, string(p.state), d.nullable(p.lease), storable(p.Type), digest(p.Digest), p.now, timeout(p.wait), p.pinned(1)}
	for range maxRounds {
		r := ruling{claim: hookonce.Claim{Ref: p.Ref}}
		_, err := one(ctx, q, d.claim, args, append(append([]any{&r.won}, fields(&r.claim)...), &r.before, &setting, &r.number)...)
		if err != nil {
			return ruling{}, err
		}
		if r.claim.Token > 0 && (r.won || r.claim.VerdictFor(p.ClaimRequest, p.now) != hookonce.Acquired) {
			return r, nil
		}
	}
	return ruling{}, errOvertaken
}

// markPostgres returns the transaction's number, which the claim has given it already.
func markPostgres(ctx context.Context, tx *sql.Tx, number int64) (int64, error) {
	if number != 0 {
		return number, nil
	}
	err := tx.QueryRowContext(ctx, `SELECT txid_current()`).Scan(&number)
	return number, err
}

// unmarkPostgres asks for the number. A handler may have ended the transaction and begun another one, and the
// server accepts a COMMIT where there is none.
func unmarkPostgres(ctx context.Context, tx *sql.Tx, number int64) (intact bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(txid_current_if_assigned() = $1, false)`, number).Scan(&intact)
	if pgerror.State(err) == "25P02" { // in_failed_sql_transaction
		return false, ended.ErrHidden
	}
	return intact, err
}

// committedPostgres asks the server, which keeps the outcome of recent transactions.
// https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
func committedPostgres(_ dialect, ctx context.Context, q querier, _ hookonce.Claim, number int64) (bool, error) {
	var status string
	err := q.QueryRowContext(ctx, `SELECT coalesce(txid_status($1), 'forgotten')`, number).Scan(&status)
	if err == nil && status != "committed" && status != "aborted" {
		err = fmt.Errorf("the server says that it is %s", status)
	}
	return status == "committed", err
}

// storable returns text without what the database refuses. An event's type is only for people who look at the
// table: a strange one must not make the event impossible to handle.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// timeout is the form of lock_timeout, where zero would mean no limit.
func timeout(wait *time.Duration) any {
	if wait == nil {
		return nil
	}
	return fmt.Sprintf("%dms", max(1, wait.Milliseconds()))
}

func contendedPostgres(err error) contention {
	return map[string]contention{
		"55P03": held,  // lock_not_available
		"40001": again, // serialization_failure
		"40P01": again, // deadlock_detected
	}[pgerror.State(err)]
}

// unmigratedPostgres: the store's statements name nothing but its own table.
func unmigratedPostgres(_ context.Context, _ querier, _ string, err error) bool {
	return map[string]bool{
		"42P01": true, // undefined_table
		"42703": true, // undefined_column
		"3F000": true, // invalid_schema_name
	}[pgerror.State(err)]
}
