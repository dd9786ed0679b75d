package endtoend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/sqlstore"
)

// listedSpec describes the forgetful sender for a program that uses the library.
const listedSpec = `
name: orders
verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
event: {key: [["json:$.id"]], type: ["json:$.type"], time: [{in: "json:$.at", unit: s}]}
reconcile:
  servers: [{name: here, url: "%s"}]
  list: {path: "/events?since={since}&until={until}", unit: s, items: $.data, sort: oldest, id: $.id,
    page: {kind: cursor, in: $.next, param: after}, event: {body: $}}
  redeliver: {path: "/events/{id}/again"}
  rate: {requests: 1000, per: 1s}
`

// TestReconcileClaims: a program that uses the library, without a gateway, finds what never arrived and what arrived and is not done,
// and has the sender send again what is missing and nothing else.
func TestReconcileClaims(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (dsn string, db *sql.DB, dialect sqlstore.Dialect){
		"SQLite": func(t *testing.T) (string, *sql.DB, sqlstore.Dialect) {
			file := filepath.Join(t.TempDir(), "app.db")
			db, err := sql.Open("sqlite", "file:"+file)
			if err != nil {
				t.Fatal(err)
			}
			return "sqlite:" + file, db, sqlstore.SQLite
		},
		"Postgres": func(t *testing.T) (string, *sql.DB, sqlstore.Dialect) {
			dsn := pgtest.DSN(t)
			db, err := sql.Open("pgx", dsn)
			if err != nil {
				t.Fatal(err)
			}
			return dsn, db, sqlstore.Postgres
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, db, dialect := open(t)
			t.Cleanup(func() { db.Close() })
			reconcileClaims(t, dsn, sqlstore.New(db, dialect))
		})
	}
}

func reconcileClaims(t *testing.T, dsn string, store *sqlstore.Store) {
	f := newForgetful(t)
	file := filepath.Join(t.TempDir(), "orders.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, listedSpec, f.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "LIST_TOKEN="+listToken)
	if status, out := command(env, "migrate", "--store", dsn); status != 0 {
		t.Fatal(out)
	}
	made := f.make(25, time.Now().Add(-time.Hour))
	claim := func(source, key string) hookonce.Claim {
		t.Helper()
		c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: source, Key: key}, Lease: time.Hour})
		if err != nil || c.Verdict != hookonce.Acquired {
			t.Fatalf("%s: %+v, %v", key, c, err)
		}
		return c
	}
	ctx := context.Background()
	for i, e := range made[:22] {
		c := claim("billing", e.ID)
		var err error
		switch i {
		case 3:
			err = store.Fail(ctx, c, hookonce.Failure{Err: errors.New("the ledger is closed")})
		case 7:
			err = store.Fail(ctx, c, hookonce.Failure{Err: errors.New("no such customer"), Dead: true})
		case 9: // it is under way
		default:
			err = store.Complete(ctx, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func(want int, args ...string) string {
		t.Helper()
		status, out := command(env, append([]string{"reconcile", "--spec", file, "--store", dsn, "--source", "billing", "--token", "env:LIST_TOKEN", "--since", "3h"}, args...)...)
		if status != want || strings.Contains(out, listToken) {
			t.Errorf("reconcile %v exited %d, and not %d:\n%s", args, status, want, out)
		}
		return out
	}
	for _, text := range []string{"listed       25", "on record    22", "not done     3", "missing      3", "evt_22", "evt_24", "failed      the ledger is closed", "dead        no such customer", "evt_9"} {
		if out := ask(1); !strings.Contains(out, text) {
			t.Errorf("it does not say %q:\n%s", text, out)
		}
	}
	for args, why := range map[string]string{
		"--ingest": "nobody but the program can carry out the effect", "--token=" + "fake": "not the token itself", "--since=100d": "claims of what is done are kept for 90d",
		"--with=hook": "write NAME=VALUE", "--lag=soon": "--lag:", "--with=hook=1": "--with:",
	} {
		if out := ask(2, args); !strings.Contains(out, why) {
			t.Errorf("%s does not say %q:\n%s", args, why, out)
		}
	}
	if status, out := command(env, "reconcile", "--source", "billing", "--since", "1h", "--with", "hook=1"); status != 2 || !strings.Contains(out, "goes with --provider") {
		t.Errorf("%d %s", status, out)
	}
	// Under another name nothing is on record: nothing is sent again by mistake, however many scopes of Once come before it.
	for i := range 60 {
		claim(fmt.Sprintf("a-source-before-it-%02d", i), "evt_other")
	}
	if out := ask(1, "--source=renamed", "--redeliver"); !strings.Contains(out, "nothing was done about them: 22 of 25 events that are missing at renamed are claimed under billing") {
		t.Errorf("under another name it said\n%s", out)
	}
	asked := make(chan string, 25)
	f.mu.Lock()
	f.again = func(id string) { asked <- id }
	f.mu.Unlock()
	again := func() string {
		all := []string{}
		for len(asked) > 0 {
			all = append(all, <-asked)
		}
		return fmt.Sprint(all)
	}
	// What came under a name that the source had in between is held, unless somebody insists.
	claim("another", "evt_23")
	if out := ask(1, "--redeliver"); !strings.Contains(out, "redelivered  2") || !strings.Contains(out, "held claimed under another, first at ") {
		t.Errorf("it said\n%s", out)
	}
	if sent := again(); sent != "[evt_22 evt_24]" {
		t.Errorf("sent again is %s", sent)
	}
	if out := ask(0, "--redeliver", "--really"); !strings.Contains(out, "redelivered  3") {
		t.Errorf("it said\n%s", out)
	}
	if sent := again(); sent != "[evt_22 evt_23 evt_24]" {
		t.Errorf("sent again is %s", sent)
	}
}

// TestReconcileTellsWhatWasRefused: the command asks the gateway that the configuration names why something that is missing was refused,
// and says so where nobody answers.
func TestReconcileTellsWhatWasRefused(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	f := newForgetful(t)
	dsn := pgtest.DSN(t)
	dir, file := f.configure(dsn, "")
	g := f.launch(dir, file)
	made := f.make(2, time.Now().Add(-time.Minute))
	req, err := http.NewRequest(http.MethodPost, "http://"+g.addr+"/in/orders", strings.NewReader(string(made[0].body())))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Signature", strings.Repeat("0", 64))
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%+v, %v", res, err)
	}
	res.Body.Close()
	env := append(os.Environ(), "LIST_TOKEN="+listToken)
	ask := func(args ...string) string {
		status, out := command(env, append([]string{"reconcile", "--config", file, "--source", "orders", "--since", "1h"}, args...)...)
		if status != 1 {
			t.Errorf("reconcile %v exited %d:\n%s", args, status, out)
		}
		return out
	}
	if out := ask("--admin", "http://"+g.admin); !strings.Contains(out, "refused      1 of them") || !strings.Contains(out, "refused: ") || strings.Contains(out, "is not known") {
		t.Errorf("with a gateway that refused one it said\n%s", out)
	}
	if out := ask(); !strings.Contains(out, "is not known: the configuration's admin names no port") {
		t.Errorf("with no address it said\n%s", out)
	}
	if out := ask("--admin", "http://127.0.0.1:1", "--admin", "http://"+g.admin); !strings.Contains(out, "refused      1 of them") || !strings.Contains(out, "is not known: the gateway at http://127.0.0.1:1 does not answer") {
		t.Errorf("with one that is away it said\n%s", out)
	}

	// The same events under another source, from before: nothing is stored, unless that is wanted.
	for _, e := range made {
		f.deliver(g, e, http.StatusOK)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	renamed := filepath.Join(t.TempDir(), "renamed.yaml")
	if err := os.WriteFile(renamed, []byte(strings.Replace(string(text), "name: orders", "name: sales", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out := command(env, "reconcile", "--config", renamed, "--source", "sales", "--since", "1h", "--ingest", "--admin", "http://"+g.admin)
	if status != 1 || !strings.Contains(out, "nothing was done about them: 2 of 2 events that are missing at sales are on record under orders") || strings.Contains(out, "stored  ") {
		t.Errorf("%d: %s", status, out)
	}
	if status, out = command(env, "reconcile", "--config", renamed, "--source", "sales", "--since", "1h", "--ingest", "--really", "--admin", "http://"+g.admin); status != 0 || !strings.Contains(out, "stored       2") {
		t.Errorf("%d: %s", status, out)
	}
}
