package sqlite

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/journal"
)

// search is the SQL that finds events: a range of identifiers, where to look for them, and conditions on
// the events there.
type search struct {
	prefix     string
	first, end int64 // from first on, below end
	scope      clause
	events     clause
}

// clause is a part of a statement with its arguments, in the order of its question marks.
type clause struct {
	table, column string // where the identifiers are
	conditions    []string
	args          []any
}

func (c *clause) where(condition string, args ...any) {
	c.conditions = append(c.conditions, condition)
	c.args = append(c.args, args...)
}

// within is the whole condition, of identifiers from first on and below end.
func (c *clause) within(first, end int64) string {
	all := append([]string{fmt.Sprintf("%s >= %d AND %s < %d", c.column, first, c.column, end)}, c.conditions...)
	return strings.Join(all, " AND ")
}

// newSearch begins a search for what matches the filter, its State and Destination apart.
func newSearch(prefix string, f journal.Filter) *search {
	s := &search{prefix: prefix, scope: clause{table: "{{.}}events e", column: "e.id"}}
	s.events = s.scope
	s.first, s.end = f.Window()
	if f.Source != "" {
		s.events.where(`e.source = ?`, f.Source)
	}
	if f.Type != "" {
		s.events.where(`e.event_type GLOB ?`, globPattern(f.Type))
	}
	if f.Resource != "" {
		s.events.where(`(e.resource = ? OR instr(e.resource, ?) > 0)`, f.Resource, journal.ResourcePart(f.Resource))
	}
	if f.Seen != "" {
		s.events.where(`EXISTS (SELECT 1 FROM {{.}}sightings g WHERE g.event_id = e.id AND g.kind = ?)`, string(f.Seen))
	}
	if f.Seen != "" && f.Seen != journal.ReceiptDuplicate { // of which there are few
		s.scope = clause{table: "{{.}}sightings g", column: "g.event_id"}
		s.scope.where(`g.kind = ?`, string(f.Seen))
	}
	return s
}

// globPattern turns a pattern with * into one for GLOB, which has more that is special.
func globPattern(pattern string) string {
	return strings.NewReplacer(`?`, `[?]`, `[`, `[[]`).Replace(pattern)
}

// only narrows the search to these events.
func (s *search) only(ids []int64) {
	s.events.where(`e.id IN (` + numbers(ids) + `)`)
}

// numbers writes identifiers as a list.
func numbers(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ", ")
}

// deliveries narrows the search to events with an open delivery in one of the states, and to the destination and the
// errors of the filter.
func (s *search) deliveries(f *journal.Filter, states ...journal.State) {
	open := `d.state IN (` + strings.TrimSuffix(strings.Repeat("?, ", len(states)), ", ") + `)`
	var args []any
	for _, state := range states {
		args = append(args, string(state))
	}
	if f.Destination != "" {
		open, args = open+` AND d.destination = ?`, append(args, f.Destination)
	}
	if f.ByError() { // in words by which the index of these is found
		open += ` AND d.state IN ('failed', 'dead')`
	}
	if f.Error != "" {
		open, args = open+` AND d.error_kind = ?`, append(args, string(f.Error))
	}
	if f.Status != 0 {
		open, args = open+` AND d.status = ?`, append(args, int64(f.Status))
	}
	s.events.where(`EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = e.id AND `+open+`)`, args...)
	s.scope = clause{table: "{{.}}deliveries d", column: "d.event_id"}
	s.scope.where(open, args...)
}

// state narrows the search as the State, the Destination and the errors of a filter say.
func (s *search) state(f journal.Filter) {
	if open := f.Open(); open != nil {
		s.deliveries(&f, open...)
		return
	}
	switch {
	case f.State == journal.Done && f.Destination == "":
		s.events.where(`NOT EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = e.id)`)
	case f.State == journal.Done:
		s.events.where(`NOT EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = e.id AND d.destination = ?)`, f.Destination)
	}
	if f.Destination != "" {
		s.events.where(`(EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = e.id AND d.destination = ?)
			OR EXISTS (SELECT 1 FROM {{.}}attempts a WHERE a.event_id = e.id AND a.destination = ?))`, f.Destination, f.Destination)
	}
}

// The orders of a search.
const (
	newestFirst = "DESC"
	oldestFirst = "ASC"
)

// bound returns the query for how many identifiers one call looks at, and which is the last of them.
func (s *search) bound(order string) string {
	last := map[string]string{oldestFirst: "max", newestFirst: "min"}[order]
	return s.text(fmt.Sprintf(`SELECT count(*), coalesce(%s(id), 0) FROM (SELECT DISTINCT %s AS id FROM %s WHERE %s ORDER BY id %s LIMIT %d) AS scope`,
		last, s.scope.column, s.scope.table, s.scope.within(s.first, s.end), order, journal.MaxScan))
}

// find returns the query for the events, at most limit. Those that lie in a short list of identifiers
// are read from there, because the planner would go through all events.
func (s *search) find(order string, limit int) string {
	from := `{{.}}events e`
	if s.scope.column != "e.id" {
		from = fmt.Sprintf(`(SELECT DISTINCT %s AS id FROM %s WHERE %s) AS scope CROSS JOIN {{.}}events e ON e.id = scope.id`,
			s.scope.column, s.scope.table, s.scope.within(s.first, s.end))
	}
	return s.text(fmt.Sprintf(`SELECT %s FROM %s LEFT JOIN {{.}}twins t ON t.event_id = e.id WHERE %s ORDER BY e.id %s LIMIT %d`,
		summaryColumns, from, s.events.within(s.first, s.end), order, limit))
}

// findArgs are the arguments of find.
func (s *search) findArgs() []any {
	if s.scope.column == "e.id" {
		return s.events.args
	}
	return append(append([]any(nil), s.scope.args...), s.events.args...)
}

func (s *search) text(query string) string { return strings.ReplaceAll(query, "{{.}}", s.prefix) }
