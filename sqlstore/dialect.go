package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/schema"
)

// Dialect is the kind of database that a store speaks to.
type Dialect int

// The dialects.
const (
	// SQLite is SQLite 3.35 or later.
	SQLite Dialect = iota + 1
	// Postgres is PostgreSQL 13 or later.
	Postgres
)

// named returns what the store needs to know about the dialect, with the tables under name.
func (d Dialect) named(name string) (dialect, error) {
	known, ok := map[Dialect]func() dialect{SQLite: sqlite, Postgres: postgres}[d]
	if !ok {
		return dialect{}, fmt.Errorf("sqlstore: unknown dialect %d", d)
	}
	own := known()
	prefix, err := schema.Prefix(own.schema, name)
	own.statements = own.expand(strings.NewReplacer(
		"{claims}", prefix+"claims", "{columns}", columns, "{claimable}", claimable, "@", own.placeholder))
	return own, err
}

// dialect is what differs between databases: texts, the form of times, and the meaning of errors.
type dialect struct {
	statements
	schema      schema.Dialect
	placeholder string
	// time is the form in which a time is stored.
	time func(time.Time) any
	// peeks says that reading before writing is cheap, and spares others from waiting for a writer
	// that has nothing to write.
	peeks bool
	// decide runs the claiming statement until its answer is certain.
	decide func(d dialect, ctx context.Context, q querier, p proposal) (ruling, error)
	// contended tells an error that means "not now".
	contended func(error) contention
	// refused reports whether the error of a commit means that the database answered, and that
	// nothing was committed.
	refused func(error) bool
	// unmigrated reports whether the error of one of the store's own statements, which q ran, means
	// that the tables under name are missing or too old.
	unmigrated func(ctx context.Context, q querier, name string, err error) bool
}

// statements are the texts. @1 is the first parameter.
type statements struct {
	claim, lookup, complete, fail, extend, trace, purge string
}

func (s statements) expand(r *strings.Replacer) statements {
	for _, text := range []*string{&s.claim, &s.lookup, &s.complete, &s.fail, &s.extend, &s.trace, &s.purge} {
		*text = r.Replace(r.Replace(*text)) // the second time for what stands in columns and claimable
	}
	return s
}

const columns = `state, token, lease_until, event_type, digest, first_seen, updated_at, last_error`

// claimable is [hookonce.Claimable] for the row c, with the time in excluded.updated_at.
const claimable = `(c.state IN ('failed', 'dead') OR (c.state = 'processing' AND c.lease_until <= excluded.updated_at))`

// common are the statements that need no dialect.
func common() statements {
	return statements{
		lookup: `SELECT {columns} FROM {claims} WHERE source = @1 AND key = @2`,
		complete: `
			UPDATE {claims} SET state = 'done', lease_until = NULL, updated_at = @4
			WHERE source = @1 AND key = @2 AND token = @3 AND state = 'processing'
			RETURNING {columns}`,
		fail: `
			UPDATE {claims} SET state = @5, lease_until = NULL, updated_at = @4, last_error = @6
			WHERE source = @1 AND key = @2 AND token = @3 AND state = 'processing'
			RETURNING {columns}`,
		extend: `
			UPDATE {claims} SET lease_until = @5, updated_at = @4
			WHERE source = @1 AND key = @2 AND token = @3 AND state = 'processing'
			RETURNING {columns}`,
		// The trace gives way to done work, to a lease that somebody holds, and to newer attempts; no
		// row is affected then. Attempts that began afresh at the same time have the same token; of
		// those, one that gave up is never made an ordinary failure again, because its sender was
		// told to stop.
		trace: `
			INSERT INTO {claims} AS c (source, key, state, token, event_type, digest, first_seen, updated_at, last_error)
			VALUES (@1, @2, @3, @4, @5, @6, @7, @8, @9)
			ON CONFLICT (source, key) DO UPDATE SET
				state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
				digest = excluded.digest, updated_at = excluded.updated_at, last_error = excluded.last_error
			WHERE (c.token < excluded.token AND {claimable})
				OR (c.token = excluded.token AND (c.state = 'failed' OR (c.state = 'dead' AND excluded.state = 'dead')))`,
	}
}

// takeOver is what the claiming statement does to a row that it takes over. It keeps what a later copy
// does not say.
const takeOver = `
	state = excluded.state, token = c.token + 1, lease_until = excluded.lease_until, updated_at = excluded.updated_at,
	event_type = CASE WHEN excluded.event_type = '' THEN c.event_type ELSE excluded.event_type END,
	digest = coalesce(excluded.digest, c.digest)`

// contention is why a statement did not get its turn.
type contention int

const (
	// uncontended errors are about something else.
	uncontended contention = iota
	// held: the bounded wait for another transaction is over.
	held
	// again: the same may succeed when it is tried again.
	again
)

// proposal is a row that would own its key.
type proposal struct {
	hookonce.ClaimRequest
	state hookonce.State
	now   time.Time
	lease any            // in the dialect's form
	wait  *time.Duration // nil: as long as the database lets it
}

// ruling is the claiming statement's answer.
type ruling struct {
	claim  hookonce.Claim
	won    bool
	before []byte // digest that was stored before
}

// digest is a digest in the form of every dialect: none is null.
func digest(d []byte) any {
	if len(d) == 0 {
		return nil
	}
	return d
}

// maxRounds bounds how often a claiming statement is run again because another worker changed the row
// at the same moment. Each round means that another attempt began or ended meanwhile.
const maxRounds = 20
