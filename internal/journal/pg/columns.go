package pg

import (
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// columns are the entries of a batch, turned into the arrays that one statement takes.
type columns struct {
	// One element for each entry.
	id           []int64
	source       []string
	key          []*string
	kind         []string
	vouched      []int16
	digest       [][]byte
	header, body [][]byte
	received     []time.Time
	resource     []*string // these five end with the last entry that has one
	rank         []*int64
	rankKind     []*string
	unrouted     []*bool
	listed       []*bool
	// One element for each delivery.
	event       []int64
	destination []string
	hold        []bool
	group       []*string // these two end with the last delivery that has one
	origin      []*int16  // other than fresh
	// One element for each entry with a logical key.
	logical logicalColumns
}

// logicalColumns are the entries with a logical key.
type logicalColumns struct {
	id                   []int64
	source, logical, key []string
	drop                 []bool
}

func newColumns(n int) *columns {
	return &columns{
		id: make([]int64, 0, n), source: make([]string, 0, n), key: make([]*string, 0, n),
		kind: make([]string, 0, n), digest: make([][]byte, 0, n),
		header: make([][]byte, 0, n), body: make([][]byte, 0, n), received: make([]time.Time, 0, n), vouched: make([]int16, 0, n),
		event: make([]int64, 0, n), destination: make([]string, 0, n), hold: make([]bool, 0, n),
	}
}

func (c *columns) add(e *journal.Record) {
	at := len(c.id)
	c.id = append(c.id, e.ID)
	c.source = append(c.source, e.Source)
	c.key = append(c.key, orNull(&e.Key))
	c.kind = append(c.kind, e.Type)
	c.digest = append(c.digest, nullIfEmpty(e.Digest))
	c.header = append(c.header, notNull(e.Lines()))
	c.body = append(c.body, notNull(e.Body))
	c.received = append(c.received, e.ReceivedAt)
	c.vouched = append(c.vouched, e.Vouched)
	c.resource = sparse(c.resource, at, orNull(&e.Resource))
	if r := &e.Rank; !r.IsZero() {
		c.rank, c.rankKind = sparse(c.rank, at, &r.N), sparse(c.rankKind, at, (*string)(&r.Kind))
	}
	if e.Unrouted() {
		c.unrouted = sparse(c.unrouted, at, new(true))
	}
	if e.Listed {
		c.listed = sparse(c.listed, at, new(true))
	}
	for _, d := range e.Destinations {
		if slices.Contains(e.Ordered, d) {
			c.group = sparse(c.group, len(c.event), new(e.Group()))
		}
		if origin := int16(e.Origin()); origin != 0 {
			c.origin = sparse(c.origin, len(c.event), &origin)
		}
		c.event = append(c.event, e.ID)
		c.destination = append(c.destination, d)
		c.hold = append(c.hold, slices.Contains(e.Hold, d))
	}
	if e.HasLogicalKey() {
		c.logical.add(e)
	}
}

func (c *logicalColumns) add(e *journal.Record) {
	c.id = append(c.id, e.ID)
	c.source = append(c.source, e.Source)
	c.logical = append(c.logical, e.LogicalKey)
	c.key = append(c.key, e.Key)
	c.drop = append(c.drop, e.DropLogicalDuplicate)
}

// sparse sets one element of a column that is mostly NULL. The end of a shorter column is NULL to unnest.
func sparse[T any](column []*T, at int, v *T) []*T {
	if v == nil {
		return column
	}
	return append(append(column, make([]*T, at-len(column))...), v)
}

// orNull returns nil for what is empty.
func orNull[T comparable](v *T) *T {
	var zero T
	if *v == zero {
		return nil
	}
	return v
}

// nullIfEmpty makes NULL of a digest that is none: one that is still to be supplied is told by that.
func nullIfEmpty(digest []byte) []byte {
	if len(digest) == 0 {
		return nil
	}
	return digest
}

// notNull keeps an absent body apart from NULL, which the columns do not take.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
