// Package inspect reads what the library keeps in an SQL database, for people who look at it: claims, effects, guards, and what
// reconciliations found. It is [hookonce.Inspector] for all dialects, as far as that is more than a store.
//
// Every list goes along an index that is there for another reason, is bounded, and goes on after the last row of the one
// before. Nothing counts further than it is told to.
package inspect

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/ddl"
)

// Tables are those of one name in a database.
type Tables struct {
	db     *sql.DB
	tables ddl.Tables
	now    func() time.Time
}

// New returns what reads the tables under name in db; now is the clock. It does not touch the database. It returns an error if
// the name cannot be used.
func New(db *sql.DB, d ddl.Dialect, name string, now func() time.Time) (*Tables, error) {
	tables, err := ddl.Named(d, name)
	return &Tables{db, tables, now}, err
}

var (
	key       = map[ddl.Dialect]string{ddl.Postgres: "key", ddl.SQLite: "key", ddl.MySQL: "`key`"}
	parameter = regexp.MustCompile(`@(\d+)`)
)

// say writes a text in the words of the dialect: {} stands before the names of tables, {key} is the column of that name, and
// @1 the first argument.
func (t *Tables) say(text string, args []any) (string, []any) {
	text = strings.NewReplacer("{key}", key[t.tables.Dialect], "{}", t.tables.String()).Replace(text)
	switch t.tables.Dialect {
	case ddl.Postgres:
		return strings.ReplaceAll(text, "@", "$"), args
	case ddl.SQLite:
		return strings.ReplaceAll(text, "@", "?"), args
	}
	var order []any
	for _, found := range parameter.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1]) // digits by the pattern
		order = append(order, args[n-1])
	}
	return parameter.ReplaceAllLiteralString(text, "?"), order
}

// each calls row for each row of a query.
func (t *Tables) each(ctx context.Context, text string, args []any, row func(scan func(...any) error) error) error {
	text, args = t.say(text, args)
	rows, err := t.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// time is a time as the dialect stores it.
func (t *Tables) time(at time.Time) any {
	if t.tables.Dialect == ddl.Postgres {
		return at.UTC()
	}
	return at.UnixMicro()
}

// stamp scans a time as any dialect returns it; null is the zero time.
type stamp struct{ to *time.Time }

// Scan implements [sql.Scanner].
func (s stamp) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*s.to = time.Time{}
	case int64:
		*s.to = time.UnixMicro(v).UTC()
	case []byte: // a number that the driver leaves as the server wrote it
		micros, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return fmt.Errorf("a time came back as %q: %w", v, err)
		}
		*s.to = time.UnixMicro(micros).UTC()
	case time.Time:
		*s.to = v.UTC()
	default:
		return fmt.Errorf("a time came back as %T", src)
	}
	return nil
}

// skip lists the different values of an indexed column above after, one short question for each: the table has many rows of
// few values.
func (t *Tables) skip(ctx context.Context, table, column, condition, after string, most int) (values []string, err error) {
	for len(values) < most {
		var next sql.NullString
		err := t.each(ctx, "SELECT min("+column+") FROM {}"+table+" WHERE "+column+" > @1"+condition, []any{after}, func(scan func(...any) error) error {
			return scan(&next)
		})
		if err != nil || !next.Valid {
			return values, err
		}
		after = next.String
		values = append(values, after)
	}
	return values, nil
}

// Sources implements [hookonce.Inspector].
func (t *Tables) Sources(ctx context.Context) ([]string, error) {
	return t.skip(ctx, "claims", "source", "", "", hookonce.MaxSources)
}

// ListGuards implements [hookonce.Inspector].
func (t *Tables) ListGuards(ctx context.Context, kind hookonce.GuardKind, after string, limit int) (found []hookonce.Guard, err error) {
	text := map[hookonce.GuardKind]string{
		hookonce.GuardVersions: `SELECT resource, version, kind, '', updated_at FROM {}versions WHERE resource > @1 ORDER BY resource LIMIT @2`,
		hookonce.GuardStates:   `SELECT entity, 0, '', state, updated_at FROM {}states WHERE entity > @1 ORDER BY entity LIMIT @2`,
	}[kind]
	if text == "" || limit <= 0 {
		return nil, ctx.Err()
	}
	err = t.each(ctx, text, []any{after, limit}, func(scan func(...any) error) error {
		var g hookonce.Guard
		err := scan(&g.Name, &g.Rank.N, &g.Rank.Kind, &g.State, stamp{&g.UpdatedAt})
		found = append(found, g)
		return err
	})
	return found, err
}

// columns are those of a claim, in the order of [claimFields].
var columns = "source, {key}, " + claimsql.Columns

func claimFields(c *hookonce.Claim) []any {
	return []any{&c.Source, &c.Key, &c.State, &c.Token, stamp{&c.Lease}, &c.Type, &c.Digest, stamp{&c.FirstSeen}, stamp{&c.UpdatedAt}, &c.LastError, &c.Pinned}
}
