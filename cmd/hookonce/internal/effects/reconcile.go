// Package effects asks a user's own tables whether side effects were doubled or lost.
//
// It asks in a transaction that can only read, under a time limit, and with every name quoted. All counts of one report are of
// one moment. What it found is recorded apart from that, on a connection of its own.
package effects

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

// Question says what to ask. Names are as SQL has them: quoted with double quotes or not, the table also
// with its schema.
type Question struct {
	// Table holds one row for each effect.
	Table string
	// Event is the column that names the event whose effect a row is.
	Event string
	// Source is the column that names the source of the event. Empty: events are told apart by Event
	// alone.
	Source string
	// Time is the column that says when the effect happened. Empty: reports have no times.
	Time string
	// Where is a condition, in SQL, for the rows that count. Empty: all.
	Where string
	// Only is the one source that lost effects are looked for in. Empty: all.
	Only string
	// Lost says where to look for events without a row: [Claims], [Events], or nowhere if it is empty.
	Lost string
	// Schema is the Postgres schema of hookonce's own tables, or their prefix in an application's SQLite file. Empty: the usual
	// one.
	Schema string
	// Limit is how many offenders, and how many lost events, are listed. All are counted.
	Limit int
	// Timeout bounds each query. It must be positive.
	Timeout time.Duration
}

// nameIn is the name of hookonce's own tables. In a file those of a gateway, which has the events, always have the usual one.
func (q *Question) nameIn(store config.Store) string {
	if store.Driver == config.SQLite && q.Lost == Events {
		return ""
	}
	return q.Schema
}

// Where lost effects are looked for.
const (
	// Claims are what the library, or the SQL API, recorded as done.
	Claims = "claims"
	// Events are what the gateway delivered and the application acknowledged. What it remembers of
	// deliveries is kept as long as attempts.
	Events = "events"
)

// Report is the answer. Rows without an event's identifier are in Unidentified and in no other number.
type Report struct {
	Rows         int64      `json:"rows"`
	Unidentified int64      `json:"unidentified"`
	Events       int64      `json:"events"`
	Doubled      int64      `json:"doubled"`
	Surplus      int64      `json:"surplus"` // rows beyond the first of each doubled event
	Offenders    []Offender `json:"offenders"`
	Lost         *Lost      `json:"lost,omitempty"`
}

// Offender is an event with more than one row.
type Offender struct {
	Source string `json:"source,omitempty"`
	Event  string `json:"event"`
	Count  int64  `json:"count"`
	First  string `json:"first,omitempty"`
	Last   string `json:"last,omitempty"`
}

// Lost is what is on record as done and has no row. Keys that were too long to be stored cannot be looked
// for, and are counted in Hidden alone.
type Lost struct {
	// Fault says why the question has no answer: the tables are not there, or have nothing on record as
	// done. Empty: it has one.
	Fault string `json:"fault,omitempty"`

	Done   int64     `json:"done"`
	Hidden int64     `json:"hidden"`
	Count  int64     `json:"count"`
	Events []Missing `json:"events"`
}

// Missing is an event without a row.
type Missing struct {
	Source string `json:"source"`
	Event  string `json:"event"`
	Done   string `json:"done"`
}

// Clean reports whether there is nothing to complain of. A question without an answer is something.
func (r *Report) Clean() bool {
	return r.Doubled == 0 && (r.Lost == nil || r.Lost.Count == 0 && r.Lost.Fault == "")
}

// Check returns an error unless the question makes sense.
func (q Question) Check() error {
	_, err := q.names()
	return err
}

// Ask looks at the tables in the store. It fails if the store cannot be reached, the names are not there,
// or the time limit passes.
func Ask(ctx context.Context, store config.Store, q Question) (*Report, error) {
	n, err := q.names()
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, store, q)
	if err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	defer s.close()
	r := &Report{Offenders: []Offender{}}
	if err := s.doubled(ctx, n, q, r); err != nil {
		return nil, fmt.Errorf("reconcile: %s: %w", q.Table, advise(err))
	}
	if q.Lost == "" {
		return r, nil
	}
	if r.Lost, err = s.lost(ctx, n, q); err != nil {
		return nil, fmt.Errorf("reconcile: looking for lost effects of %s: %w", q.Table, advise(err))
	}
	return r, nil
}
