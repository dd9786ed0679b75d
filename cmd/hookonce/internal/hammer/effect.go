package hammer

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// Effect counts the side effect of an event in the user's database.
type Effect struct {
	db    *sql.DB
	query string
	keyed bool // the statement asks for the event's key
}

// OpenEffect connects to the database that dsn names. The statement is run as it is, but for
// {{key}}, quoted or not, which becomes its first parameter.
func OpenEffect(ctx context.Context, dsn, query string) (*Effect, error) {
	store, err := config.ParseStore(dsn)
	if err != nil {
		return nil, fmt.Errorf("--dsn: %w", err)
	}
	query = strings.NewReplacer("'{{key}}'", "$1", "{{key}}", "$1").Replace(query)
	e := &Effect{keyed: strings.Contains(query, "$1")}
	if store.Driver == config.SQLite {
		e.query = strings.ReplaceAll(query, "$1", "?1")
		e.db, err = openReadOnly(store.DSN)
	} else {
		e.query = query
		e.db, err = openPostgres(store.DSN)
	}
	if err != nil {
		return nil, fmt.Errorf("--dsn: %w", err)
	}
	if err := e.db.PingContext(ctx); err != nil {
		e.Close()
		return nil, fmt.Errorf("--dsn: connecting to %v: %w", store, err)
	}
	return e, nil
}

func openReadOnly(path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	if err := sqlitefile.Check(path); err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
	return sql.Open("sqlite", u.String())
}

// openPostgres sends parameters as literals, so that a key compares with columns of any type.
func openPostgres(dsn string) (*sql.DB, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return stdlib.OpenDB(*c), nil
}

// Close closes the connection.
func (e *Effect) Close() { _ = e.db.Close() }

// count runs the statement.
func (e *Effect) count(ctx context.Context, key string) (n int64, err error) {
	var args []any
	if e.keyed {
		args = append(args, key)
	}
	if err := e.db.QueryRowContext(ctx, e.query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("--expect-sql: %w; the statement must give one number", err)
	}
	return n, nil
}

// pollEvery is how often the database is asked while an effect is awaited.
const pollEvery = 50 * time.Millisecond

// await returns how often the effect happened since the count was before. It waits for the first one
// up to the limit, and then watches for another until settle has passed: effects may be asynchronous.
func (e *Effect) await(ctx context.Context, key string, before int64, limit, settle time.Duration) (int64, error) {
	end := time.Now().Add(limit)
	appeared := false
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		n, err := e.count(ctx, key)
		n -= before
		if n > 0 && !appeared {
			appeared, end = true, time.Now().Add(settle)
		}
		if err != nil || n > 1 || time.Now().After(end) {
			return n, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
}
