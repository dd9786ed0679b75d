package pg

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

// clause is a part of a statement with its arguments.
type clause struct {
	table, column string // where the identifiers are
	conditions    []string
	args          []any
}

// arg adds an argument and returns what stands for it.
func (c *clause) arg(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

func (c *clause) where(condition string) { c.conditions = append(c.conditions, condition) }

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
		s.events.where(`e.source = ` + s.events.arg(f.Source))
	}
	if f.Type != "" {
		s.events.where(`e.event_type LIKE ` + s.events.arg(likePattern(f.Type)))
	}
	if f.Resource != "" {
		s.events.where(`(e.resource = ` + s.events.arg(f.Resource) + ` OR strpos(e.resource, ` + s.events.arg(journal.ResourcePart(f.Resource)) + `) > 0)`)
	}
	if f.Seen != "" {
		s.events.where(`EXISTS (SELECT FROM {{.}}sightings g WHERE g.event_id = e.id AND g.kind = ` + s.events.arg(string(f.Seen)) + `)`)
	}
	if f.Seen != "" && f.Seen != journal.ReceiptDuplicate { // of which there are few
		s.scope = clause{table: "{{.}}sightings g", column: "g.event_id"}
		s.scope.where(`g.kind = ` + s.scope.arg(string(f.Seen)))
	}
	return s
}

// likePattern turns a pattern with * into one for LIKE.
func likePattern(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`).Replace(pattern)
}

// only narrows the search to these events.
func (s *search) only(ids []int64) {
	s.events.where(`e.id = ANY (` + s.events.arg(ids) + `::bigint[])`)
}

// deliveries narrows the search to events with an open delivery in one of the states, and to the destination and the
// errors of the filter.
func (s *search) deliveries(f *journal.Filter, states ...journal.State) {
	text := make([]string, len(states))
	for i, state := range states {
		text[i] = string(state)
	}
	open := func(c *clause) string {
		return `d.state = ANY (` + c.arg(text) + `::text[])` + c.to("d", f.Destination) + c.failed(f)
	}
	s.events.where(`EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = e.id AND ` + open(&s.events) + `)`)
	s.scope = clause{table: "{{.}}deliveries d", column: "d.event_id"}
	s.scope.where(open(&s.scope))
}

// to is the condition that a row is about the destination, if one is named.
func (c *clause) to(table, destination string) string {
	if destination == "" {
		return ""
	}
	return ` AND ` + table + `.destination = ` + c.arg(destination)
}

// failed is the condition that a delivery failed for an error that the filter narrows to, in words by which the index
// of these is found.
func (c *clause) failed(f *journal.Filter) (condition string) {
	if f.ByError() {
		condition = ` AND d.state IN ('failed', 'dead')`
	}
	if f.Error != "" {
		condition += ` AND d.error_kind = ` + c.arg(string(f.Error))
	}
	if f.Status != 0 {
		condition += ` AND d.status = ` + c.arg(f.Status)
	}
	return condition
}

// state narrows the search as the State, the Destination and the errors of a filter say.
func (s *search) state(f journal.Filter) {
	if open := f.Open(); open != nil {
		s.deliveries(&f, open...)
		return
	}
	if f.State == journal.Done {
		s.events.where(`NOT EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = e.id` + s.events.to("d", f.Destination) + `)`)
	}
	if f.Destination != "" {
		s.events.where(`(EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id = e.id` + s.events.to("d", f.Destination) + `)
			OR EXISTS (SELECT FROM {{.}}attempts a WHERE a.event_id = e.id` + s.events.to("a", f.Destination) + `)
			OR EXISTS (SELECT FROM {{.}}kept_attempts a WHERE a.event_id = e.id` + s.events.to("a", f.Destination) + `))`)
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

// find returns the query for the columns of the events, at most limit. What is asked about each is asked of those
// that were found alone.
func (s *search) find(columns, order string, limit int) string {
	return s.text(fmt.Sprintf(`SELECT %s FROM (SELECT e.id FROM {{.}}events e WHERE %s ORDER BY e.id %s LIMIT %d) AS found
		JOIN {{.}}events e ON e.id = found.id `+summaryJoins+` ORDER BY e.id %s`,
		columns, s.events.within(s.first, s.end), order, limit, order))
}

func (s *search) text(query string) string { return strings.ReplaceAll(query, "{{.}}", s.prefix) }
