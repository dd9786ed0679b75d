package pg

import (
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
	digest       [][]byte
	header, body [][]byte
	received     []time.Time
	// One element for each delivery.
	event       []int64
	destination []string
	hold        []bool
}

func newColumns(n int) *columns {
	return &columns{
		id: make([]int64, 0, n), source: make([]string, 0, n), key: make([]*string, 0, n),
		kind: make([]string, 0, n), digest: make([][]byte, 0, n),
		header: make([][]byte, 0, n), body: make([][]byte, 0, n), received: make([]time.Time, 0, n),
		event: make([]int64, 0, n), destination: make([]string, 0, n), hold: make([]bool, 0, n),
	}
}

func (c *columns) add(e *journal.Entry) {
	c.id = append(c.id, e.ID)
	c.source = append(c.source, e.Source)
	var key *string
	if e.Key != "" {
		key = &e.Key
	}
	c.key = append(c.key, key)
	c.kind = append(c.kind, e.Type)
	c.digest = append(c.digest, e.Digest)
	c.header = append(c.header, notNull(e.Header))
	c.body = append(c.body, notNull(e.Body))
	c.received = append(c.received, e.ReceivedAt)
	for _, d := range e.Destinations {
		c.event = append(c.event, e.ID)
		c.destination = append(c.destination, d)
		c.hold = append(c.hold, e.Hold)
	}
}

// notNull keeps an absent body apart from NULL, which the columns do not take.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
