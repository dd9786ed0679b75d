package pg

import (
	"fmt"
	"strconv"
	"strings"

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
}

// find returns the query for the events that are found, at most limit. What is asked about each is asked of those that
// were found alone. Its arguments are those of q.Events.
func (s *Store) find(q *search.Search, limit int) string {
	return s.in(fmt.Sprintf(`SELECT %s FROM (SELECT e.id FROM {{.}}events e WHERE %s ORDER BY e.id %s LIMIT %d) AS found
		JOIN {{.}}events e ON e.id = found.id %s ORDER BY e.id %s`,
		summaryColumns, q.Within(&q.Events), q.Order, limit, summaryJoins, q.Order))
}
