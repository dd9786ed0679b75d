package chaos

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "github.com/lib/pq"              // the driver postgres
)

// wait is the stores' bounded wait, short so that rounds are.
const wait = 300 * time.Millisecond

// way is how connections reach a Postgres.
type way struct {
	through func(t testing.TB, dsn string) string
	// transactions says that consecutive transactions of a connection meet different backends.
	transactions bool
}

var ways = map[string]way{
	"direct": {through: func(_ testing.TB, dsn string) string { return dsn }},
	"session pooling": {through: func(t testing.TB, dsn string) string {
		return pgtest.PgBouncer(t, dsn, "pool_mode = session", "default_pool_size = 30", soon)
	}},
	"transaction pooling": {transactions: true, through: func(t testing.TB, dsn string) string {
		return pgtest.PgBouncer(t, dsn, "default_pool_size = 6", soon)
	}},
}

// soon has PgBouncer connect again soon after a backend was lost that was about to be connected.
const soon = "server_login_retry = 0.05"

// client is a store, with its driver, that has a process of its own.
type client struct {
	open func(t testing.TB, b *bank, dsn string) *process
	// pooled is what the driver needs behind a pooler of transactions.
	pooled string
}

var clients = map[string]client{
	"pgstore": {openPgstore, "&default_query_exec_mode=exec"},
	"pgx":     {openSQL("pgx"), "&default_query_exec_mode=exec"},
	"pq":      {openSQL("postgres"), "&binary_parameters=yes"},
}

func openPgstore(t testing.TB, b *bank, dsn string) *process {
	t.Helper()
	store, _ := newPgstore(t, dsn)
	return newProcess(b, store, execPgx)
}

func newPgstore(t testing.TB, dsn string) (*pgstore.Store, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	must(t, err)
	t.Cleanup(pool.Close)
	return pgstore.New(pool, pgstore.WithWait(wait)), pool
}

func execPgx(ctx context.Context, tx pgx.Tx, text string, args ...any) error {
	_, err := tx.Exec(ctx, numbered(text), args...)
	return err
}

// numbered returns a statement as Postgres takes it.
func numbered(text string) string { return strings.ReplaceAll(text, "?", "$1") }

func openSQL(driver string) func(t testing.TB, b *bank, dsn string) *process {
	return func(t testing.TB, b *bank, dsn string) *process {
		t.Helper()
		store := sqlstore.New(open(t, driver, dsn), sqlstore.Postgres, sqlstore.WithWait(wait))
		return newProcess(b, store, func(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
			_, err := tx.ExecContext(ctx, numbered(text), args...)
			return err
		})
	}
}

// open opens a pool that is closed when the test ends.
func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	db.SetMaxOpenConns(2 * senders)
	t.Cleanup(func() { db.Close() }) // which may fail for connections that were killed
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPostgres terminates backends, and cancels what they do, under every driver and behind poolers.
func TestPostgres(t *testing.T) {
	testskip.Long(t)
	dsn := newPostgres(t)
	for path, w := range ways {
		for driver, c := range clients {
			t.Run(path+"/"+driver, func(t *testing.T) {
				newPostgresRound(t, dsn, w, c).run(t)
			})
		}
	}
}

// TestPostgresNetwork loses connections between the application and the server.
func TestPostgresNetwork(t *testing.T) {
	testskip.Long(t)
	dsn := newPostgres(t)
	for driver, c := range clients {
		t.Run(driver, func(t *testing.T) {
			address, err := url.Parse(dsn)
			must(t, err)
			n := newNetwork(t, address.Host)
			address.Host = n.addr()
			r := newPostgresRound(t, dsn, way{through: func(testing.TB, string) string { return address.String() }}, c)
			r.adversary.harm = n.harm(r.dice)
			r.run(t)
		})
	}
}

// TestPostgresCareless has handlers hide the errors of all their statements, also of those that are cut short by
// a context of their own.
func TestPostgresCareless(t *testing.T) {
	testskip.Long(t)
	dsn := newPostgres(t)
	for driver, c := range clients {
		t.Run(driver, func(t *testing.T) {
			r := newPostgresRound(t, dsn, ways["direct"], c)
			r.hides = true
			r.aside = r.hidden(r.entangled(), r.impatient("SELECT pg_sleep(0.002)", "INSERT INTO notes VALUES (1/0)", "INSERT INTO notes SELECT generate_series(1, 500)"))
			r.run(t)
		})
	}
}

// postgresRound is a round with a connection that goes past the pooler.
type postgresRound struct {
	*round
	db *sql.DB
}

func newPostgresRound(t *testing.T, dsn string, w way, c client) *postgresRound {
	t.Helper()
	db := open(t, "pgx", dsn)
	db.SetMaxOpenConns(1) // so that the adversary spares itself
	createBank(t, db)
	r := newRound(t, func(d *dice) harm { return harmBackends(d, db) })
	through := w.through(t, dsn)
	if w.transactions {
		through += c.pooled
	}
	for range 2 {
		r.join(c.open(t, r.bank, through))
	}
	r.witness = c.open(t, r.bank, dsn).lookup
	return &postgresRound{r, db}
}

func (r *postgresRound) run(t *testing.T) {
	t.Helper()
	r.storm(t)
	audit(t, r.db, r.happened(t))
}

// newPostgres returns a database with the store's tables, in which deadlocks do not last.
func newPostgres(t *testing.T) (dsn string) {
	t.Helper()
	dsn = pgtest.DSN(t)
	_, pool := newPgstore(t, dsn)
	pgtest.Migrate(t, pool, "")
	_, err := pool.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 10', current_database()); END $$")
	must(t, err)
	pool.Close()
	return dsn
}

// harmBackends terminates a backend of db's database, or cancels what it does. Half of the times it is one that has
// something to do. A strike is seen to its end: the server would carry one out that is cancelled, perhaps after the
// round, on whoever looks at what came of it.
func harmBackends(d *dice, db *sql.DB) harm {
	return func(ctx context.Context) (hit bool, err error) {
		ctx = context.WithoutCancel(ctx)
		how := []string{"pg_terminate_backend", "pg_cancel_backend"}[d.n(2)]
		err = db.QueryRowContext(ctx, `
			SELECT `+how+`(pid) FROM (
				SELECT pid, row_number() OVER (ORDER BY pid) - 1 AS i, count(*) OVER () AS n FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
				AND (state <> 'idle' OR $2)
			) found WHERE i = $1 % n`, d.n(1_000_000), d.oneIn(2)).Scan(&hit)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return hit, err
	}
}
