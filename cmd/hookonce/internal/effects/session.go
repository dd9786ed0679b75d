package effects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	_ "modernc.org/sqlite"             // driver sqlite

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// session is a transaction that reads, and what differs between databases.
type session struct {
	db          *sql.DB
	tx          *sql.Tx
	timeout     time.Duration
	placeholder string              // of the first argument
	prefix      string              // of hookonce's own tables
	exists      string              // the query whether the table that is its argument is there
	tables      map[string][]string // that hold what is on record as done
	done        map[string]string   // the query for it: source, event, at, and whether the key is hidden
}

// read says which tables hold what is done, and how it is found there: in claims, without what Once claims, and in the
// journal, whose attempts are in the given tables. text makes a text of a column with a time.
func (s *session) read(prefix string, attempts []string, text func(column string) string) {
	var delivered []string
	for _, table := range attempts {
		delivered = append(delivered, "EXISTS (SELECT 1 FROM "+prefix+table+" a WHERE a.event_id = e.id AND a.outcome = 'done')")
	}
	const hidden = "key LIKE 'sha256:%' AS hidden"
	s.prefix = prefix
	s.tables = map[string][]string{Claims: {"claims"}, Events: append([]string{"events"}, attempts...)}
	s.done = map[string]string{
		Claims: "SELECT source, key AS event, " + text("updated_at") + " AS at, " + hidden + " FROM " + prefix + "claims WHERE state = 'done' AND source NOT LIKE 'once:%'",
		Events: "SELECT source, key AS event, " + text("received_at") + " AS at, " + hidden + " FROM " + prefix + "events e WHERE key IS NOT NULL" +
			" AND (" + strings.Join(delivered, " OR ") + ")",
	}
}

// open begins the transaction.
func open(ctx context.Context, store config.Store, q Question) (*session, error) {
	begin := map[string]func(context.Context, config.Store, Question) (*session, error){
		config.Postgres: openPostgres, config.SQLite: openSQLite,
	}[store.Driver]
	if begin == nil {
		return nil, fmt.Errorf("%s cannot be reconciled: write sqlite:PATH or postgres://user:password@host:5432/database", store.Driver)
	}
	return begin(ctx, store, q)
}

func openPostgres(ctx context.Context, store config.Store, q Question) (*session, error) {
	prefix, err := ddl.Prefix(ddl.Postgres, q.nameIn(store))
	if err != nil {
		return nil, err
	}
	s := &session{timeout: q.Timeout, placeholder: "$1", exists: "SELECT to_regclass($1) IS NOT NULL"}
	s.read(prefix, []string{"attempts", "kept_attempts"}, func(column string) string {
		return "to_char(" + column + " AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"')"
	})
	err = s.begin(ctx, "pgx", store.Single(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// settle sets what holds for the transaction. The server ends by itself what runs longer than we wait for,
// because it does not notice that nobody waits any more.
func (s *session) settle(ctx context.Context) error {
	_, err := s.tx.ExecContext(ctx, "SET LOCAL TimeZone = 'UTC'")
	if err == nil {
		limit := min((s.timeout + time.Second).Milliseconds(), math.MaxInt32)
		_, err = s.tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", limit))
	}
	return err
}

// openSQLite opens the file for reading only, whatever a condition of the user's may say.
func openSQLite(ctx context.Context, store config.Store, q Question) (*session, error) {
	if err := sqlitefile.Check(store.DSN); err != nil {
		return nil, err
	}
	if _, err := os.Stat(store.DSN); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file %s does not exist; name the database that has the table with --store", store.DSN)
	}
	prefix, err := ddl.Prefix(ddl.SQLite, q.nameIn(store))
	if err != nil {
		return nil, err
	}
	s := &session{timeout: q.Timeout, placeholder: "?1", exists: "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = ?1"}
	s.read(prefix, []string{"attempts"}, func(column string) string {
		return "strftime('%Y-%m-%d %H:%M:%SZ', " + column + " / 1000000, 'unixepoch')"
	})
	dsn := "file:" + url.PathEscape(store.DSN) + "?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)"
	return s, s.begin(ctx, "sqlite", dsn, nil)
}

func (s *session) begin(ctx context.Context, driver, dsn string, o *sql.TxOptions) (err error) {
	if s.db, err = sql.Open(driver, dsn); err != nil {
		return err
	}
	if s.tx, err = s.db.BeginTx(ctx, o); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

func (s *session) close() {
	_ = s.tx.Rollback() // it changed nothing
	_ = s.db.Close()
}

// row reads one row.
func (s *session) row(ctx context.Context, query string, args []any, to ...any) error {
	return s.each(ctx, query, args, func(rows *sql.Rows) error { return rows.Scan(to...) })
}

// each reads every row, within the time limit.
func (s *session) each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("a query took longer than %v: raise the time limit, add an index, or ask about fewer rows", s.timeout))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	rows, err := s.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func limit(n int) string { return strconv.Itoa(n) }
