// Package ddl has the texts of the tables that hookonce keeps in a database, and checks their version. The
// public package of the same name runs the texts.
//
// All tables belong to one sequence of migrations. On Postgres they live in a schema of their own,
// elsewhere under a prefix. The version is recorded in the table goose_db_version beside them, in
// the form of the goose migration tool.
package ddl

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"text/template"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
)

// Dialect is a kind of database.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
	// MySQL is also MariaDB. It has only the library's tables.
	MySQL Dialect = "mysql"
	// Yugabyte is the gateway's tables in PostgreSQL, without what YugabyteDB does not have. Statements are PostgreSQL's.
	Yugabyte Dialect = "yugabyte"
)

// DefaultName is the Postgres schema, and elsewhere the prefix, when none is given.
const DefaultName = "hookonce"

const (
	// latest is the version of the schema that this program brings tables to.
	latest = 19
	// oldest is the lowest such version of a program that may work on tables of version [latest]. It is recorded with
	// each version, so that a program knows whether it may work on tables that are newer than itself. A step that only
	// adds what older programs need not know of leaves it alone. One that takes away, or changes, what they
	// use raises it, and is released no sooner than after a version that does without.
	oldest = 12
	// declared is the first version that records its oldest.
	declared = 12
)

//go:embed *.sql
var files embed.FS

// functions is the file of the SQL functions on Postgres, which the newest version that changes them includes.
const functions = "postgres_functions.sql"

// Version returns the version of the schema that this program needs. Tables may be newer: see [Check].
func Version() int64 { return latest }

// Prefix returns what stands before the name of each table in a statement: `"name".` on Postgres,
// `name_` elsewhere. An empty name is [DefaultName]. A name starts with a lower-case letter and
// goes on with lower-case letters, digits and underscores, 48 at most; others are refused, so the
// prefix is safe inside a statement.
func Prefix(d Dialect, name string) (string, error) {
	t, err := Named(d, name)
	return t.prefix, err
}

// Tables are all tables under one name. Their texts are expanded with them: {{.}} is the prefix.
type Tables struct {
	Dialect Dialect
	Name    string
	prefix  string
	// Yugabyte says that the tables, whose dialect is Postgres, are in YugabyteDB.
	Yugabyte bool
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// Named returns the tables under name; an empty one is [DefaultName]. Errors are those of [Prefix].
func Named(d Dialect, name string) (Tables, error) {
	if name == "" {
		name = DefaultName
	}
	if !validName.MatchString(name) || strings.HasPrefix(name, "pg_") {
		return Tables{}, fmt.Errorf("hookonce: %q cannot name the schema: use lower-case letters, digits and "+
			"underscores, a letter first, at most 48, not starting with pg_", name)
	}
	switch d {
	case Postgres:
		return Tables{Dialect: d, Name: name, prefix: `"` + name + `".`}, nil
	case Yugabyte:
		return Tables{Dialect: Postgres, Name: name, prefix: `"` + name + `".`, Yugabyte: true}, nil
	case SQLite, MySQL:
		return Tables{Dialect: d, Name: name, prefix: name + "_"}, nil
	}
	return Tables{}, fmt.Errorf("hookonce: unknown kind of database %q: use postgres, yugabyte, sqlite or mysql", d)
}

// String makes {{.}} the prefix.
func (t Tables) String() string { return t.prefix }

// Lock is the number of the advisory lock that lets one process at a time migrate.
func (t Tables) Lock() int64 { return 0x686f6f6b6f6e6365 } // "hookonce"

// KeyLock is [claimsql.KeyLock] for these tables.
func (t Tables) KeyLock(source, key string) string { return claimsql.KeyLock(t.prefix, source, key) }

// AddColumn is the text that gives a table of MySQL a column, unless it has it: there each statement of a migration
// can be run again. In the definition a quote is written twice.
func (t Tables) AddColumn(table, column, definition string) string {
	return unless("columns", "column_name", t.prefix+table, column,
		fmt.Sprintf("ALTER TABLE %s%s ADD COLUMN %s %s", t.prefix, table, column, definition))
}

// AddIndex is the text that gives a table of MySQL an index over the columns, unless it has it.
func (t Tables) AddIndex(table, index, columns string) string {
	return unless("statistics", "index_name", t.prefix+table, t.prefix+index,
		fmt.Sprintf("CREATE INDEX %s%s ON %s%s (%s)", t.prefix, index, t.prefix, table, columns))
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

// VersionTable is the name of the table with the record of versions, as statements have it.
func (t Tables) VersionTable() string { return t.prefix + "goose_db_version" }

// Text returns the SQL that leads from version v-1 to version v; v = 0 prepares the record of
// versions. A version that has no file changes nothing in this dialect.
func (t Tables) Text(v int64) string {
	file := fmt.Sprintf("%s_%d.sql", t.Dialect, v)
	if _, err := fs.Stat(files, file); err != nil {
		return "-- Nothing changes here.\n"
	}
	var b bytes.Buffer
	if err := template.Must(template.New(file).Funcs(claimsql.Functions).ParseFS(files, file, functions)).Execute(&b, t); err != nil {
		panic(err) // the files are part of the program, and a test expands each of them
	}
	if t.Yugabyte {
		return rangeKeys + b.String()
	}
	return b.String()
}

// Statements returns the text of version v in the pieces that can be sent at once: all of it, except to
// MySQL, whose driver takes one statement at a time. There a semicolon at the end of a line ends it.
func (t Tables) Statements(v int64) []string {
	if t.Dialect != MySQL {
		return []string{t.Text(v)}
	}
	pieces := strings.SplitAfter(t.Text(v), ";\n")
	return pieces[:len(pieces)-1] // the last is empty, or a comment
}

// Record returns the statement that records version v as applied, and which version a program must know to work beside it.
func (t Tables) Record(v int64) string {
	if v < declared {
		return fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES (%d, true)", t.VersionTable(), v)
	}
	return fmt.Sprintf("INSERT INTO %s (version_id, is_applied, oldest) VALUES (%d, true, %d)", t.VersionTable(), v, min(oldest, v))
}

// Querier is a database, a connection to it, or a transaction in it.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Recorded returns the version that the database is at, 0 if it has no tables yet. It writes nothing.
func (t Tables) Recorded(ctx context.Context, db Querier) (int64, error) {
	exists := map[Dialect]string{
		Postgres: `SELECT to_regclass('` + t.VersionTable() + `') IS NOT NULL`,
		SQLite:   `SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = '` + t.VersionTable() + `'`,
		MySQL: `SELECT count(*) > 0 FROM information_schema.tables
			WHERE table_schema = DATABASE() AND table_name = '` + t.VersionTable() + `'`,
	}
	var found bool
	if err := db.QueryRowContext(ctx, exists[t.Dialect]).Scan(&found); err != nil || !found {
		return 0, err
	}
	var v int64
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+t.VersionTable()).Scan(&v)
	return v, err
}

// Check returns nil if this program may work on the tables, and otherwise an error that wraps
// [hookonce.ErrSchemaMissing] or [hookonce.ErrSchemaNewer] and says what to do. Tables that are older than the program
// needs are missing something; newer ones are accepted where they say so ([Tables.Usable]). It writes nothing.
func Check(ctx context.Context, db Querier, d Dialect, name string) error {
	t, err := Named(d, name)
	if err != nil {
		return err
	}
	have, err := t.Recorded(ctx, db)
	switch {
	case err != nil:
		return fmt.Errorf("hookonce: reading the version of the schema %s: %w", t.Name, err)
	case have == 0:
		return fmt.Errorf("%w: there are no tables in %s, version %d is needed: %s",
			hookonce.ErrSchemaMissing, t.Name, latest, remedy(d, 0))
	case have < latest:
		return fmt.Errorf("%w: %s has version %d, version %d is needed: %s",
			hookonce.ErrSchemaMissing, t.Name, have, latest, remedy(d, have))
	}
	return t.Usable(ctx, db, have)
}

// Recorded returns the version of the tables that are there, 0 if there are none. It changes nothing.
func Recorded(ctx context.Context, db Querier, d Dialect, name string) (int64, error) {
	t, err := Named(d, name)
	if err != nil {
		return 0, err
	}
	return t.Recorded(ctx, db)
}

// CheckProgram is [Check] for a program that is not hookonce itself, which can migrate by a call as well, and which is to
// write there.
func CheckProgram(ctx context.Context, db Querier, d Dialect, name string) error {
	err := Check(ctx, db, d, name)
	switch {
	case errors.Is(err, hookonce.ErrSchemaMissing):
		return fmt.Errorf("%w%s", err, orCall)
	case err != nil:
		return err
	}
	t, _ := Named(d, name) // or Check had refused it
	return t.writable(ctx, db)
}

// Missing returns err, with which one of a store's own statements failed because tables are missing or too old, as
// an error that wraps [hookonce.ErrSchemaMissing] as well and says what to do.
func Missing(d Dialect, err error) error {
	return fmt.Errorf("%w: %s%s: %w", hookonce.ErrSchemaMissing, remedy(d, 0), orCall, err)
}

// orCall is the remedy that programs have besides [remedy].
const orCall = ", or call schema.Migrate (github.com/hookonce/hookonce/schema)"

// remedy says what to do where tables are missing, or have a version that is too old.
func remedy(d Dialect, have int64) string {
	switch {
	case d == MySQL && have > 0:
		return fmt.Sprintf("apply what `hookonce migrate --print --dialect mysql` prints from version %d on", have+1)
	case d == MySQL:
		return "apply what `hookonce migrate --print --dialect mysql` prints"
	}
	return "run `hookonce migrate`"
}

// Usable returns an error that wraps [hookonce.ErrSchemaNewer] if the tables, which are at version have, are newer than
// the program, and a version among the newer ones is not for programs as old as this. One that was recorded without the
// oldest program is for none but those that know it.
func (t Tables) Usable(ctx context.Context, db Querier, have int64) error {
	if have <= latest {
		return nil
	}
	var need int64
	err := db.QueryRowContext(ctx, `SELECT max(coalesce(oldest, version_id)) FROM `+t.VersionTable()+
		fmt.Sprintf(` WHERE version_id > %d`, latest)).Scan(&need)
	switch {
	case err != nil:
		return fmt.Errorf("hookonce: reading what the version of the schema %s asks of programs: %w", t.Name, err)
	case need > latest:
		return fmt.Errorf("%w: %s has version %d, for programs that know version %d or a newer one, and this program knows version %d: "+
			"use a newer hookonce, or restore the backup from before the upgrade", hookonce.ErrSchemaNewer, t.Name, have, need, latest)
	}
	return nil
}
