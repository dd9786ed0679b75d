package sqlstore

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"strings"
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

// language is how a dialect writes what the texts leave open.
type language struct {
	// placeholder stands before the number of a parameter. Empty: a parameter is a question mark, and
	// has no number.
	placeholder string
	// key is the name of the column, which is a reserved word in some dialects.
	key string
	// returning says that a statement that writes can return rows.
	returning bool
	// passed stands after what a statement writes, so that the database tells how it went; see mysql.go.
	passed string
	// locked stands after a query in a transaction, so that it reads what is committed by now.
	locked string
}

// prefixed returns what makes statements of texts. @1 is their first parameter, and the words in braces
// stand for the tables, which have names with the prefix, and for what statements have in common.
func (l language) prefixed(prefix string) func(text string) statement {
	words := []string{"{key}", l.key, "{passed}", l.passed, "{locked}", l.locked, "{claimable}", claimable, "{open}", open, "{begun}", begun}
	for _, table := range []string{"claims", "responses", "effects", "versions", "states"} {
		words = append(words, "{"+table+"}", prefix+table)
	}
	for noun, columns := range map[string]string{"claim": claimColumns, "effect": effectColumns} {
		returning := ""
		if l.returning {
			returning = "RETURNING " + columns
		}
		words = append(words, "{"+noun+"}", columns, "{returning "+noun+"}", returning)
	}
	r := strings.NewReplacer(words...)
	return func(text string) statement { return l.numbered(r.Replace(r.Replace(text))) } // again, for words within words
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
	return q.ExecContext(ctx, s.text, s.arguments(args)...)
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
	return rows.Err()
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
