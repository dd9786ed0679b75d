package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/pgerror"
)

// postgres takes what decides about claims, guards and purges from where pgstore has it, so that
// both are one on the same tables, and the lists of effects, which know the indexes of these. What
// is not of them is said as in the other dialects.
func postgres(prefix string) dialect {
	texts := claimsql.Postgres(prefix, "")
	sql := language{prefix: prefix, placeholder: "$", Key: "key", returning: true}.statement
	s := common(sql)
	s.lookup = statement{text: texts.Lookup}
	s.claim, s.leave, s.keep = statement{text: texts.Claim}, statement{text: texts.Trace}, statement{text: texts.Keep}
	s.newest, s.transition, s.enqueue = statement{text: texts.Newer}, statement{text: texts.Transition}, statement{text: texts.Enqueue}
	s.takeEffects = sql(`
		UPDATE {{.}}effects SET {{begun}}, due_at = @4, updated_at = @3
		WHERE id IN (
			SELECT id FROM {{.}}effects WHERE id = ANY (string_to_array(@1, ',')::bigint[]) AND due_at <= @3
				AND (state <> 'processing' OR id = ANY (string_to_array(@2, ',')::bigint[]))
			FOR UPDATE SKIP LOCKED)
		{{.ReturningEffect}}`)
	s.effects = effectsBy(func(state hookonce.State) statement { return statement{text: texts.Effects[string(state)]} })
	s.dooms = map[string]doom{}
	for what, p := range texts.Purge {
		s.dooms[what] = doom{next: statement{text: p.Next}, count: statement{text: p.Count}, rows: statement{text: p.Delete}}
	}
	return dialect{
		statements: s,
		time:       func(t time.Time) any { return t },
		decide:     decidePostgres,
		trace:      tracePostgres,
		change:     changeReturning,
		mark:       markPostgres,
		unmark:     unmarkPostgres,
		committed:  committedPostgres,
		applied:    wrote,
		take:       takeAtOnce,
		purge:      purgePostgres,
		sound:      ddl.TakesClaims,
		contended:  contendedPostgres,
		oversize:   oversizePostgres,
		exists:     never,
		refused:    pgerror.NotCommitted,
		unmigrated: func(_ context.Context, _ querier, _ string, err error) bool { return pgerror.Unmigrated(err) },
	}
}

// decidePostgres runs the statement again when its answer is overtaken: the token 0 means that a row
// appeared after its snapshot, and a claimable row that was not won has changed since.
func decidePostgres(d dialect, ctx context.Context, q querier, p proposal) (ruling, error) {
	var setting string
	args := []any{
		p.Source, p.Key, string(p.state), d.nullable(p.lease), claimsql.Storable(p.Type), digest(p.Digest), p.now, timeout(p.wait), p.Pin,
	}
	for range maxRounds {
		r := ruling{claim: hookonce.Claim{Ref: p.Ref}}
		_, err := one(ctx, q, d.claim, args, append(append([]any{&setting, &r.won, &r.before}, fields(&r.claim)...), &r.number)...)
		if err != nil {
			return ruling{}, err
		}
		if r.claim.Token > 0 && (r.won || r.claim.VerdictFor(p.ClaimRequest, p.now) != hookonce.Acquired) {
			return r, nil
		}
	}
	return ruling{}, errOvertaken
}

// tracePostgres waits for another transaction as long as its context lets it.
func tracePostgres(d dialect, ctx context.Context, q querier, c hookonce.Claim, own torn) (recorded, opened bool, err error) {
	var number any
	if !own.made.IsZero() {
		number = own.number
	}
	recorded, err = one(ctx, q, d.leave, []any{
		c.Source, c.Key, string(c.State), c.Token, c.Type, digest(c.Digest),
		c.UpdatedAt, c.LastError, nil, c.FirstSeen, c.Pinned, d.nullable(own.made), number, own.error,
	}, &opened)
	return recorded, opened, err
}

// timeout is the form of lock_timeout, where zero would mean no limit.
func timeout(wait *time.Duration) any {
	if wait == nil {
		return nil
	}
	return fmt.Sprintf("%dms", max(1, wait.Milliseconds()))
}

func purgePostgres(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (n int64, err error) {
	if _, err = one(ctx, db, d.rows, append(args, limit), &n); err != nil {
		n = 0
	}
	return n, err
}

// markPostgres returns the transaction's number, which the claim has given it already.
func markPostgres(ctx context.Context, tx *sql.Tx, number int64) (int64, error) {
	if number != 0 {
		return number, nil
	}
	err := tx.QueryRowContext(ctx, claimsql.Number).Scan(&number)
	return number, err
}

// unmarkPostgres asks for the number. A handler may have ended the transaction and begun another one, and the
// server accepts a COMMIT where there is none.
func unmarkPostgres(ctx context.Context, tx *sql.Tx, number int64) (intact bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(txid_current_if_assigned() = $1, false)`, number).Scan(&intact)
	if pgerror.FailedTransaction(err) {
		return false, claimsql.ErrHidden
	}
	return intact, err
}

// committedPostgres asks the server, which keeps the outcome of recent transactions.
// https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
func committedPostgres(_ dialect, ctx context.Context, q querier, _ hookonce.Claim, number int64) (bool, error) {
	var status string
	if err := q.QueryRowContext(ctx, claimsql.Status, number).Scan(&status); err != nil {
		return false, err
	}
	return claimsql.Committed(status)
}

func contendedPostgres(err error) contention {
	switch {
	case pgerror.LockTimeout(err):
		return held
	case pgerror.LostRace(err):
		return again
	}
	return uncontended
}

var oversizePostgres = oversize{
	fits: func(_ context.Context, _ querier, r hookonce.Response) error {
		if n := int64(len(r.Body)); n > claimsql.MaxField {
			return tooLarge(n, claimsql.MaxField)
		}
		return nil
	},
	told: pgerror.TooLarge,
}
