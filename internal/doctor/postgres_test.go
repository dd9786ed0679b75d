package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/internal/redistest"
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
		"store": OK, "server": OK, "primary": OK, "encoding": OK, "clock": OK, "isolation": OK, "durability": OK, "autovacuum": OK,
		"pooler": OK, "connections": OK, "schema": Fault,
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
	expect(t, examine(t, dsn+"&pool_max_conns=7", nil), map[string]Level{"connections": OK})
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	expect(t, examine(t, dsn+"&pool_max_conns=7", nil), map[string]Level{"connections": Warning})
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
	expect(t, examine(t, through, nil), map[string]Level{"store": OK, "pooler": Warning, "connections": OK, "schema": Fault})
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
	dsn := pgtest.DSN(t)
	for name, tt := range map[string]struct {
		options redistest.Options
		want    Level
	}{
		"keeps nothing":      {redistest.Options{}, Fault},
		"evicts":             {redistest.Options{AOF: "always", Settings: []string{"maxmemory-policy allkeys-lru"}}, Fault},
		"keeps all":          {redistest.Options{AOF: "always"}, OK},
		"syncs now and then": {redistest.Options{AOF: "no"}, Warning},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, tt.options)
			expect(t, examine(t, dsn, func(p *Patient) { p.Redis = "redis://" + s.Addr() }), map[string]Level{"redis": tt.want})
		})
	}
	expect(t, examine(t, dsn, func(p *Patient) { p.Redis = "http://not-redis" }), map[string]Level{"redis": Fault})
}
