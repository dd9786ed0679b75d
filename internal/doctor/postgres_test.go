package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/schema"
)

func examine(t *testing.T, dsn string, change func(*Patient)) []Finding {
	t.Helper()
	store, err := config.ParseStore(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := Patient{Config: config.Default()}
	p.Config.Store = store
	if change != nil {
		change(&p)
	}
	return Examine(t.Context(), p)
}

func exec(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestGoodServer(t *testing.T) {
	dsn := pgtest.Start(t, pgtest.Options{Fsync: true, Settings: []string{"autovacuum = on"}}).DSN(t)
	expect(t, examine(t, dsn, nil), map[string]Level{
		"store": OK, "server": OK, "primary": OK, "encoding": OK, "clock": OK, "isolation": OK, "locks": OK, "durability": OK, "autovacuum": OK,
		"pooler": OK, "connections": OK, "schema": Warning,
	})
}

// Every setting that loses or repeats events, or stops the program, is found.
func TestBadServer(t *testing.T) {
	c := pgtest.Start(t, pgtest.Options{Settings: []string{
		"synchronous_commit = off", "autovacuum = off", "default_transaction_isolation = 'repeatable read'", "max_connections = 10",
		"superuser_reserved_connections = 2",
	}})
	dsn := c.DSN(t)
	found := examine(t, dsn+"&default_transaction_read_only=on", func(p *Patient) { p.Now = func() time.Time { return time.Now().Add(time.Minute) } })
	expect(t, found, map[string]Level{
		"store": OK, "primary": Fault, "clock": Fault, "isolation": Warning, "durability": Fault, "autovacuum": Warning, "connections": Fault,
	})
	texts := ""
	for _, f := range found {
		texts += f.Text + "\n"
	}
	for _, want := range []string{"fsync is off", "full_page_writes is off", "synchronous_commit is off", "up to 9 connections, and the server allows 8"} {
		if !strings.Contains(texts, want) {
			t.Errorf("nothing says %q:\n%s", want, texts)
		}
	}
	// Sessions that have just ended are still counted for a moment: there is room for some.
	expect(t, examine(t, dsn+"&pool_max_conns=4", nil), map[string]Level{"connections": OK})
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	expect(t, examine(t, dsn+"&pool_max_conns=7", nil), map[string]Level{"connections": Warning})
}

// What the modes of sources open besides is counted.
func TestConnectionsOfModes(t *testing.T) {
	observed, idempotent := config.Source{Name: "observed", Mode: config.Observe}, config.Source{Name: "charges", Mode: config.Idempotent}
	for _, tt := range []struct {
		query   string
		sources []config.Source
		want    int
	}{
		{"", nil, 8 + 1}, // a program with the library
		{"", []config.Source{{Name: "orders"}}, 8 + 1 + 2},
		{"", []config.Source{observed, observed}, 8 + 1 + 2 + 2},
		{"", []config.Source{idempotent}, 8 + 1 + 2 + max(4, runtime.NumCPU()) + 1},
		{"?pool_max_conns=3", nil, 3 + 1},
		{"?pool_max_conns=3", []config.Source{idempotent}, 3 + 1 + 2 + 3 + 1},
		{"?pool_max_conns=3", []config.Source{observed, idempotent}, 3 + 1 + 2 + 2 + 3 + 1},
	} {
		p := Patient{Config: config.Default()}
		p.Config.Sources = tt.sources
		s := &server{dsn: "postgres://db/app" + tt.query, store: &store{serves: p.serves(), sources: p.sources()}}
		if got := s.wantedConns(); got != tt.want {
			t.Errorf("%q with %d sources: %d, want %d", tt.query, len(tt.sources), got, tt.want)
		}
	}
}

func TestStandbyIsNoPlaceForEvents(t *testing.T) {
	c := pgtest.Start(t, pgtest.Options{})
	dsn := c.DSN(t)
	_, hosts, _ := strings.Cut(c.Either(dsn, c.Standby(t)), "@")
	hosts, _, _ = strings.Cut(hosts, "/")
	first, standby, _ := strings.Cut(hosts, ",")
	only := strings.Replace(dsn, first, standby, 1)
	expect(t, examine(t, only, nil), map[string]Level{"store": OK, "primary": Fault})
}

func TestEncodings(t *testing.T) {
	dsn := pgtest.Start(t, pgtest.Options{}).DSN(t)
	exec(t, dsn, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
	at := strings.LastIndex(dsn, "/")
	_, query, _ := strings.Cut(dsn, "?")
	expect(t, examine(t, dsn[:at]+"/latin?"+query, nil), map[string]Level{"encoding": Fault})
}

// Behind a pooler prepared statements may meet a server that does not know them.
func TestPoolers(t *testing.T) {
	through := pgtest.PgBouncer(t, pgtest.DSN(t))
	expect(t, examine(t, through, nil), map[string]Level{"store": OK, "pooler": Warning, "connections": OK, "schema": Warning})
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		expect(t, examine(t, through+"&default_query_exec_mode="+mode, nil), map[string]Level{"pooler": OK})
	}
}

func TestServerThatIsDown(t *testing.T) {
	c := pgtest.Start(t, pgtest.Options{})
	dsn := strings.Replace(c.DSN(t), "postgres@", "postgres:hunter2@", 1)
	if err := c.Stop(true); err != nil {
		t.Fatal(err)
	}
	found := examine(t, dsn, nil)
	expect(t, found, map[string]Level{"store": Fault, "schema": ""})
	for _, f := range found {
		if strings.Contains(f.Text+f.Advice, "hunter2") {
			t.Errorf("a password is shown: %+v", f)
		}
	}
}

func TestRedis(t *testing.T) {
	testskip.Long(t)
	dsn := pgtest.DSN(t)
	for name, tt := range map[string]struct {
		options redistest.Options
		want    Level
	}{
		"keeps nothing":      {redistest.Options{}, Fault},
		"evicts":             {redistest.Options{AOF: "always", Settings: []string{"maxmemory-policy allkeys-lru"}}, Fault},
		"keeps all":          {redistest.Options{AOF: "always"}, OK},
		"syncs now and then": {redistest.Options{AOF: "no"}, Warning},
		"syncs most times":   {redistest.Options{AOF: "always", Settings: []string{"no-appendfsync-on-rewrite yes"}}, Warning},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, tt.options)
			expect(t, examine(t, dsn, func(p *Patient) { p.Redis = "redis://" + s.Addr() }), map[string]Level{"redis": tt.want})
		})
	}
	expect(t, examine(t, dsn, func(p *Patient) { p.Redis = "http://not-redis" }), map[string]Level{"redis": Fault})
	nodes := redistest.Cluster(t) // which keep nothing
	text := fmt.Sprint(examine(t, dsn, func(p *Patient) { p.Redis = "redis://" + nodes[0] }))
	for _, node := range nodes {
		if !strings.Contains(text, node+": aof_enabled") {
			t.Errorf("nothing is said of %s of a cluster that another server of it leads to: %s", node, text)
		}
	}
	if strings.Contains(text, "cluster_enabled") {
		t.Errorf("the doctor knows one server of a cluster: %s", text)
	}
}

// shop is a gateway's configuration.
func shop(p *Patient) {
	p.Config.Sources = []config.Source{{Name: "shop", Provider: "stripe", Secrets: []settings.Secret{settings.Literal("a-fake-secret")}}}
}

// texts are what was found by one check.
func texts(found []Finding, check string) (all string) {
	for _, f := range found {
		if f.Check == check {
			all += f.Text + "\n"
		}
	}
	return all
}

// Case 6: a role that lacks rights is told which, those on sequences and on the schema as well. What a gateway
// cannot start without is a fault, and a role with what the page lists has none.
func TestRightsOfRoles(t *testing.T) {
	dsn := pgtest.DSN(t)
	exec(t, dsn, "CREATE ROLE doctor_gateway LOGIN")
	defer exec(t, dsn, "DROP OWNED BY doctor_gateway", "DROP ROLE doctor_gateway")
	as := func(change func(*Patient)) []Finding { return examine(t, dsn+"&user=doctor_gateway", change) }
	unready := func(p *Patient) {
		shop(p)
		p.Config.Migrate = false
	}

	found := as(shop)
	expect(t, found, map[string]Level{"rights": Fault, "schema": Warning})
	if text := texts(found, "rights"); !strings.Contains(text, "may not create it") {
		t.Errorf("before the first start: %s", text)
	}
	expect(t, as(unready), map[string]Level{"schema": Fault})
	expect(t, as(nil), map[string]Level{"schema": Warning})

	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.Postgres, ""); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		grant string
		want  Level // of a gateway's rights
		says  string
	}{
		{"REVOKE ALL ON SCHEMA hookonce FROM PUBLIC", Fault, "may not use the schema hookonce"},
		{"GRANT USAGE ON SCHEMA hookonce TO doctor_gateway; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hookonce TO doctor_gateway", Fault, "sequence writers (USAGE)"},
		{"GRANT USAGE ON SEQUENCE hookonce.writers TO doctor_gateway; REVOKE DELETE ON hookonce.deliveries FROM doctor_gateway", Fault, "everything: deliveries (DELETE)\n"},
		{"GRANT DELETE ON hookonce.deliveries TO doctor_gateway", OK, "all that the gateway does"},
		{"REVOKE ALL ON hookonce.effects, hookonce.versions, hookonce.observations FROM doctor_gateway; REVOKE INSERT, UPDATE ON hookonce.kept_bodies FROM doctor_gateway", OK, "all that the gateway does"},
		{"REVOKE ALL ON hookonce.reconciliations, hookonce.cell_fence, hookonce.cell_maps, hookonce.cell_confirmations FROM doctor_gateway", Fault,
			"everything: cell_fence (SELECT), reconciliations (SELECT)\n"},
		{"GRANT SELECT ON hookonce.reconciliations, hookonce.cell_fence TO doctor_gateway", OK, "all that the gateway does"},
	} {
		exec(t, dsn, strings.Split(step.grant, "; ")...)
		found := as(unready)
		expect(t, found, map[string]Level{"rights": step.want})
		if text := texts(found, "rights"); !strings.Contains(text, step.says) {
			t.Errorf("after %s: %s", step.grant, text)
		}
	}
	if text := texts(as(nil), "rights"); !strings.Contains(text, "effects (INSERT)") { // of a program that may enqueue
		t.Errorf("a program with the library: %s", text)
	}
	for says, change := range map[string]func(*config.Config){
		"observations (DELETE), observations (INSERT), observations (SELECT)":                                                                        func(c *config.Config) { c.Sources[0].Mode = config.Observe },
		"cell_confirmations (INSERT), cell_confirmations (SELECT), cell_fence (INSERT), cell_fence (UPDATE), cell_maps (INSERT), cell_maps (SELECT)": func(c *config.Config) { c.Cell = "eu" },
	} {
		found := as(func(p *Patient) {
			unready(p)
			change(p.Config)
		})
		expect(t, found, map[string]Level{"rights": Fault})
		if text := texts(found, "rights"); !strings.Contains(text, "everything: "+says+"\n") {
			t.Errorf("%s, want %s", text, says)
		}
	}
	if text := texts(as(unready), "rights"); strings.Contains(text, "_default") || strings.Contains(text, "_2") {
		t.Errorf("partitions are asked for: %s", text)
	}
}

// A machine that vanishes holds the keys of its events for hours unless the server is told otherwise; a gateway holds none.
func TestTransactionsOfMachinesThatVanish(t *testing.T) {
	dsn := pgtest.DSN(t)
	if text := texts(examine(t, dsn, nil), "transactions"); text != "" {
		t.Errorf("before there are tables: %s", text)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.Postgres, ""); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"&idle_in_transaction_session_timeout=0":     "idle_in_transaction_session_timeout is 0",
		"&idle_in_transaction_session_timeout=90000": "ended after 90s",
	} {
		found := examine(t, dsn+query, nil)
		expect(t, found, map[string]Level{"transactions": OK})
		if text := texts(found, "transactions"); !strings.Contains(text, want) {
			t.Errorf("with %s it says %q, not %q", query, text, want)
		}
	}
	if text := texts(examine(t, dsn, shop), "transactions"); text != "" {
		t.Errorf("of a gateway: %s", text)
	}
}

// The map in the file is held against the one that counts.
func TestMapOfCells(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, err := pg.Open(t.Context(), dsn, pg.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RaiseCellMap(t.Context(), journal.CellRaise{Cell: "eu", Maps: []journal.CellMap{{Number: 2, Content: "{}", Since: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]Level{1: Warning, 2: OK, 3: Warning} {
		expect(t, examine(t, dsn, func(p *Patient) { p.Config.Cell, p.Config.CellsMap = "eu", number }), map[string]Level{"cells": want})
	}
}

func TestLocksThatLockNothing(t *testing.T) {
	expect(t, examine(t, pgproxy.WithoutLocks(t, pgtest.DSN(t)), nil), map[string]Level{"locks": Fault, "isolation": OK, "schema": Warning})
}
