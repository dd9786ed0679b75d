package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/hookonce/hookonce/internal/claimsql"
)

// statement is a text in the words of a dialect.
type statement struct {
	text string
	// order says which argument each parameter is, from 1, where the database only counts parameters.
	order []int
}

// arguments returns them as the text needs them.
func (s statement) arguments(given []any) []any {
	if s.order == nil {
		return given
	}
	args := make([]any, len(s.order))
	for i, n := range s.order {
		args[i] = given[n-1]
	}
	return args
}

// of returns the statement about the rows with these keys, as they are written in one. MySQL takes no list as one parameter.
func (s statement) of(ids string) statement {
	s.text = strings.ReplaceAll(s.text, "{ids}", ids)
	return s
}

// language is how a dialect writes what the texts leave open. It is what they are expanded with.
type language struct {
	// prefix stands before the names of tables, as {{.}}.
	prefix string
	// placeholder stands before the number of a parameter. Empty: a parameter is a question mark, and
	// has no number.
	placeholder string
	// Key is the name of the column, which is a reserved word in some dialects.
	Key string
	// returning says that a statement that writes can return rows.
	returning bool
	// Passed stands after what a statement writes, so that the database tells how it went; see mysql.go.
	Passed string
	// Locked stands after a query in a transaction, so that it reads what is committed by now.
	Locked string
}

// String makes {{.}} the prefix.
func (l language) String() string { return l.prefix }

// Effect are the columns of an effect.
func (l language) Effect() string { return strings.ReplaceAll(claimsql.EffectColumns, "key", l.Key) }

// ReturningClaim has a statement that writes return the claim, where it can.
func (l language) ReturningClaim() string { return l.rows(claimsql.Columns) }

// ReturningEffect has a statement that writes return the effect, where it can.
func (l language) ReturningEffect() string { return l.rows(l.Effect()) }

func (l language) rows(columns string) string {
	if !l.returning {
		return ""
	}
	return "RETURNING " + columns
}

// statement makes a statement of a text, in which @1 is the first parameter.
func (l language) statement(text string) statement {
	var b strings.Builder
	if err := template.Must(template.New("").Funcs(claimsql.Functions).Parse(text)).Execute(&b, l); err != nil {
		panic(fmt.Sprintf("sqlstore: %v", err)) // the texts are part of the program, and a test expands each
	}
	return l.numbered(b.String())
}

var parameter = regexp.MustCompile(`@(\d+)`)

func (l language) numbered(text string) statement {
	if l.placeholder != "" {
		return statement{text: strings.ReplaceAll(text, "@", l.placeholder)}
	}
	s := statement{text: parameter.ReplaceAllLiteralString(text, "?"), order: []int{}}
	for _, found := range parameter.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1]) // digits by the pattern
		s.order = append(s.order, n)
	}
	return s
}

// querier is a database, a connection to it, or a transaction in it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// run runs a statement that returns no rows.
func run(ctx context.Context, q querier, s statement, args ...any) (sql.Result, error) {
	result, err := q.ExecContext(ctx, s.text, s.arguments(args)...)
	return result, inTime(ctx, err)
}

// inTime returns the error of what was done under ctx, or else that of ctx. When a context ends, lib/pq asks the server to
// cancel what it does, and a commit of Postgres that waits for a standby waits no longer then: it takes effect on the
// primary alone, and is told to have succeeded.
func inTime(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return ctx.Err()
}

// each runs a query and calls row for each row that it returns. It reads to the end of the rows, because
// a statement that writes is not over, and may still fail, before that.
func each(ctx context.Context, q querier, s statement, args []any, row func(scan func(...any) error) error) error {
	rows, err := q.QueryContext(ctx, s.text, s.arguments(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return inTime(ctx, rows.Err())
}

// one runs a query that returns at most one row, and reports whether it did.
func one(ctx context.Context, q querier, s statement, args []any, dest ...any) (found bool, err error) {
	err = each(ctx, q, s, args, func(scan func(...any) error) error {
		found = true
		return scan(dest...)
	})
	return found, err
}

// affected returns how many rows a statement changed.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// inTx runs fn in a transaction of the store's own. An error of the commit says nothing about whether it
// took effect.
func inTx(ctx context.Context, on session, fn func(tx *sql.Tx) error) error {
	tx, err := on.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // database/sql drops a connection whose rollback failed
		return err
	}
	return inTime(ctx, tx.Commit())
}
