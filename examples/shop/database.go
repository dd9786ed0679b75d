package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// database is the shop's own tables, and what hookonce keeps beside them.
type database struct {
	*sql.DB
	store *sqlstore.Store
	// text returns a statement, written with ?, as the server wants it.
	text func(statement string) string
}

// open opens the database and makes its tables.
func open(ctx context.Context, dsn string) (*database, error) {
	d := &database{text: func(statement string) string { return statement }}
	kind, rest, _ := strings.Cut(dsn, ":")
	var dialect sqlstore.Dialect
	var err error
	switch kind {
	case "postgres":
		dialect, d.text = sqlstore.Postgres, numbered
		d.DB, err = sql.Open("pgx", dsn)
	case "sqlite":
		dialect = sqlstore.SQLite
		d.DB, err = sql.Open("sqlite", "file:"+rest+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)")
	case "mysql":
		dialect = sqlstore.MySQL
		d.DB, err = sql.Open("mysql", rest+"?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27")
	default:
		return nil, fmt.Errorf("%q is no database: write postgres://..., sqlite:FILE or mysql:DSN", kind)
	}
	if err != nil {
		return nil, err
	}
	d.SetMaxOpenConns(16)
	d.SetConnMaxIdleTime(time.Minute)
	d.store = sqlstore.New(d.DB, dialect)
	if err := d.migrate(ctx, dialect); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// numbered writes $1, $2 and so on for the question marks.
func numbered(statement string) string {
	parts := strings.Split(statement, "?")
	for i := range parts[:len(parts)-1] {
		parts[i] += fmt.Sprint("$", i+1)
	}
	return strings.Join(parts, "")
}

// migrate makes the tables that are not there. There is no unique index where something is to happen once: that it
// does is not left to chance.
func (d *database) migrate(ctx context.Context, dialect schema.Dialect) error {
	if _, err := schema.Migrate(ctx, d.DB, dialect, schema.DefaultName); err != nil {
		return err
	}
	for _, table := range []string{
		"orders (id VARCHAR(40) NOT NULL, reference VARCHAR(100) NOT NULL, cents BIGINT NOT NULL)",
		"payments (order_id VARCHAR(40) NOT NULL, charge VARCHAR(100) NOT NULL)",
		"refunds (id VARCHAR(40) NOT NULL, order_id VARCHAR(40) NOT NULL, reference VARCHAR(100) NOT NULL, cents BIGINT NOT NULL)",
		"repayments (refund_id VARCHAR(40) NOT NULL)",
		"shipments (order_id VARCHAR(40) NOT NULL)",
		"fees (payout VARCHAR(100) NOT NULL)",
		"prices (product VARCHAR(100) NOT NULL, cents BIGINT NOT NULL)",
	} {
		if _, err := d.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table); err != nil {
			return err
		}
	}
	return nil
}

// exec runs a statement in tx.
func (d *database) exec(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.ExecContext(ctx, d.text(statement), args...)
	return err
}
