package pg

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/search"
)

// dialect is how PostgreSQL words a search.
var dialect = &search.Dialect{
	Mark:     func(n int) string { return "$" + strconv.Itoa(n) },
	Like:     "LIKE",
	Pattern:  strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`).Replace,
	Position: "strpos",
	Among: func(column string, ids []int64, arg func(any) string) string {
		return column + ` = ANY (` + arg(ids) + `::bigint[])`
	},
	Attempts: []string{"attempts", "kept_attempts"},
	OneByOne: " OFFSET 0",
}

// find returns the query for the events that are found, at most limit, and its arguments. What is asked about each is asked of
// those that were found alone. Those that lie in a short list of identifiers are read from there, in its order and each by
// its identifier: left to itself the planner would rather go through all events that lie between them.
func (s *Store) find(q *search.Search, limit int) (query string, args []any) {
	from, order, args := "{{.}}events e", "e.id "+q.Order, q.Events.Args
	if q.Narrowed() {
		scope := q.Beside()
		from = fmt.Sprintf(`(SELECT DISTINCT %s AS id FROM %s WHERE %s ORDER BY id %s LIMIT %d) AS scope,
			LATERAL (SELECT * FROM {{.}}events WHERE id = scope.id OFFSET 0) AS e`, scope.Column, scope.Table, q.Within(scope), q.Order, journal.MaxScan)
		order, args = "scope.id "+q.Order, scope.Args
	}
	return s.in(fmt.Sprintf(`SELECT %s FROM (SELECT e.id FROM %s WHERE %s ORDER BY %s LIMIT %d) AS found
		JOIN {{.}}events e ON e.id = found.id %s ORDER BY e.id %s`,
		summaryColumns, from, q.Within(&q.Events), order, limit, summaryJoins, q.Order)), args
}
