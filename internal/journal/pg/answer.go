package pg

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// answersSQL says of each delivery how it stands. One snapshot has the state, the event and the answer. Events are looked up one by
// one, those of deliveries that are not open.
const answersSQL = `SELECT t.n, coalesce(d.state, (SELECT 'done' FROM {{.}}events e WHERE e.id = t.event_id), 'absent'),
	a.status, a.header, a.body
	FROM unnest($1::int[], $2::bigint[], $3::text[]) AS t (n, event_id, destination)
	LEFT JOIN {{.}}deliveries d ON d.event_id = t.event_id AND d.destination = t.destination
	LEFT JOIN {{.}}answers a ON a.event_id = t.event_id AND a.destination = t.destination`

// Statuses implements [journal.Store].
func (s *Store) Statuses(ctx context.Context, targets []journal.DeliveryID) ([]journal.DeliveryStatus, error) {
	var n []int32
	var event []int64
	var destination []string
	for i, t := range targets {
		n, event, destination = append(n, int32(i)), append(event, t.EventID), append(destination, t.Destination)
	}
	standings := make([]journal.DeliveryStatus, len(targets))
	var i int
	var state string
	var status *int
	var header, body []byte
	err := each(ctx, s.pool, s.sql.answers, []any{n, event, destination}, []any{&i, &state, &status, &header, &body}, func() error {
		standings[i].State = journal.State(state)
		if status != nil {
			standings[i].Response = &journal.Response{Status: *status, Header: header, Body: body}
		}
		header, body = nil, nil
		return nil
	})
	if err != nil {
		return nil, failed("reading answers", err)
	}
	return standings, nil
}

// replyColumns are the replies of outcomes, turned into the arrays that one statement takes.
type replyColumns struct {
	n, status    []int32
	header, body [][]byte
}

func (c *replyColumns) add(i int, a *journal.Response) {
	c.n, c.status = append(c.n, int32(i)), append(c.status, int32(a.Status))
	c.header, c.body = append(c.header, notNull(a.Header)), append(c.body, notNull(a.Body))
}
