// Package search writes the SQL by which a store of the journal finds events: those that a filter matches, or
// that a replay looks at. What databases word differently is their [Dialect].
package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/journal"
)

// Dialect is how a database words what databases word differently. In all texts {{.}} stands before the names of
// tables.
type Dialect struct {
	// Mark is what stands for the n-th argument of a statement, from 1.
	Mark func(n int) string
	// Like is the operator for patterns, and Pattern makes one for it of text in which * stands for any characters.
	Like    string
	Pattern func(text string) string
	// Position is the function that says where in a text another one begins, and 0 if it is not there.
	Position string
	// Among is the condition that a column is one of the identifiers; arg adds an argument and returns its mark.
	Among func(column string, ids []int64, arg func(any) string) string
	// Attempts are the tables that attempts are in.
	Attempts []string
	// OneByOne ends a subquery whose rows the server is to look for by what the subquery says alone; empty where it does so anyway.
	OneByOne string
}

// The orders in which a search goes through events.
const (
	newestFirst = "DESC"
	oldestFirst = "ASC"
)

// Search is a range of identifiers, where to look for them, and conditions on the events there.
type Search struct {
	First, End int64         // from First on, below End
	Order      string        // of identifiers: ASC or DESC
	Scope      Clause        // where to look
	Events     Clause        // what has to be true there
	scope      func(*Clause) // writes the conditions of Scope; nil: these are all events
	dialect    *Dialect
}

// Clause is a part of a statement, with its arguments in the order of their marks.
type Clause struct {
	Table, Column string // where the identifiers are
	Args          []any
	conditions    []string
	dialect       *Dialect
}

// arg adds an argument and returns what stands for it.
func (c *Clause) arg(v any) string {
	c.Args = append(c.Args, v)
	return c.dialect.Mark(len(c.Args))
}

func (c *Clause) where(condition string) { c.conditions = append(c.conditions, condition) }

// to is the condition that a row is about the destination, or to any if none is named.
func (c *Clause) to(table, destination string) string {
	if destination == "" {
		return "1 = 1"
	}
	return table + `.destination = ` + c.arg(destination)
}

// of is the condition that the event has a row in the table, called as, for which the condition is true. The event's rows are in
// a subquery of their own, in which they are looked for by the event: PostgreSQL would rather go through all that fails for each,
// because it takes that for one row until it has counted it.
func (c *Clause) of(table, as, condition string) string {
	return `EXISTS (SELECT 1 FROM (SELECT * FROM {{.}}` + table + ` WHERE event_id = e.id` + c.dialect.OneByOne + `) ` + as + ` WHERE ` + condition + `)`
}

// open is the condition that a delivery is in one of the states, goes to the destination of the filter, and failed for
// an error that it narrows to.
func (c *Clause) open(f *journal.Filter, states []journal.State) string {
	if len(states) == 0 {
		return "1 = 0"
	}
	marks := make([]string, len(states))
	for i, state := range states {
		marks[i] = c.arg(string(state))
	}
	condition := `d.state IN (` + strings.Join(marks, ", ") + `) AND ` + c.to("d", f.Destination)
	if f.ByError() { // in words by which the index of these is found
		condition += ` AND d.state IN ('failed', 'dead')`
	}
	if f.Error != "" {
		condition += ` AND d.error_kind = ` + c.arg(string(f.Error))
	}
	if f.Status != 0 {
		condition += ` AND d.status = ` + c.arg(int64(f.Status))
	}
	return condition
}

// List begins a search, the newest first, for what matches a filter, below the identifier before unless that is 0.
func (d *Dialect) List(f *journal.Filter, before int64) *Search {
	s := d.matching(f, newestFirst)
	s.First, s.End = f.Window()
	if before != 0 {
		s.End = min(s.End, before)
	}
	s.state(f)
	return s
}

// Replay begins a search, the oldest first, for what a replay looks at.
func (d *Dialect) Replay(r *journal.Replay) *Search {
	s := d.matching(&r.Filter, oldestFirst)
	s.First, s.End = r.Window()
	if states, all := r.Scope(); !all {
		s.deliveries(&r.Filter, states)
	}
	if r.Only != nil {
		s.Events.where(d.Among("e.id", r.Only, s.Events.arg))
		if s.Narrowed() {
			among := s.scope
			s.within(s.Scope.Table, s.Scope.Column, func(c *Clause) {
				among(c)
				c.where(d.Among(c.Column, r.Only, c.arg))
			})
		}
	}
	return s
}

// matching is a search for what matches the filter, its window, deliveries and destination apart.
func (d *Dialect) matching(f *journal.Filter, order string) *Search {
	s := &Search{Order: order, dialect: d, Events: Clause{Table: "{{.}}events e", Column: "e.id", dialect: d}}
	s.Scope = s.Events
	e := &s.Events
	if f.Source != "" {
		e.where(`e.source = ` + e.arg(f.Source))
	}
	if f.Type != "" {
		e.where(`e.event_type ` + d.Like + ` ` + e.arg(d.Pattern(f.Type)))
	}
	if f.Resource != "" {
		e.where(`(e.resource = ` + e.arg(f.Resource) + ` OR ` + d.Position + `(e.resource, ` + e.arg(journal.ResourcePart(f.Resource)) + `) > 0)`)
	}
	if f.Unrouted {
		e.where(`e.unrouted`)
	}
	if f.Seen != "" {
		e.where(e.of("sightings", "g", `g.kind = `+e.arg(string(f.Seen))))
	}
	if f.Seen != "" && f.Seen != journal.ReceiptDuplicate { // of which there are few
		s.within("{{.}}sightings g", "g.event_id", func(c *Clause) { c.where(`g.kind = ` + c.arg(string(f.Seen))) })
	}
	return s
}

// within has the search look at the identifiers in a column of a table only, under conditions.
func (s *Search) within(table, column string, conditions func(*Clause)) {
	s.Scope, s.scope = Clause{Table: table, Column: column, dialect: s.dialect}, conditions
	conditions(&s.Scope)
}

// Narrowed reports whether Scope is another table than that of the events: a short list of identifiers.
func (s *Search) Narrowed() bool { return s.scope != nil }

// Beside returns Scope for a statement that has Events as well: its arguments are those of both.
func (s *Search) Beside() *Clause {
	c := &Clause{Table: s.Scope.Table, Column: s.Scope.Column, Args: slices.Clone(s.Events.Args), dialect: s.dialect}
	if s.scope != nil {
		s.scope(c)
	}
	return c
}

// deliveries narrows the search to events with an open delivery in one of the states, and to the destination and the
// errors of the filter.
func (s *Search) deliveries(f *journal.Filter, states []journal.State) {
	s.Events.where(s.Events.of("deliveries", "d", s.Events.open(f, states)))
	s.within("{{.}}deliveries d", "d.event_id", func(c *Clause) { c.where(c.open(f, states)) })
}

// state narrows the search as the State, the Destination and the errors of a filter say.
func (s *Search) state(f *journal.Filter) {
	if open := f.Open(); open != nil {
		s.deliveries(f, open)
		return
	}
	e := &s.Events
	if f.State == journal.Done {
		e.where(`NOT ` + e.of("deliveries", "d", e.to("d", f.Destination)))
	}
	if f.Destination != "" {
		ever := e.of("deliveries", "d", e.to("d", f.Destination))
		for _, table := range s.dialect.Attempts {
			ever += ` OR ` + e.of(table, "a", e.to("a", f.Destination))
		}
		e.where(`(` + ever + `)`)
	}
}

// Within is the whole condition of a clause of the search.
func (s *Search) Within(c *Clause) string {
	all := append([]string{fmt.Sprintf("%s >= %d AND %s < %d", c.Column, s.First, c.Column, s.End)}, c.conditions...)
	return strings.Join(all, " AND ")
}

// Bound returns the query, with the arguments of Scope, for how many identifiers one call looks at, and which is the
// last of them: what [Search.Narrow] is told.
func (s *Search) Bound() string {
	last := map[string]string{oldestFirst: "max", newestFirst: "min"}[s.Order]
	return fmt.Sprintf(`SELECT count(*), coalesce(%s(id), 0) FROM (SELECT DISTINCT %s AS id FROM %s WHERE %s ORDER BY id %s LIMIT %d) AS scope`,
		last, s.Scope.Column, s.Scope.Table, s.Within(&s.Scope), s.Order, journal.MaxScan)
}

// Narrow cuts the range down to what one call looks at, and reports whether there is more.
func (s *Search) Narrow(n, last int64) (more bool) {
	switch {
	case n < journal.MaxScan:
		return false
	case s.Order == newestFirst:
		s.First = last
	default:
		s.End = last + 1
	}
	return true
}
