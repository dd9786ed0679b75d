// Package schema creates, checks and prints the tables that hookonce keeps in a database.
//
// All tables belong to one sequence of migrations. On Postgres they live in a schema of their own,
// elsewhere under a prefix. The version is recorded in the table goose_db_version beside them, in
// the form of the goose migration tool.
package schema

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"text/template"

	"github.com/hookonce/hookonce"
)

// Dialect is a kind of database.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
	// MySQL is also MariaDB. It has only the library's tables.
	MySQL Dialect = "mysql"
)

// DefaultName is the Postgres schema, and elsewhere the prefix, when none is given.
const DefaultName = "hookonce"

// latest is the version of the schema that this program works with.
const latest = 9

//go:embed *.sql
var files embed.FS

// functions is the file of the SQL functions on Postgres, which the newest version that changes them includes.
const functions = "postgres_functions.sql"

// Version returns the version of the schema that this program needs.
func Version() int64 { return latest }

// Prefix returns what stands before the name of each table in a statement: `"name".` on Postgres,
// `name_` elsewhere. An empty name is [DefaultName]. A name starts with a lower-case letter and
// goes on with lower-case letters, digits and underscores, 48 at most; others are refused, so the
// prefix is safe inside a statement.
func Prefix(d Dialect, name string) (string, error) {
	n, err := newNames(d, name)
	return n.prefix, err
}

// names is what a statement's text is expanded with: {{.}} is the prefix.
type names struct {
	dialect Dialect
	Name    string
	prefix  string
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func newNames(d Dialect, name string) (names, error) {
	if name == "" {
		name = DefaultName
	}
	if !validName.MatchString(name) || strings.HasPrefix(name, "pg_") {
		return names{}, fmt.Errorf("hookonce: %q cannot name the schema: use lower-case letters, digits and "+
			"underscores, a letter first, at most 48, not starting with pg_", name)
	}
	switch d {
	case Postgres:
		return names{d, name, `"` + name + `".`}, nil
	case SQLite, MySQL:
		return names{d, name, name + "_"}, nil
	}
	return names{}, fmt.Errorf("hookonce: unknown kind of database %q: use postgres, sqlite or mysql", d)
}

// String makes {{.}} the prefix.
func (n names) String() string { return n.prefix }

// Lock is the number of the advisory lock that lets one process at a time migrate.
func (n names) Lock() int64 { return 0x686f6f6b6f6e6365 } // "hookonce"

// KeyLock is [KeyLock] for the table of claims.
func (n names) KeyLock(source, key string) string { return KeyLock(n.prefix+"claims", source, key) }

// AddColumn is the text that gives a table of MySQL a column, unless it has it: there each statement of a migration
// can be run again. In the definition a quote is written twice.
func (n names) AddColumn(table, column, definition string) string {
	return unless("columns", "column_name", n.prefix+table, column,
		fmt.Sprintf("ALTER TABLE %s%s ADD COLUMN %s %s", n.prefix, table, column, definition))
}

// AddIndex is the text that gives a table of MySQL an index over the columns, unless it has it.
func (n names) AddIndex(table, index, columns string) string {
	return unless("statistics", "index_name", n.prefix+table, n.prefix+index,
		fmt.Sprintf("CREATE INDEX %s%s ON %s%s (%s)", n.prefix, index, n.prefix, table, columns))
}

// unless is the text that runs ddl unless a view of MySQL's information_schema has a row of that name for the table.
func unless(view, column, table, name, ddl string) string {
	return fmt.Sprintf(`SET @hookonce_ddl = (SELECT IF(count(*) > 0, 'DO 0', '%s')
    FROM information_schema.%s WHERE table_schema = DATABASE() AND table_name = '%s' AND %s = '%s');
PREPARE hookonce_ddl FROM @hookonce_ddl;
EXECUTE hookonce_ddl;
DEALLOCATE PREPARE hookonce_ddl;
`, ddl, view, table, column, name)
}

func (n names) versionTable() string { return n.prefix + "goose_db_version" }

// text returns the SQL that leads from version v-1 to version v; v = 0 prepares the record of
// versions. A version that has no file changes nothing in this dialect.
func (n names) text(v int64) string {
	file := fmt.Sprintf("%s_%d.sql", n.dialect, v)
	if _, err := fs.Stat(files, file); err != nil {
		return "-- Nothing changes here.\n"
	}
	var b bytes.Buffer
	if err := template.Must(template.ParseFS(files, file, functions)).Execute(&b, n); err != nil {
		panic(err) // the files are part of the program, and a test expands each of them
	}
	return b.String()
}

// Querier is a database, a connection to it, or a transaction in it.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// recorded returns the version that the database is at, 0 if it has no tables yet. It writes nothing.
func (n names) recorded(ctx context.Context, db Querier) (int64, error) {
	exists := map[Dialect]string{
		Postgres: `SELECT to_regclass('` + n.versionTable() + `') IS NOT NULL`,
		SQLite:   `SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = '` + n.versionTable() + `'`,
		MySQL: `SELECT count(*) > 0 FROM information_schema.tables
			WHERE table_schema = DATABASE() AND table_name = '` + n.versionTable() + `'`,
	}
	var found bool
	if err := db.QueryRowContext(ctx, exists[n.dialect]).Scan(&found); err != nil || !found {
		return 0, err
	}
	var v int64
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+n.versionTable()).Scan(&v)
	return v, err
}

// Check returns nil if the database is at the version that this program needs, and otherwise an
// error that wraps [hookonce.ErrSchemaMissing] or [hookonce.ErrSchemaNewer] and says what to do. It
// writes nothing.
func Check(ctx context.Context, db Querier, d Dialect, name string) error {
	n, err := newNames(d, name)
	if err != nil {
		return err
	}
	have, err := n.recorded(ctx, db)
	switch {
	case err != nil:
		return fmt.Errorf("hookonce: reading the version of the schema %s: %w", n.Name, err)
	case have == 0:
		return fmt.Errorf("%w: there are no tables in %s, version %d is needed: %s",
			hookonce.ErrSchemaMissing, n.Name, latest, Remedy(d))
	case have < latest:
		return fmt.Errorf("%w: %s has version %d, version %d is needed: %s",
			hookonce.ErrSchemaMissing, n.Name, have, latest, Remedy(d))
	}
	return n.notNewer(have)
}

// Recorded returns the version of the tables that are there, 0 if there are none. It changes nothing.
func Recorded(ctx context.Context, db Querier, d Dialect, name string) (int64, error) {
	n, err := newNames(d, name)
	if err != nil {
		return 0, err
	}
	return n.recorded(ctx, db)
}

// Remedy says what to do where tables are missing or too old.
func Remedy(d Dialect) string {
	if d == MySQL {
		return "apply what `hookonce migrate --print --dialect mysql` prints"
	}
	return "run `hookonce migrate`"
}

func (n names) notNewer(have int64) error {
	if have <= latest {
		return nil
	}
	return fmt.Errorf("%w: %s has version %d, this program knows version %d: use a newer hookonce",
		hookonce.ErrSchemaNewer, n.Name, have, latest)
}
