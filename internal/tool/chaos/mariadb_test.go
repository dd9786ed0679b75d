package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"net/url"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// sqlModes are those under which programs run, and one that takes everything together that changes how statements
// are read. See https://mariadb.com/kb/en/sql-mode/.
var sqlModes = []string{
	"DEFAULT",
	"'ANSI'",
	"'TRADITIONAL'",
	"'STRICT_ALL_TABLES'",
	"''",
	"'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,ORACLE'",
}

var isolations = []string{"READ-COMMITTED", "REPEATABLE-READ"}

// TestMariaDB kills connections, and what they do.
func TestMariaDB(t *testing.T) {
	testskip.Long(t)
	dsn := newMariaDB(t)
	for _, mode := range sqlModes {
		for _, isolation := range isolations {
			t.Run(mode+"/"+isolation, func(t *testing.T) {
				newMariaDBRound(t, dsn, dsn, parameters(mode, isolation)).run(t)
			})
		}
	}
}

// TestMariaDBNetwork loses connections between the application and the server.
func TestMariaDBNetwork(t *testing.T) {
	dsn := newMariaDB(t)
	for _, isolation := range isolations {
		t.Run(isolation, func(t *testing.T) {
			config, err := mysql.ParseDSN(dsn)
			must(t, err)
			n := newNetwork(t, config.Addr)
			config.Addr = n.addr()
			r := newMariaDBRound(t, dsn, config.FormatDSN(), parameters("DEFAULT", isolation))
			r.adversary.harm = n.harm(r.dice)
			r.run(t)
		})
	}
}

// TestMariaDBCareless has handlers hide errors, of deadlocks among others, which end their transaction.
func TestMariaDBCareless(t *testing.T) {
	dsn := newMariaDB(t)
	for _, isolation := range isolations {
		t.Run(isolation, func(t *testing.T) {
			r := newMariaDBRound(t, dsn, dsn, parameters("DEFAULT", isolation))
			r.aside = r.hidden(r.entangled(), r.impatient("SELECT SLEEP(0.002)", "INSERT INTO notes VALUES ('much')", "INSERT INTO notes SELECT seq FROM seq_1_to_500"))
			r.run(t)
		})
	}
}

func parameters(mode, isolation string) string {
	return "?sql_mode=" + url.QueryEscape(mode) + "&tx_isolation=" + url.QueryEscape("'"+isolation+"'")
}

// newMariaDB returns a database with the store's tables.
func newMariaDB(t *testing.T) (dsn string) {
	t.Helper()
	dsn = mariadbtest.DSN(t)
	_, err := schema.Migrate(t.Context(), open(t, "mysql", dsn), schema.MySQL, schema.DefaultName)
	must(t, err)
	return dsn
}

type mariaDBRound struct {
	*round
	db *sql.DB
}

// newMariaDBRound returns a round whose processes connect through, with parameters. One of them prepares its
// statements, and the other does not.
func newMariaDBRound(t *testing.T, dsn, through, parameters string) *mariaDBRound {
	t.Helper()
	db := open(t, "mysql", dsn)
	db.SetMaxOpenConns(1) // so that the adversary spares itself
	createBank(t, db)
	r := newRound(t, func(d *dice) harm { return harmThreads(d, db) })
	r.join(openMariaDB(t, r.bank, through+parameters))
	r.join(openMariaDB(t, r.bank, through+parameters+"&interpolateParams=true"))
	r.witness = openMariaDB(t, r.bank, dsn).lookup
	return &mariaDBRound{r, db}
}

func (r *mariaDBRound) run(t *testing.T) {
	t.Helper()
	r.storm(t)
	audit(t, r.db, r.happened(t))
}

func openMariaDB(t testing.TB, b *bank, dsn string) *process {
	t.Helper()
	store := sqlstore.New(open(t, "mysql", dsn), sqlstore.MySQL, sqlstore.WithWait(wait))
	return newProcess(b, store, execSQL)
}

func execSQL(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	_, err := tx.ExecContext(ctx, text, args...)
	return err
}

// noSuchThread: ER_NO_SUCH_THREAD. It ended by itself.
const noSuchThread = 1094

// harmThreads kills a connection to db's database, or what it does. Half of the times it is one that has something
// to do. A strike is seen to its end, as that of [harmBackends] is.
func harmThreads(d *dice, db *sql.DB) harm {
	return func(ctx context.Context) (bool, error) {
		ctx = context.WithoutCancel(ctx)
		var id int64
		err := db.QueryRowContext(ctx, fmt.Sprintf(`
			SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()
			AND (command <> 'Sleep' OR id IN (SELECT trx_mysql_thread_id FROM information_schema.innodb_trx) OR %v)
			ORDER BY id * %d %% 1009 LIMIT 1`, d.oneIn(2), 1+d.n(1008))).Scan(&id)
		if err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = nil
			}
			return false, err
		}
		_, err = db.ExecContext(ctx, fmt.Sprintf("KILL %s %d", []string{"CONNECTION", "QUERY"}[d.n(2)], id))
		var refused *mysql.MySQLError
		if errors.As(err, &refused) && refused.Number == noSuchThread {
			return false, nil
		}
		return err == nil, err
	}
}
