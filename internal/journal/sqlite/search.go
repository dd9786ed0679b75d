package sqlite

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/journal/search"
)

// dialect is how SQLite words a search. GLOB has more that is special than an asterisk.
var dialect = &search.Dialect{
	Mark:     func(int) string { return "?" },
	Like:     "GLOB",
	Pattern:  strings.NewReplacer(`?`, `[?]`, `[`, `[[]`).Replace,
	Position: "instr",
	Among: func(column string, ids []int64, _ func(any) string) string {
		return column + ` IN (` + numbers(ids) + `)`
	},
	Attempts: []string{"attempts"},
}

// numbers writes identifiers as a list.
func numbers(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ", ")
}

// find returns the query for the events that are found, at most limit, and its arguments. Those that lie in a short
// list of identifiers are read from there, because the planner would go through all events.
func (s *Store) find(q *search.Search, limit int) (query string, args []any) {
	from, args := q.Events.Table, q.Events.Args
	if q.Narrowed() {
		from = fmt.Sprintf(`(SELECT DISTINCT %s AS id FROM %s WHERE %s) AS scope CROSS JOIN {{.}}events e ON e.id = scope.id`,
			q.Scope.Column, q.Scope.Table, q.Within(&q.Scope))
		args = append(append([]any(nil), q.Scope.Args...), args...)
	}
	return s.in(fmt.Sprintf(`SELECT %s FROM %s LEFT JOIN {{.}}twins t ON t.event_id = e.id WHERE %s ORDER BY e.id %s LIMIT %d`,
		summaryColumns, from, q.Within(&q.Events), q.Order, limit)), args
}
