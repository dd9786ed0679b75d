package pg

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// Extend implements [journal.Store].
func (s *Store) Extend(ctx context.Context, held []journal.Held, lease time.Time) ([]bool, error) {
	sorted := slices.SortedFunc(slices.Values(held), compareHeld)
	var event, token []int64
	var destination []string
	for _, h := range sorted {
		event, destination, token = append(event, h.EventID), append(destination, h.Destination), append(token, h.Token)
	}
	current := make(map[journal.Held]bool, len(held))
	err := s.retry(ctx, "extending leases", func() error {
		clear(current)
		var h journal.Held
		to := []any{&h.EventID, &h.Destination, &h.Token}
		return each(ctx, s.pool, s.sql.extend, []any{event, destination, token, lease}, to, func() error {
			current[h] = true
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	still := make([]bool, len(held))
	for i, h := range held {
		still[i] = current[h]
	}
	return still, nil
}

// Finish implements [journal.Store]. That somebody cancelled a wait for the standby is no error, as it is in [Store.waited]: the
// primary has the outcome, so that, recorded again, it would come too late, and be taken for one of a worker that lost its lease.
// If the primary is lost as well the delivery is made again.
func (s *Store) Finish(ctx context.Context, outcomes []journal.Outcome) ([]bool, error) {
	c := newOutcomeColumns(outcomes)
	applied := make([]bool, len(outcomes))
	err := s.retry(ctx, "recording outcomes", func() error {
		clear(applied)
		rows, err := c.query(ctx, s)
		if err != nil {
			return err
		}
		var n int
		_, err = pgx.ForEachRow(rows, []any{&n}, func() error { applied[n] = true; return nil })
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// outcomeColumns are outcomes, turned into the arrays that one statement takes.
type outcomeColumns struct {
	n           []int32
	event       []int64
	destination []string
	token       []int64
	state       []string
	due         []*time.Time
	status      []int32
	text        []string
	started     []time.Time
	duration    []int64
	answer      [][]byte
	group       []*string // these five end with the last outcome that has one
	rank        []*int64
	rankKind    []*string
	spared      []*bool
	kind        []*string
	reply       replyColumns
}

// newOutcomeColumns puts the outcomes into the order in which all statements lock. Of several
// outcomes for one token only the first can apply, so the others are left out.
func newOutcomeColumns(outcomes []journal.Outcome) *outcomeColumns {
	order := make([]int, len(outcomes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareHeld(outcomes[i].Held, outcomes[j].Held) })
	order = slices.CompactFunc(order, func(i, j int) bool { return outcomes[i].Held == outcomes[j].Held })
	c := &outcomeColumns{}
	for _, i := range order {
		c.add(i, &outcomes[i])
	}
	return c
}

// query records the outcomes.
func (c *outcomeColumns) query(ctx context.Context, s *Store) (pgx.Rows, error) {
	args := []any{c.n, c.event, c.destination, c.token, c.state,
		c.due, c.status, c.text, c.started, c.duration, c.answer, c.group, c.rank, c.rankKind, c.spared, c.kind}
	if len(c.reply.n) == 0 {
		return s.pool.Query(ctx, s.sql.finish, args...)
	}
	return s.pool.Query(ctx, s.sql.finishReplies, append(args, c.reply.n, c.reply.status, c.reply.header, c.reply.body)...)
}

func (c *outcomeColumns) add(i int, o *journal.Outcome) {
	if r := &o.Rank; !r.IsZero() {
		c.group = sparse(c.group, len(c.n), &o.Group)
		c.rank, c.rankKind = sparse(c.rank, len(c.n), &r.N), sparse(c.rankKind, len(c.n), orNull((*string)(&r.Kind)))
	}
	if o.Spared {
		c.spared = sparse(c.spared, len(c.n), &o.Spared)
	}
	if o.Kind != "" {
		c.kind = sparse(c.kind, len(c.n), (*string)(&o.Kind))
	}
	if o.Response != nil && o.State == journal.Done {
		c.reply.add(i, o.Response)
	}
	c.n = append(c.n, int32(i))
	c.event = append(c.event, o.EventID)
	c.destination = append(c.destination, o.Destination)
	c.token = append(c.token, o.Token)
	c.state = append(c.state, string(o.State))
	var due *time.Time
	if o.State == journal.Failed || o.State == journal.Pending {
		due = &o.Due
	}
	c.due = append(c.due, due)
	c.status = append(c.status, int32(o.Status))
	c.text = append(c.text, o.ErrorText())
	c.started = append(c.started, o.Started)
	c.duration = append(c.duration, o.Duration.Microseconds())
	c.answer = append(c.answer, o.KeptExcerpt())
}

func compareHeld(a, b journal.Held) int {
	return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Token, b.Token))
}

// Orphans implements [journal.Store]. Another process may hold what is processing, so there is
// nothing that this store can know to be orphaned: leases run out by themselves.
func (s *Store) Orphans(context.Context, time.Time) (int, error) { return 0, nil }
