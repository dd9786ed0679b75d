package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/storetest"
)

// postgresPlace is schemas whose names begin alike: that of the place, which is made first and is empty, and those that the
// suites make.
type postgresPlace struct {
	Target
	mark string // the comment of the first, by which it is known again
}

func newPostgresPlace(target Target) postgresPlace {
	return postgresPlace{target, "hookonce doctor --conformance made this and removes it: " + rand.Text()}
}

func (p postgresPlace) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg, err := pgxpool.ParseConfig(p.URL) // which knows the settings of pools
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg.ConnConfig)
}

func (p postgresPlace) about(ctx context.Context) (version string, err error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, `SELECT version()`).Scan(&version)
	return version, err
}

func (p postgresPlace) prepare(ctx context.Context) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var may bool
	var database, role string
	err = conn.QueryRow(ctx, `SELECT has_database_privilege(current_database(), 'CREATE'), current_database()::text, current_user::text`).Scan(&may, &database, &role)
	if err != nil {
		return err
	}
	if !may {
		return fmt.Errorf("the role %[2]s may not make a schema in the database %[1]s, and the suites need schemas of their own: GRANT CREATE ON DATABASE %[1]s TO %[2]s, "+
			"or name a database that the role owns", pgx.Identifier{database}.Sanitize(), pgx.Identifier{role}.Sanitize())
	}
	// In one message, which is one transaction: engines are examined that lose a COMMIT.
	name := pgx.Identifier{p.Name}.Sanitize()
	_, err = conn.PgConn().Exec(ctx, `CREATE SCHEMA `+name+`; COMMENT ON SCHEMA `+name+` IS '`+p.mark+`'`).ReadAll()
	if pgerror.State(err) == "42P06" {
		return fmt.Errorf("there is a schema %s already, and nothing that is there is touched: try again, for another name: %w", p.Name, err)
	}
	return err
}

// made are the schemas that the suites have made.
func (p postgresPlace) made(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	var suites []string
	for _, s := range postgresSuites(p.Target) {
		suites = append(suites, s.name)
	}
	rows, err := conn.Query(ctx, `SELECT nspname::text FROM pg_namespace WHERE nspname::text ~ $1 ORDER BY nspname`,
		"^"+p.Name+"_("+strings.Join(suites, "|")+")_[0-9]+$")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// marked reports whether the first schema is the one that prepare made, or none: then somebody has removed it already.
func (p postgresPlace) marked(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	var comment string
	err = conn.QueryRow(ctx, `SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = $1`, p.Name).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err == nil && comment != p.mark:
		err = errors.New("there is another schema of that name by now, and nothing is dropped")
	}
	return err == nil, err
}

// remove ends the connections of the suites, which may still hold locks, and drops what they made.
func (p postgresPlace) remove(ctx context.Context) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	first, err := p.marked(ctx, conn)
	if err != nil {
		return err
	}
	// Servers that know no such view, or forbid it, have closed the connections of a process that ended by themselves.
	_, _ = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1
		AND datname = current_database() AND pid <> pg_backend_pid()`, p.Name)
	names, err := p.made(ctx, conn)
	if first {
		names = append(names, p.Name) // the last, so that it is known what is left if this is interrupted
	}
	for _, name := range names {
		if _, e := conn.Exec(ctx, `DROP SCHEMA `+pgx.Identifier{name}.Sanitize()+` CASCADE`); e != nil {
			err = errors.Join(err, e)
		}
	}
	return err
}

// dsn is the URL with the name of the place.
func (p postgresPlace) dsn() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return p.URL
	}
	q := u.Query()
	q.Set("application_name", p.Name)
	u.RawQuery = q.Encode()
	return u.String()
}

// pool is the configuration of a pool whose connections bear the name of the place.
func (p postgresPlace) pool(t testing.TB) *pgxpool.Config {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(p.dsn())
	if err != nil {
		t.Fatal(p.hide(err))
	}
	return cfg
}

// database is one for the suites of pgstore.
func (p postgresPlace) database(t *testing.T, suite string, through *cutproxy.Proxy) *testdb.Postgres {
	return &testdb.Postgres{
		Admin: testdb.Pool(t, p.pool(t)), Prefix: p.Name + "_" + suite,
		Pool: func(t testing.TB) *pgxpool.Pool {
			cfg := p.pool(t)
			if through != nil {
				cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // every statement travels with its text
				cfg.ConnConfig.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
					return through.Wrap(conn), nil
				}
			}
			return testdb.Pool(t, cfg)
		},
	}
}

// postgresSuites are all that is known about Postgres: the engine by itself, the library, and the journal.
func postgresSuites(target Target) []suite {
	p := postgresPlace{Target: target}
	return []suite{
		{"engine", func(t *testing.T) { p.checkEngine(t) }},
		{"library", func(t *testing.T) {
			cfg := p.database(t, "library", nil).Config()
			library(t, cfg)
			storetest.RunTallier(t, cfg)
		}},
		{"faults", func(t *testing.T) {
			through := cutproxy.Within(testdb.Messages)
			storetest.RunFaults(t, testdb.Faulty(p.database(t, "faults", through).Config(), through))
		}},
		{"history", func(t *testing.T) {
			through := cutproxy.Within(testdb.Messages)
			storetest.RunHistory(t, testdb.Faulty(p.database(t, "history", through).Config(), through).History())
		}},
		{"journal", func(t *testing.T) {
			j := p.journal(t, "journal")
			journaltest.Run(t, j.Fixture)
			journaltest.RunRecords(t, j.Fixture)
		}},
		{"gateways", func(t *testing.T) { journaltest.RunConcurrent(t, p.journal(t, "gateways").Fixture) }},
	}
}

// library runs what all stores in databases have.
func library[Tx any](t *testing.T, cfg storetest.TxConfig[Tx]) {
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	storetest.RunTxResponses(t, cfg)
	storetest.RunGuards(t, cfg)
	storetest.RunOutbox(t, cfg)
	storetest.RunInspector(t, cfg)
}

// journal is one for the suites of the gateway's journal.
func (p postgresPlace) journal(t *testing.T, suite string) *testdb.Journal {
	open := func(t testing.TB, schema string) journal.Store {
		s, err := pg.Open(t.Context(), p.dsn(), pg.Options{Schema: schema, Migrate: true})
		if err != nil {
			t.Fatal(p.hide(err))
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	return &testdb.Journal{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return pgx.ConnectConfig(ctx, p.pool(t).ConnConfig)
		},
		Create: func(t testing.TB, schema string) {
			if err := open(t, schema).Close(); err != nil {
				t.Fatal(err)
			}
		},
		Open:   func(t testing.TB, _ *pgx.Conn, schema string) journal.Store { return open(t, schema) },
		Prefix: p.Name + "_" + suite,
	}
}
