package ddl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// What differs in the tables of YugabyteDB is decided here, and by {{if .Yugabyte}} in the texts. What it has not:
// https://docs.yugabyte.com/latest/explore/ysql-language-features/postgresql-compatibility/ (LOCK TABLE, exclusion and
// deferrable constraints), https://github.com/yugabyte/yugabyte-db/issues/31342 (constraint triggers),
// https://github.com/yugabyte/yugabyte-db/issues/24843 (ctid, xmax), https://github.com/yugabyte/yugabyte-db/issues/1129
// (UNLOGGED), and pages, which BRIN and storage parameters are about.

// Variant returns the tables in the form that the server needs, by what it says of itself, if t are PostgreSQL's.
func (t Tables) Variant(ctx context.Context, db Querier) (Tables, error) {
	if t.Dialect != Postgres || t.Yugabyte {
		return t, nil
	}
	is, err := isYugabyte(ctx, db)
	if err != nil || !is {
		return t, err
	}
	return Named(Yugabyte, t.Name)
}

// isYugabyte reports whether the server says that it is YugabyteDB: "PostgreSQL 15.12-YB-2025.2.0.0-b0 on ...".
func isYugabyte(ctx context.Context, db Querier) (bool, error) {
	var version string
	if err := db.QueryRowContext(ctx, `SELECT version()`).Scan(&version); err != nil {
		return false, fmt.Errorf("hookonce: asking the server for its version: %w", err)
	}
	return strings.Contains(version, "-YB-"), nil
}

// SoundForClaims is [Sound] for the stores of the library, which ask more of a server: when the answer to a COMMIT is lost,
// they ask what became of the transaction by its number.
func SoundForClaims(ctx context.Context, db *sql.DB) error {
	if err := Sound(ctx, db); err != nil {
		return err
	}
	if is, err := isYugabyte(ctx, db); err != nil || !is {
		return err
	}
	return ErrYugabyte
}

// TakesClaims is [SoundForClaims] for who makes claims there: the database has to be able to write their keys, their types and
// the errors of handlers. Who only works off what is there can do so in any encoding.
func TakesClaims(ctx context.Context, db *sql.DB) error {
	if err := SoundForClaims(ctx, db); err != nil {
		return err
	}
	var encoding string
	if err := db.QueryRowContext(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return fmt.Errorf("hookonce: asking the server for the encoding of the database: %w", err)
	}
	if encoding != "UTF8" && encoding != "SQL_ASCII" { // which takes every byte
		return fmt.Errorf("hookonce: the encoding of the database is %s: an event whose key or type it cannot write would be refused for ever, and so would "+
			"the error of a handler that gave up; use a database with ENCODING 'UTF8'", encoding)
	}
	return nil
}

// ErrYugabyte says why the library keeps no claims in YugabyteDB.
var ErrYugabyte = errors.New("hookonce: the library cannot keep claims in YugabyteDB: transactions have no numbers there that all nodes agree on " +
	"(https://github.com/yugabyte/yugabyte-db/issues/15638), so what became of a COMMIT whose answer was lost cannot be told, and events would be lost " +
	"or take effect twice. Use PostgreSQL for the library; the gateway's journal can be in YugabyteDB: docs/storage.md")

// rangeKeys stands before every text. The first column of a key is hashed there unless this says otherwise, and whatever
// asks for a range of identifiers or times would read the whole table
// (https://docs.yugabyte.com/stable/reference/configuration/yb-tserver/#yb-use-hash-splitting-by-default, from 2024.1). It
// holds for the transaction. Other servers know no such setting and are told nothing.
const rangeKeys = `SELECT set_config(name, 'off', true) FROM pg_settings WHERE name = 'yb_use_hash_splitting_by_default';
`

// Using is the text that chooses the method of an index; there is one there.
func (t Tables) Using(method string) string {
	if t.Yugabyte {
		return ""
	}
	return "USING " + method + " "
}

// With is the text that sets storage parameters of a table.
func (t Tables) With(parameters string) string {
	if t.Yugabyte {
		return ""
	}
	return " WITH (" + parameters + ")"
}

// Unlogged is the text that spares a table the log.
func (t Tables) Unlogged() string {
	if t.Yugabyte {
		return ""
	}
	return "UNLOGGED "
}
