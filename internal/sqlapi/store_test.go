package sqlapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// store is a store that knows nothing but the functions: what a program in another language would write.
// The functions take their time from the clock only because [withTestClock] replaced theirs.
type store struct {
	hookonce.EffectQueue // relays are no matter of the functions
	hookonce.EffectAdmin
	pool   *pgxpool.Pool
	schema string
	clock  func() time.Time
	wait   time.Duration
}

var (
	_ hookonce.TxStore[pgx.Tx] = (*store)(nil)
	_ hookonce.Guards[pgx.Tx]  = (*store)(nil)
	_ hookonce.Outbox[pgx.Tx]  = (*store)(nil)
)

// defaultWait is that of the functions.
const defaultWait = 2 * time.Second

// withTestClock makes the functions take their time from a setting, which [store.ask] sets.
func withTestClock(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	_, err := pool.Exec(ctx, `CREATE OR REPLACE FUNCTION `+schema+`.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS $$ SELECT current_setting('hookonce_test.clock')::timestamptz $$`)
	return err
}

// asker is a pool or a transaction.
type asker interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// ask runs queries, with the schema put in for %s, at the store's time. On a pool they are one
// transaction.
func (s *store) ask(ctx context.Context, on asker, queries ...query) error {
	var b pgx.Batch
	now := s.clock().UTC().Format("2006-01-02 15:04:05.999999Z07:00")
	b.Queue("SELECT set_config('hookonce_test.clock', $1, true)", now)
	for _, q := range queries {
		b.Queue(fmt.Sprintf(q.text, s.schema), q.args...).QueryRow(q.read)
	}
	return translate(on.SendBatch(ctx, &b).Close())
}

type query struct {
	text string
	args []any
	read func(pgx.Row) error
}

// translate gives the documented SQLSTATEs the names that the library has for them.
func translate(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	known := map[string]error{
		"WH001": hookonce.ErrStale, "WH002": hookonce.ErrNotFound, "WH003": hookonce.ErrInvalidRef,
		"WH004": hookonce.ErrEffectExists, "WH005": hookonce.ErrPinned, "55P03": hookonce.ErrBusy, "22021": hookonce.ErrInvalidRef, // not UTF-8
	}[e.Code]
	if known == nil {
		return err
	}
	return fmt.Errorf("%w: %w", known, err)
}

func ignore(row pgx.Row) error { return row.Scan(nil) }

// answer reads a claim_answer into c, of which only the reference is set.
func answer(c *hookonce.Claim) func(pgx.Row) error {
	return func(row pgx.Row) error {
		var verdict *string
		var lease, first, updated *time.Time
		err := row.Scan(&verdict, &c.State, &c.Token, &lease, &c.Conflict, &c.Type, &c.Digest, &first, &updated, &c.LastError, &c.Pinned)
		if errors.Is(err, pgx.ErrNoRows) {
			return hookonce.ErrNotFound
		}
		for _, v := range []hookonce.Verdict{hookonce.Acquired, hookonce.Duplicate, hookonce.Busy, hookonce.Unkeyed, hookonce.Pinned} {
			if verdict != nil && v.String() == *verdict {
				c.Verdict = v
			}
		}
		c.Lease, c.FirstSeen, c.UpdatedAt = utc(lease), utc(first), utc(updated)
		return err
	}
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// stored reads a row of claims, through lookup().
func stored(c *hookonce.Claim) query {
	return query{
		text: `SELECT NULL::text, state, token, lease_until, false, event_type, digest, first_seen, updated_at, last_error, pinned FROM %s.lookup($1, $2)`,
		args: []any{c.Source, c.Key}, read: answer(c),
	}
}

func (s *store) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	c := hookonce.Claim{Ref: req.Ref}
	err := s.ask(ctx, s.pool, query{
		text: `SELECT * FROM %s.lease($1, $2, $3, $4, $5, $6, $7)`,
		args: []any{req.Source, req.Key, req.Lease.Seconds(), storable(req.Type), req.Digest, cmp.Or(s.wait, defaultWait), req.Pin}, read: answer(&c),
	})
	return c, err
}

func (s *store) ClaimTx(ctx context.Context, tx pgx.Tx, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := req.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	c := hookonce.Claim{Ref: req.Ref}
	err := s.ask(ctx, tx, query{
		text: `SELECT * FROM %s.claim_detail($1, $2, $3, $4, $5)`,
		args: []any{req.Source, req.Key, storable(req.Type), req.Digest, cmp.Or(s.wait, defaultWait)}, read: answer(&c),
	})
	if err == nil {
		err = c.Verdict.Err()
	}
	return c, err
}

func (s *store) Complete(ctx context.Context, c hookonce.Claim) error {
	return s.ask(ctx, s.pool, query{`SELECT %s.complete($1, $2, $3)`, []any{c.Source, c.Key, c.Token}, ignore})
}

func (s *store) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	var forget *time.Time
	if f.Forgets(c.Token) {
		forget = &c.FirstSeen
	}
	return s.ask(ctx, s.pool, query{
		text: `SELECT %s.fail($1, $2, $3, $4, $5, $6, $7)`,
		args: []any{c.Source, c.Key, c.Token, text(f), f.Dead, f.Pin, forget}, read: ignore,
	})
}

// text is the error's text. The functions cut it.
func text(f hookonce.Failure) string {
	if f.Err == nil {
		return ""
	}
	return storable(f.Err.Error())
}

// storable is s as far as a text of Postgres can hold it.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func (s *store) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	extended := hookonce.Claim{Ref: c.Ref}
	err := s.ask(ctx, s.pool,
		query{`SELECT %s.extend($1, $2, $3, $4)`, []any{c.Source, c.Key, c.Token, d.Seconds()}, ignore},
		stored(&extended))
	extended.Verdict, extended.Conflict = c.Verdict, c.Conflict
	return extended, err
}

func (s *store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Claim{}, err
	}
	c := hookonce.Claim{Ref: ref}
	err := s.ask(ctx, s.pool, stored(&c))
	return c, err
}

// Purge only counts by taking back what it did.
func (s *store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	err = s.ask(ctx, tx, query{
		text: `SELECT %s.purge($1, $2, $3, nullif($4, ''), $5)`,
		args: []any{req.Before, min(req.Limit, 1<<30), cmp.Or(req.Kind, hookonce.PurgeEvents), req.Source, append([]string{}, req.Except...)},
		read: func(row pgx.Row) error { return row.Scan(&n) },
	})
	if err != nil || req.Dry {
		return n, err
	}
	return n, tx.Commit(ctx)
}
