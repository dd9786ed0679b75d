package sqlapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// caller is a migrated database as a program sees it that calls the functions.
type caller struct {
	*pgxpool.Pool
	t        *testing.T
	warnings chan string
}

func newCaller(t *testing.T, opts ...func(*pgxpool.Config)) *caller {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "30s"           // ends what would wait for ever
	cfg.ConnConfig.RuntimeParams["hookonce.autocommit_warning"] = "off" // most cases need no transaction
	for _, o := range opts {
		o(cfg)
	}
	d := &caller{t: t, warnings: make(chan string, 100)}
	cfg.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { d.warnings <- n.Severity + ": " + n.Message }
	if d.Pool, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Pool.Close)
	migrate(t, d.Pool, "hookonce")
	return d
}

// rower is a pool or a transaction.
type rower interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ask runs a query with one value as its result.
func ask[T any](d *caller, on rower, query string, args ...any) (v T, err error) {
	err = on.QueryRow(d.t.Context(), query, args...).Scan(&v)
	return v, err
}

// is checks the result of a query.
func is[T comparable](d *caller, on rower, want T, query string, args ...any) {
	d.t.Helper()
	if got, err := ask[T](d, on, query, args...); err != nil || got != want {
		d.t.Fatalf("%s %v = %v, %v; want %v", query, args, got, err, want)
	}
}

// refuses checks the SQLSTATE of a query's error.
func refuses(d *caller, on rower, code, query string, args ...any) *pgconn.PgError {
	d.t.Helper()
	_, err := ask[any](d, on, query, args...)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != code {
		d.t.Fatalf("%s: %v; want SQLSTATE %s", query, err, code)
	}
	if strings.TrimSpace(e.Message) == "" {
		d.t.Fatalf("%s: no message", query)
	}
	return e
}

func (d *caller) begin() pgx.Tx {
	d.t.Helper()
	tx, err := d.Begin(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (d *caller) end(f func(context.Context) error) {
	d.t.Helper()
	if err := f(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// warned checks what the server said since the last look; nothing, if want is empty.
func (d *caller) warned(want string) {
	d.t.Helper()
	got := ""
	select {
	case got = <-d.warnings:
	default:
	}
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		d.t.Fatalf("the server warned %q, want %q", got, want)
	}
}

func TestClaimCommitsWithTheTransaction(t *testing.T) {
	d := newCaller(t)
	tx := d.begin()
	is(d, tx, true, "SELECT hookonce.claim('shop', 'evt_1', 'paid', '{}')")
	is(d, tx, false, "SELECT hookonce.claim('shop', 'evt_1', 'paid', '{}')")
	d.end(tx.Rollback)
	tx = d.begin()
	is(d, tx, true, "SELECT hookonce.claim('shop', 'evt_1', 'paid', '{}')")
	d.end(tx.Commit)
	is(d, d, false, "SELECT hookonce.claim('shop', 'evt_1', 'paid', '{}')")
	is(d, d, true, "SELECT hookonce.claim('mail', 'evt_1')")
	d.warned("")
}

// Events without a key are never taken for one another, and none is lost.
func TestClaimWithoutAKeyWritesNothing(t *testing.T) {
	d := newCaller(t)
	for range 2 {
		is(d, d, true, "SELECT hookonce.claim('shop', NULL, 'paid', '{}')")
		is(d, d, true, "SELECT hookonce.claim('shop', '', 'paid', '{}')")
		is(d, d, "unkeyed", "SELECT verdict FROM hookonce.claim_detail('shop', NULL)")
		is(d, d, "unkeyed", "SELECT verdict FROM hookonce.lease('shop', '', 60)")
	}
	is(d, d, false, "SELECT hookonce.failed('shop', NULL, 'declined')")
	is(d, d, int64(0), "SELECT count(*) FROM hookonce.claims")
}

// Other content under a known key is said, and changes nothing.
func TestClaimWarnsOfConflicts(t *testing.T) {
	d := newCaller(t)
	is(d, d, true, "SELECT hookonce.claim('shop', 'evt_1', 'paid', $1::bytea)", []byte("one"))
	is(d, d, false, "SELECT hookonce.claim('shop', 'evt_1', 'paid', $1::text)", "one")
	is(d, d, false, "SELECT hookonce.claim('shop', 'evt_1')")
	d.warned("")
	is(d, d, false, "SELECT hookonce.claim('shop', 'evt_1', 'paid', $1::text)", "two")
	d.warned("WARNING: hookonce: shop came again under the key evt_1 with other content")
	is(d, d, true, "SELECT conflict FROM hookonce.claim_detail('shop', 'evt_1', digest => hookonce.digest('two'))")
	d.warned("")
	is(d, d, false, "SELECT conflict FROM hookonce.claim_detail('shop', 'evt_1', digest => hookonce.digest('one'))")
}

// What is bound to other content is refused, by name: false would be acknowledged, and the event be
// lost.
func TestClaimOfWhatIsPinned(t *testing.T) {
	d := newCaller(t)
	mustExec(t, d.Pool, "SELECT * FROM hookonce.lease('shop', 'evt_1', 60, digest => hookonce.digest('one'))")
	mustExec(t, d.Pool, "SELECT hookonce.fail('shop', 'evt_1', 1, pinned => true)")
	for _, body := range []string{"'two'::text", "'two'::bytea"} {
		e := refuses(d, d, "WH005", "SELECT hookonce.claim('shop', 'evt_1', 'paid', "+body+")")
		if !strings.Contains(e.Message, "the content of attempt 1") || e.Hint == "" {
			t.Errorf("%s: %v, hint %q", body, e, e.Hint)
		}
	}
	is(d, d, "pinned", "SELECT verdict FROM hookonce.claim_detail('shop', 'evt_1', digest => hookonce.digest('two'))")
	is(d, d, true, "SELECT hookonce.claim('shop', 'evt_1', 'paid', 'one'::text)")
}

// A first attempt that may have had effects outside, or was given up, stays on record, whatever
// else is said of it.
func TestFailForgetsOnlyWhatWasRefused(t *testing.T) {
	d := newCaller(t)
	for outcome, want := range map[string]string{"pinned => true": "failed", "dead => true": "dead"} {
		mustExec(t, d.Pool, "SELECT * FROM hookonce.lease('shop', $1, 60)", outcome)
		mustExec(t, d.Pool, "SELECT hookonce.fail('shop', key, token, "+outcome+", forget => first_seen) FROM hookonce.lookup('shop', $1)", outcome)
		is(d, d, want, "SELECT state FROM hookonce.lookup('shop', $1)", outcome)
	}
}

// The time of a first attempt tells it from a later one of the same token, whole or with the milliseconds that a client keeps of
// it, as JavaScript does.
func TestFailForgetsByTheTime(t *testing.T) {
	for name, kept := range map[string]string{"whole": "first_seen", "milliseconds": "date_trunc('milliseconds', first_seen)"} {
		t.Run(name, func(t *testing.T) {
			d := newCaller(t)
			mustExec(t, d.Pool, "SELECT hookonce.lease('shop', 'evt_1', 60)")
			mustExec(t, d.Pool, "UPDATE hookonce.claims SET first_seen = date_trunc('milliseconds', first_seen) + interval '7 microseconds'")
			first, err := ask[string](d, d, "SELECT ("+kept+")::text FROM hookonce.claims")
			if err != nil {
				t.Fatal(err)
			}
			const fail = "SELECT hookonce.fail('shop', 'evt_1', 1, forget => "
			for _, other := range []string{"- interval '1 microsecond'", "- interval '1 millisecond'", "+ interval '1 millisecond'"} {
				refuses(d, d, "WH001", fail+"$1::text::timestamptz "+other+")", first)
			}
			is(d, d, "processing", "SELECT state FROM hookonce.lookup('shop', 'evt_1')")
			mustExec(t, d.Pool, fail+"$1::text::timestamptz)", first)
			is(d, d, 0, "SELECT count(*) FROM hookonce.lookup('shop', 'evt_1')")
		})
	}
}

// A row is the same whoever made it.
func TestRowIsTheLibrarys(t *testing.T) {
	d := newCaller(t)
	const key, body = "evt\n1", `{"id": "evt\n1"}`
	store := pgstore.New(d.Pool)
	is(d, d, true, "SELECT hookonce.claim('shop', $1, 'paid', $2::text)", key, body)
	sum := sha256.Sum256([]byte(body))
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shop", Key: hookonce.NormalKey(key)}, Digest: sum[:16]}
	c, err := store.Claim(t.Context(), req)
	if err != nil || c.Verdict != hookonce.Duplicate || c.Conflict {
		t.Fatalf("the library sees %+v, %v", c, err)
	}
	req.Key, req.Type = "evt_2", "paid"
	if _, err := store.Within(t.Context(), req, func(pgx.Tx, hookonce.Claim) error { return nil }); err != nil {
		t.Fatal(err)
	}
	is(d, d, false, "SELECT hookonce.claim('shop', 'evt_2', 'paid', $1::text)", body)
	d.warned("")
	rows := map[string]string{}
	for _, key := range []string{c.Key, "evt_2"} {
		row, err := ask[string](d, d, `SELECT (to_jsonb(c) - 'key' - 'first_seen' - 'updated_at')::text FROM hookonce.claims c WHERE key = $1`, key)
		if err != nil {
			t.Fatal(err)
		}
		rows[key] = row
	}
	if diff := cmp.Diff(rows[c.Key], rows["evt_2"]); diff != "" {
		t.Errorf("-functions +library\n%s", diff)
	}
}

// While another transaction holds the key it waits, no longer than it is told to, and then says busy in a
// way that leaves the caller's settings alone.
func TestClaimIsBusy(t *testing.T) {
	d := newCaller(t)
	owner := d.begin()
	is(d, owner, true, "SELECT hookonce.claim('shop', 'evt_1')")
	for name, query := range map[string]string{
		"the argument":     "SELECT hookonce.claim('shop', 'evt_1', wait => '20 ms')",
		"with a text":      "SELECT hookonce.claim('shop', 'evt_1', 'paid', '{}'::text, wait => '20 ms') FROM set_config('lock_timeout', '1min', true)",
		"no time at all":   "SELECT hookonce.claim('shop', 'evt_1', wait => '0 s')",
		"lock_timeout":     "SELECT hookonce.claim('shop', 'evt_1') FROM set_config('lock_timeout', '20ms', true)",
		"once":             "SELECT hookonce.once('o', 'k') FROM set_config('lock_timeout', '20ms', true)",
		"a failure's note": "SELECT hookonce.failed('shop', 'evt_1') FROM set_config('lock_timeout', '20ms', true)",
	} {
		if name == "once" {
			is(d, owner, true, "SELECT hookonce.once('o', 'k')")
		}
		if e := refuses(d, d, "55P03", query); !strings.Contains(e.Message, "held by another worker") || e.Hint == "" {
			t.Errorf("%s: %v, hint %q", name, e, e.Hint)
		}
	}
	tx := d.begin()
	if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '7s'"); err != nil {
		t.Fatal(err)
	}
	is(d, tx, "busy", "SELECT verdict FROM hookonce.claim_detail('shop', 'evt_1', wait => '20 ms')")
	is(d, tx, "7s", "SHOW lock_timeout")
	d.end(owner.Commit)
	is(d, tx, "duplicate", "SELECT verdict FROM hookonce.claim_detail('shop', 'evt_1', wait => '20 s')")
	is(d, tx, "7s", "SHOW lock_timeout")
}

// Nobody waits for ever by accident.
func TestPatience(t *testing.T) {
	d := newCaller(t)
	for _, tt := range []struct{ timeout, wait, want string }{
		{"0", "NULL", "2 s"}, {"5s", "NULL", "5 s"}, {"1500ms", "NULL", "1.5 s"}, {"2min", "NULL", "2 min"}, {"0", "'3 s'", "3 s"}, {"5s", "'3 s'", "3 s"},
	} {
		is(d, d, true, "SELECT hookonce.patience("+tt.wait+") - clock_timestamp() BETWEEN $1::interval - interval '1 s' AND $1::interval FROM set_config('lock_timeout', $2, true)", tt.want, tt.timeout)
	}
}

// A claim that waits is told the truth when the owner ends, and its own settings stay.
func TestClaimWaitsForTheOwner(t *testing.T) {
	for name, want := range map[string]bool{"commit": false, "rollback": true} {
		t.Run(name, func(t *testing.T) {
			d := newCaller(t)
			owner, waiter := d.begin(), d.begin()
			is(d, owner, true, "SELECT hookonce.claim('shop', 'evt_1')")
			answer := make(chan error, 1)
			var got bool
			go func() {
				var err error
				got, err = ask[bool](d, waiter, "SELECT hookonce.claim('shop', 'evt_1', wait => '1 min')")
				answer <- err
			}()
			d.awaitWaiter()
			if name == "commit" {
				d.end(owner.Commit)
			} else {
				d.end(owner.Rollback)
			}
			if err := <-answer; err != nil || got != want {
				t.Fatalf("the second is told %v, %v; want %v", got, err, want)
			}
			is(d, waiter, "0", "SHOW lock_timeout")
		})
	}
}

// Who waits while the library changes the claim in a transaction of its own finds what became of
// it, and takes over nothing that it may not.
func TestClaimOfWhatIsChangedMeanwhile(t *testing.T) {
	for change, want := range map[string]string{
		"state = 'done', lease_until = NULL":               "duplicate",
		"state = 'failed', lease_until = NULL, pinned = 1": "pinned",
		"lease_until = now() + interval '1 hour'":          "busy",
	} {
		t.Run(want, func(t *testing.T) {
			d := newCaller(t)
			mustExec(t, d.Pool, "SELECT * FROM hookonce.lease('shop', 'evt_1', -1, digest => hookonce.digest('one'))")
			owner := d.begin()
			if _, err := owner.Exec(t.Context(), "UPDATE hookonce.claims SET "+change); err != nil {
				t.Fatal(err)
			}
			answer := make(chan error, 1)
			var got string
			go func() {
				var err error
				got, err = ask[string](d, d, "SELECT verdict FROM hookonce.claim_detail('shop', 'evt_1', digest => hookonce.digest('two'))")
				answer <- err
			}()
			d.awaitWaiter()
			d.end(owner.Commit)
			if err := <-answer; err != nil || got != want {
				t.Errorf("it is told %s, %v; want %s", got, err, want)
			}
		})
	}
}

// awaitWaiter returns when a connection waits for a lock.
func (d *caller) awaitWaiter() {
	d.t.Helper()
	for waiting := false; !waiting; {
		var err error
		waiting, err = ask[bool](d, d, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// Callers at other isolation levels get an error that says to try again, never a second effect.
func TestStricterIsolation(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			d := newCaller(t)
			tx, err := d.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background())
			is(d, tx, int64(0), "SELECT count(*) FROM hookonce.claims") // takes the snapshot
			is(d, d, true, "SELECT hookonce.claim('shop', 'evt_1')")
			refuses(d, tx, "40001", "SELECT hookonce.claim('shop', 'evt_1')")
			d.end(tx.Rollback)
			again, err := d.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Rollback(context.Background())
			is(d, again, false, "SELECT hookonce.claim('shop', 'evt_1')")
		})
	}
}

// What an application does that keeps no token: claim, roll back, failed, and again.
func TestFailedWithoutAToken(t *testing.T) {
	d := newCaller(t)
	const state = "SELECT state || ' ' || token || ' ' || last_error FROM hookonce.lookup('shop', 'evt_1')"
	is(d, d, true, "SELECT hookonce.failed('shop', 'evt_1', 'one')")
	is(d, d, "failed 1 one", state)
	is(d, d, true, "SELECT hookonce.failed('shop', 'evt_1', 'two', dead => true)")
	is(d, d, "dead 2 two", state)
	is(d, d, false, "SELECT hookonce.failed('shop', 'evt_1', 'late')") // the sender was told to stop
	is(d, d, "dead 2 two", state)
	is(d, d, true, "SELECT hookonce.failed('shop', 'evt_1', 'three', dead => true)")
	is(d, d, "dead 3 three", state)
	is(d, d, "accepted 4", "SELECT verdict || ' ' || token FROM hookonce.lease('shop', 'evt_1', 60)")
	is(d, d, false, "SELECT hookonce.failed('shop', 'evt_1', 'late', dead => true)") // somebody holds it
	mustExec(t, d.Pool, "SELECT hookonce.complete('shop', 'evt_1', 4)")
	is(d, d, false, "SELECT hookonce.failed('shop', 'evt_1', 'late')")
	is(d, d, "done 4 three", state)
}

// What cannot be stored is refused by name, and nothing is written.
func TestRefusals(t *testing.T) {
	d := newCaller(t)
	long := strings.Repeat("x", hookonce.MaxKeyLen+1)
	for _, query := range []string{
		"hookonce.claim(NULL, 'k')", "hookonce.claim('', 'k')", "hookonce.claim(E'a\\nb', 'k')", "hookonce.claim('" + long + "', 'k')",
		"hookonce.claim('', NULL)", "hookonce.claim('once:fee', 'k')", "hookonce.failed('', 'k')", "hookonce.complete('', 'k', 1)",
		"hookonce.once('', 'k')", "hookonce.once('s', '')", "hookonce.once(NULL, 'k')", "hookonce.once('s', NULL)",
		"hookonce.once('" + long[:hookonce.MaxKeyLen] + "', 'k')",
		"hookonce.newer('', 1)", "hookonce.newer(NULL, 1)", "hookonce.newer('" + long + "', 1)", "hookonce.newer(E'a\\tb', 1)", "hookonce.newer('', 1, 'time')",
		"hookonce.newer('r', 1, 'age')", "hookonce.newer('r', 1, '')", "hookonce.newer('r', 1, NULL)", "hookonce.newer('r', NULL, 'age')",
		"(hookonce.transition('', '', 'a')).state", "(hookonce.transition('e', 'a', 'a')).state", "(hookonce.transition('e', 'a', '')).state",
		"(hookonce.transition('e', NULL, 'a')).state", "(hookonce.transition('e', 'a', NULL)).state", "(hookonce.transition('" + long + "', '', 'a')).state",
		"hookonce.enqueue('', '{}', 's')", "hookonce.enqueue('n', '{}', '')", "hookonce.enqueue('n', '{}', 's', 'k', '" + long + "')",
		"hookonce.enqueue('n', repeat('x', 1048577), 's')",
	} {
		refuses(d, d, "WH003", "SELECT "+query)
	}
	for _, seconds := range []string{"0", "-1", "NULL"} {
		refuses(d, d, "22023", "SELECT hookonce.extend('shop', 'k', 1, "+seconds+")")
	}
	refuses(d, d, "WH002", "SELECT hookonce.complete('shop', 'k', 1)")
	refuses(d, d, "WH002", "SELECT hookonce.complete('shop', '', 0)")
	for _, table := range []string{"claims", "versions", "states", "effects"} {
		is(d, d, int64(0), "SELECT count(*) FROM hookonce."+table)
	}
}

// A stale owner is told so, with a code that programs can tell apart, and its transaction cannot commit.
func TestStaleOwner(t *testing.T) {
	d := newCaller(t)
	is(d, d, int64(1), "SELECT token FROM hookonce.lease('shop', 'evt_1', -1)")
	is(d, d, int64(2), "SELECT token FROM hookonce.lease('shop', 'evt_1', 60)")
	tx := d.begin()
	if e := refuses(d, tx, "WH001", "SELECT hookonce.complete('shop', 'evt_1', 1)"); e.Hint == "" {
		t.Error("there is no hint")
	}
	if err := tx.Commit(t.Context()); !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("Commit = %v", err)
	}
	refuses(d, d, "WH001", "SELECT hookonce.fail('shop', 'evt_1', 1, 'late')")
	refuses(d, d, "WH001", "SELECT hookonce.extend('shop', 'evt_1', 1, 60)")
	refuses(d, d, "WH001", "SELECT hookonce.complete('shop', 'evt_1', NULL)")
	is(d, d, "processing", "SELECT state FROM hookonce.lookup('shop', 'evt_1')")
	is(d, d, true, "SELECT hookonce.extend('shop', 'evt_1', 2, 60) > clock_timestamp()")
}
