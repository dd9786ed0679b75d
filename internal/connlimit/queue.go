package connlimit

// A connection is in up to four queues at a time: that of all, that of its address, that of its group, and that of large headers.
const (
	all = iota
	ofAddress
	ofGroup
	large
)

type link struct{ prev, next *conn }

// queue is a list of connections from which any can be taken out at once, by the links of one kind.
type queue struct {
	links       int
	first, last *conn
}

func (q *queue) push(c *conn) {
	c.links[q.links] = link{prev: q.last}
	if q.last == nil {
		q.first = c
	} else {
		q.last.links[q.links].next = c
	}
	q.last = c
}

func (q *queue) drop(c *conn) {
	at := c.links[q.links]
	if at.prev == nil {
		q.first = at.next
	} else {
		at.prev.links[q.links].next = at.next
	}
	if at.next == nil {
		q.last = at.prev
	} else {
		at.next.links[q.links].prev = at.prev
	}
	c.links[q.links] = link{}
}
