package endtoend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// right is one kind of statement on one table.
type right struct{ verb, table string }

// listedRights reads the table of docs/operating.md: what a program does, and what its role needs on Postgres and
// on MySQL.
func listedRights(t *testing.T) map[string][2][]right {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Rights in the database\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string][2][]right{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 3 && strings.Contains(line, " ON ") {
			listed[strings.TrimSpace(cells[0])] = [2][]right{rightsIn(cells[1]), rightsIn(cells[2])}
		}
	}
	return listed
}

// rightsIn reads what stands in backquotes: `SELECT, INSERT ON claims, responses`.
func rightsIn(cell string) (all []right) {
	for _, grant := range regexp.MustCompile("`([A-Z, ]+) ON ([a-z_, ]+)`").FindAllStringSubmatch(cell, -1) {
		for table := range strings.SplitSeq(grant[2], ", ") {
			for verb := range strings.SplitSeq(grant[1], ", ") {
				all = append(all, right{verb, table})
			}
		}
	}
	return all
}

// door is something that a role may be there for. Each run is under keys of its own.
type door func(ctx context.Context, key string) error

// fullStore is what pgstore and sqlstore can do.
type fullStore[Tx any] interface {
	hookonce.TxResponseStore[Tx]
	hookonce.Guards[Tx]
	hookonce.Outbox[Tx]
	hookonce.Tallier
	Check(context.Context) error
}

var errDeclined = errors.New("declined")

// storeDoors are the doors of a store. Admin is the same store with all rights, which makes what others need.
func storeDoors[Tx any](store, admin fullStore[Tx], begin, beginAdmin func(ctx context.Context, f func(tx Tx) error) error) map[string]door {
	inTx := func(ctx context.Context, key string, f func(ctx context.Context, tx Tx) error) error {
		c := hookonce.Claim{Ref: hookonce.Ref{Source: "rights", Key: key}}
		return begin(ctx, func(tx Tx) error { return f(hookonce.ContextWith(ctx, store, c, nil), tx) })
	}
	return map[string]door{
		"`Webhook`, `Within`, `ClaimTx`, `Once`, `Lookup`, `Await`": func(ctx context.Context, key string) error {
			req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "rights", Key: key}}
			for _, result := range []error{hookonce.Forget(errDeclined), errDeclined, nil, nil} { // is refused, fails, succeeds, is a copy
				if _, err := store.Within(ctx, req, func(Tx, hookonce.Claim) error { return result }); !errors.Is(err, result) || errors.Is(err, hookonce.ErrTraceLost) {
					return err
				}
			}
			if _, err := store.Lookup(ctx, req.Ref); err != nil {
				return err
			}
			if awaiter, ok := any(store).(hookonce.Awaiter); ok {
				if err := awaiter.Await(ctx, req.Ref); err != nil {
					return err
				}
			}
			return inTx(ctx, key, func(ctx context.Context, tx Tx) error {
				_, err := hookonce.Once(ctx, tx, "fee", key)
				return err
			})
		},
		"`WebhookLease`, `UnderLease`": func(ctx context.Context, key string) error {
			req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "rights", Key: key}}
			for _, result := range []error{hookonce.Forget(errDeclined), errDeclined, nil, nil} {
				_, err := hookonce.UnderLease(ctx, store, req, func(ctx context.Context, c hookonce.Claim) error {
					if _, err := store.Extend(ctx, c, time.Minute); err != nil {
						return err
					}
					return result
				})
				if !errors.Is(err, result) || errors.Is(err, hookonce.ErrTraceLost) {
					return err
				}
			}
			return nil
		},
		"`Idempotent`": func(ctx context.Context, key string) error {
			return answered(ctx, store, key, func(answer http.HandlerFunc) http.Handler {
				return hookonce.Idempotent(store, "rights", func(w http.ResponseWriter, r *http.Request, tx Tx) error {
					answer(w, r)
					return nil
				}, hookonce.WithoutScope(), silent)
			})
		},
		"package `tallies`": func(ctx context.Context, key string) error {
			old := []hookonce.Tally{{Minute: time.Now().AddDate(-1, 0, 0), Source: "rights", Status: "accepted", N: 1}}
			for seq := range int64(2) {
				if err := store.AddTallies(ctx, key, seq+1, old); err != nil {
					return err
				}
			}
			_, err := store.ForgetTallies(ctx)
			return err
		},
		"`IdempotentLease`": func(ctx context.Context, key string) error {
			return answered(ctx, store, key, func(answer http.HandlerFunc) http.Handler {
				return hookonce.IdempotentLease(store, "rights", answer, hookonce.WithoutScope(), silent)
			})
		},
		"`Newer`": func(ctx context.Context, key string) error {
			return inTx(ctx, key, func(ctx context.Context, tx Tx) error {
				for version := range int64(2) {
					if _, err := hookonce.NewerRank(ctx, tx, key, hookonce.Version(version+1)); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"`Transition`": func(ctx context.Context, key string) error {
			return inTx(ctx, key, func(ctx context.Context, tx Tx) error {
				for _, move := range [][2]string{{"", "paid"}, {"paid", "shipped"}, {"paid", "lost"}} {
					if _, _, err := hookonce.Transition(ctx, tx, key, move[0], move[1]); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"`Enqueue`": func(ctx context.Context, key string) error {
			return inTx(ctx, key, func(ctx context.Context, tx Tx) error {
				return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"})
			})
		},
		"package `relay`, `Effects`, `RedriveEffect`": func(ctx context.Context, key string) error {
			err := beginAdmin(ctx, func(tx Tx) error {
				return admin.Enqueue(ctx, tx, hookonce.Effect{Ref: hookonce.Ref{Source: "rights", Key: key}, Name: key})
			})
			if err != nil {
				return err
			}
			return relayOnce(ctx, store, key)
		},
		"`Purge`": func(ctx context.Context, key string) error {
			c, err := admin.Claim(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "rights", Key: key}})
			if err == nil {
				err = admin.CompleteWith(ctx, c, hookonce.Response{Status: 200})
			}
			if err == nil {
				_, err = store.Purge(ctx, hookonce.PurgeRequest{Before: time.Now(), Limit: 10})
			}
			return err
		},
		"`Purge` of effects": func(ctx context.Context, key string) error {
			err := beginAdmin(ctx, func(tx Tx) error {
				return admin.Enqueue(ctx, tx, hookonce.Effect{Ref: hookonce.Ref{Source: "rights", Key: key}, Name: key})
			})
			if err == nil {
				err = relayOnce(ctx, admin, key)
			}
			return errors.Join(err, purgeAll(ctx, store, hookonce.PurgeEffects))
		},
		"`Purge` of versions": func(ctx context.Context, key string) error {
			err := beginAdmin(ctx, func(tx Tx) error {
				_, err := admin.Newer(ctx, tx, key, hookonce.Version(1))
				return err
			})
			return errors.Join(err, purgeAll(ctx, store, hookonce.PurgeVersions))
		},
		"`Purge` of states": func(ctx context.Context, key string) error {
			err := beginAdmin(ctx, func(tx Tx) error {
				_, _, err := admin.Transition(ctx, tx, key, "", "paid")
				return err
			})
			return errors.Join(err, purgeAll(ctx, store, hookonce.PurgeStates))
		},
		"`Check`": func(ctx context.Context, key string) error { return store.Check(ctx) },
	}
}

// answered sends a request that is refused, which leaves no claim, then one that fails, one that is answered, and a
// copy of that.
func answered(ctx context.Context, store hookonce.Store, key string, handler func(http.HandlerFunc) http.Handler) error {
	for i, status := range []int{http.StatusUnauthorized, http.StatusServiceUnavailable, http.StatusOK, http.StatusOK} {
		var ref hookonce.Ref
		h := handler(func(w http.ResponseWriter, r *http.Request) {
			ref, _ = hookonce.RefFrom(r.Context())
			w.WriteHeader(status)
		})
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != status {
			return fmt.Errorf("%w: answered %d", errDenied, w.Code)
		}
		if i > 0 {
			continue
		}
		if _, err := store.Lookup(ctx, ref); !errors.Is(err, hookonce.ErrNotFound) {
			return fmt.Errorf("%w: the refusal left a claim: %w", errDenied, err)
		}
	}
	return nil
}

// purgeAll deletes all of a kind.
func purgeAll(ctx context.Context, store hookonce.Purger, kind hookonce.PurgeKind) error {
	_, err := store.Purge(ctx, hookonce.PurgeRequest{Kind: kind, Before: time.Now(), Limit: 10})
	return err
}

var silent = hookonce.WithLogger(slog.New(slog.DiscardHandler))

// errDenied stands for what an answer does not tell.
var errDenied = errors.New("permission denied")

// relayOnce does with one effect what a relay and those who look after it do.
func relayOnce(ctx context.Context, queue interface {
	hookonce.EffectQueue
	hookonce.EffectAdmin
}, name string) error {
	take := hookonce.TakeRequest{Names: []string{name}, Limit: 1, Lease: time.Minute}
	for _, outcome := range []func(e hookonce.QueuedEffect) error{
		func(e hookonce.QueuedEffect) error {
			return queue.FailEffect(ctx, e, hookonce.Failure{Err: errDeclined, Dead: true}, time.Time{})
		},
		func(e hookonce.QueuedEffect) error { return queue.CompleteEffect(ctx, e) },
	} {
		taken, err := queue.TakeEffects(ctx, take)
		if err != nil || len(taken) != 1 {
			return fmt.Errorf("took %d: %w", len(taken), err)
		}
		if _, err := queue.ExtendEffect(ctx, taken[0], time.Minute); err != nil {
			return err
		}
		if err := outcome(taken[0]); err != nil {
			return err
		}
		dead, err := queue.Effects(ctx, hookonce.StateDead, 0, 10)
		if err != nil {
			return err
		}
		for _, e := range dead {
			if err := queue.RedriveEffect(ctx, e.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// sqlDoors are the doors of the SQL functions, and of the statements that have an event done again.
func sqlDoors(pool *pgxpool.Pool, forget []string) map[string]door {
	calls := func(texts ...string) door {
		return func(ctx context.Context, key string) error {
			for _, text := range texts {
				if _, err := pool.Exec(ctx, strings.ReplaceAll(text, "KEY", key)); err != nil {
					return fmt.Errorf("%s: %w", text, err)
				}
			}
			return nil
		}
	}
	return map[string]door{
		"SQL: `claim`, `claim_detail`, `failed`, `once`, `lease`, `extend`, `complete`, `fail`, `lookup`": calls(
			"SELECT hookonce.failed('sql', 'KEY', 'declined')", "BEGIN; SELECT hookonce.claim('sql', 'KEY'); COMMIT", "SELECT hookonce.claim('sql', 'KEY')",
			"SELECT hookonce.lease('sql', 'KEY-2', 60)", "SELECT hookonce.extend('sql', 'KEY-2', 1, 60)", "SELECT hookonce.fail('sql', 'KEY-2', 1)",
			"SELECT hookonce.lease('sql', 'KEY-2', 60)", "SELECT hookonce.complete('sql', 'KEY-2', 2)", "SELECT hookonce.lookup('sql', 'KEY')", "SELECT hookonce.once('fee', 'KEY')"),
		"SQL: `lease`, and `fail` with `forget`": calls(
			"SELECT hookonce.fail('sql', 'KEY', l.token, forget => l.first_seen) FROM hookonce.lease('sql', 'KEY', 60) AS l",
			"SELECT hookonce.fail('sql', 'KEY', token) FROM hookonce.lease('sql', 'KEY', 60)"),
		"SQL: `newer`":      calls("SELECT hookonce.newer('KEY', 1)", "SELECT hookonce.newer('KEY', 2)"),
		"SQL: `transition`": calls("SELECT hookonce.transition('KEY', '', 'paid')", "SELECT hookonce.transition('KEY', 'paid', 'shipped')"),
		"SQL: `enqueue`":    calls("SELECT hookonce.enqueue('mail', '{}', 'sql', 'KEY')"),
		"SQL: `purge`":      calls("SELECT hookonce.purge(now() - interval '1 day', source => 'sql')"),
		"SQL: what comes before a [forced replay](destinations.md#a-forced-replay) that is to have its effects again": calls(forget...),
	}
}

// commandDoors are the commands that work on the tables of an application.
func commandDoors(dsn string, admin fullStore[pgx.Tx], begin func(ctx context.Context, f func(tx pgx.Tx) error) error) map[string]door {
	run := func(args ...string) door { // which may find what it was asked to find
		return func(ctx context.Context, key string) error {
			if status, out := command([]string{}, args...); status == 2 || strings.Contains(out, "permission denied") {
				return fmt.Errorf("exit status %d: %s", status, out)
			}
			return nil
		}
	}
	reconcile := []string{"reconcile", "effects", "--store", dsn, "--table", "orders", "--event-column", "event_id"}
	lost := append(slices.Clone(reconcile), "--source", "shop", "--record=false")
	return map[string]door{
		"`hookonce relay`": func(ctx context.Context, key string) error {
			err := begin(ctx, func(tx pgx.Tx) error {
				return admin.Enqueue(ctx, tx, hookonce.Effect{Ref: hookonce.Ref{Source: "rights", Key: key}, Name: key})
			})
			if err != nil {
				return err
			}
			return relayed(dsn, key)
		},
		"`hookonce relay list`":    run("relay", "list", "--store", dsn),
		"`hookonce relay redrive`": run("relay", "redrive", "7777", "--store", dsn),
		"`hookonce purge`":         run("purge", "--store", dsn, "--older-than", "2020-01-01", "--source", "shop"),
		"`hookonce reconcile effects --lost`, besides the table that it asks about":        run(append(lost, "--lost")...),
		"`hookonce reconcile effects --lost=events`, besides the table that it asks about": run(append(slices.Clone(lost), "--lost=events")...),
		"`hookonce reconcile effects`, to record what it found":                            run(reconcile...),
		"`hookonce report`": run("report", "--store", dsn),
		"`hookonce doctor`": run("doctor", "--store", dsn),
	}
}

// relayed runs "hookonce relay" until it has posted the effect, or says what it may not do.
func relayed(dsn, name string) error {
	posted := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted <- struct{}{} }))
	defer server.Close()
	p, err := launchRelay(".", nil, "--store", dsn, "--to", name+"="+server.URL)
	if err != nil {
		return err
	}
	defer func() {
		p.cmd.Process.Kill()
		<-p.ended
	}()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-posted:
			if err := p.end(os.Interrupt); err != nil || strings.Contains(p.log.String(), "permission denied") {
				return fmt.Errorf("%w: %s", errors.Join(err, errDenied), p.log)
			}
			return nil
		case <-p.ended:
			return fmt.Errorf("it ended: %s", p.log)
		case <-time.After(20 * time.Millisecond):
			if strings.Contains(p.log.String(), "permission denied") {
				return fmt.Errorf("%w: %s", errDenied, p.log)
			}
		}
	}
	return errors.New("it posted nothing in time")
}

// granter changes what the role may do.
type granter struct {
	t    *testing.T
	exec func(statement string) error
	name func(table string) string
	role string
}

func (g granter) grant(rights ...right) {
	g.t.Helper()
	for _, r := range rights {
		if err := g.exec("GRANT " + r.verb + " ON " + g.name(r.table) + " TO " + g.role); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g granter) revoke(rights ...right) {
	g.t.Helper()
	for _, r := range rights {
		if err := g.exec("REVOKE " + r.verb + " ON " + g.name(r.table) + " FROM " + g.role); err != nil {
			g.t.Fatal(err)
		}
	}
}

// denied reports whether a server refused a statement.
func denied(err error) bool {
	if errors.Is(err, hookonce.ErrSchemaMissing) { // on MySQL, who may not read a table does not see that it is there
		return true
	}
	return err != nil && regexp.MustCompile(`permission denied|42501|Error 1142|Error 1143`).MatchString(err.Error())
}

// hold holds the listed rights against the doors: with all of them each door opens, and without any one of them one
// of the doors of that name does not.
func (g granter) hold(listed map[string][2][]right, column int, sets ...map[string]door) {
	runs := 0
	try := func(d door) error {
		runs++
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return d(ctx, fmt.Sprintf("rights-%d", runs))
	}
	names := map[string][]door{}
	for _, set := range sets {
		for name, d := range set {
			names[name] = append(names[name], d)
		}
	}
	for name, doors := range names {
		rights := listed[name][column]
		if len(rights) == 0 {
			g.t.Errorf("the page lists nothing for %s", name)
			continue
		}
		g.grant(rights...)
		for _, d := range doors {
			if err := try(d); err != nil {
				g.t.Errorf("%s, with what the page lists: %v", name, err)
			}
		}
		for _, r := range rights {
			g.revoke(r)
			if !slices.ContainsFunc(doors, func(d door) bool { return denied(try(d)) }) {
				g.t.Errorf("%s does without %s on %s, which the page lists", name, r.verb, r.table)
			}
			g.grant(r)
		}
		g.revoke(rights...)
	}
}

// What docs/operating.md lists is enough for each door, and nothing of it is too much.
func TestRightsOnPostgres(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	admin, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	exec := func(statement string) error {
		_, err := admin.Exec(context.Background(), statement)
		return err
	}
	full := pgstore.New(admin)
	pgtest.Migrate(t, admin, "")
	for _, statement := range []string{
		"CREATE ROLE rights_app LOGIN", "GRANT USAGE ON SCHEMA hookonce TO rights_app",
		"CREATE TABLE orders (event_id text)", "GRANT SELECT ON orders TO rights_app",
	} {
		if err := exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := errors.Join(exec("DROP OWNED BY rights_app"), exec("DROP ROLE rights_app")); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("rights_app")
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	adminDB, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { adminDB.Close() })
	g := granter{t: t, exec: exec, role: "rights_app", name: func(table string) string { return "hookonce." + table }}
	beginPgx := func(p *pgxpool.Pool) func(context.Context, func(pgx.Tx) error) error {
		return func(ctx context.Context, f func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, p, f) }
	}
	g.hold(listedRights(t), 0,
		storeDoors[pgx.Tx](pgstore.New(pool, pgstore.WithNotify()), full, beginPgx(pool), beginPgx(admin)),
		storeDoors[*sql.Tx](sqlstore.New(db, sqlstore.Postgres), sqlstore.New(adminDB, sqlstore.Postgres), beginSQL(db), beginSQL(adminDB)),
		sqlDoors(pool, forgetting(t)), commandDoors(u.String(), full, beginPgx(admin)))
}

func beginSQL(db *sql.DB) func(context.Context, func(*sql.Tx) error) error {
	return func(ctx context.Context, f func(*sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
}

// The same on MariaDB.
func TestRightsOnMySQL(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := mariadbtest.DSN(t)
	const parameters = "?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27"
	admin, err := sql.Open("mysql", dsn+parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	exec := func(statement string) error {
		_, err := admin.ExecContext(context.Background(), statement)
		return err
	}
	full := sqlstore.New(admin, sqlstore.MySQL)
	_, err = schema.Migrate(t.Context(), admin, schema.MySQL, schema.DefaultName)
	if err := errors.Join(err, exec("CREATE USER rights_app@'%'")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		admin, err := sql.Open("mysql", dsn)
		if err == nil {
			_, err = admin.ExecContext(context.Background(), "DROP USER rights_app@'%'")
		}
		if err := errors.Join(err, admin.Close()); err != nil {
			t.Error(err)
		}
	})
	g := granter{t: t, exec: exec, role: "rights_app@'%'", name: func(table string) string { return "hookonce_" + table }}
	g.grant(right{"SELECT", "states"}) // of which none of the doors makes use alone, to connect
	db, err := sql.Open("mysql", strings.Replace(dsn, "root@", "rights_app@", 1)+parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	g.hold(listedRights(t), 1, storeDoors[*sql.Tx](sqlstore.New(db, sqlstore.MySQL), full, beginSQL(db), beginSQL(admin)))
}

// A replay by force has its effects again after the statements of docs/destinations.md, and not before: the claim swallows it, and
// without the second statement the outbox refuses what is on record.
func TestForgottenEventHasItsEffectsAgain(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	pgtest.Migrate(t, pool, "")
	store := pgstore.New(pool)
	forget := forgetting(t)
	sent := 0 // mails of which the relay had one each time
	for i, c := range []struct {
		first []string
		err   error
		sent  int
	}{
		{sent: 1},
		{sent: 1},
		{first: forget[:1], err: hookonce.ErrEffectExists, sent: 1},
		{first: forget, sent: 2},
		{sent: 2},
	} {
		for _, statement := range c.first {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		ref := hookonce.Ref{Source: "billing", Key: "evt_1"}
		_, err := store.Within(t.Context(), hookonce.ClaimRequest{Ref: ref}, func(tx pgx.Tx, _ hookonce.Claim) error {
			return store.Enqueue(t.Context(), tx, hookonce.Effect{Ref: ref, Name: "mail"})
		})
		if !errors.Is(err, c.err) {
			t.Errorf("delivery %d: %v, want %v", i+1, err, c.err)
		}
		queued, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 10, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range queued {
			sent++
			if key := hookonce.EffectKey(ref, "mail"); e.IdempotencyKey() != key {
				t.Errorf("delivery %d: the mail has the key %s, want %s", i+1, e.IdempotencyKey(), key)
			}
			if err := store.CompleteEffect(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
		if sent != c.sent {
			t.Errorf("after delivery %d: %d mails were sent, want %d", i+1, sent, c.sent)
		}
	}
}

// forgetting returns the statements of docs/destinations.md that have an event done again.
func forgetting(t *testing.T) (statements []string) {
	t.Helper()
	for line := range strings.Lines(commands(t, "destinations.md", "forget an event")) {
		if !strings.HasPrefix(line, "--") {
			statements = append(statements, line)
		}
	}
	if len(statements) != 2 {
		t.Fatalf("docs/destinations.md forgets an event with %q", statements)
	}
	return statements
}
