package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// pick takes for one destination what [journal.Want.Choose] prefers. Who chooses is rare and takes little, so
// this need not be one statement.
func (t *taking) pick(ctx context.Context, tx pgx.Tx, want journal.Want) (work []*journal.Work, err error) {
	var choices []journal.Choice
	var groups []string // of which it has to be noted when they are due
	var c journal.Choice
	var due bool
	to := []any{&c.EventID, &c.OrderingGroup, &c.Untried, &c.Source, &c.Type, &c.Resource, &due}
	err = each(ctx, tx, t.sql.choices, []any{want.Destination, t.now, journal.PickAmong}, to, func() error {
		if due {
			choices = append(choices, c)
		} else {
			groups = append(groups, c.OrderingGroup)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var events []int64
	for _, c := range want.Choose(choices, min(want.Deliveries, t.total)) {
		if c.OrderingGroup != "" {
			groups = append(groups, c.OrderingGroup)
		} else {
			events = append(events, c.EventID)
		}
	}
	if work, err = t.pickGroups(ctx, tx, want.Destination, groups); err != nil {
		return nil, err
	}
	if t.use(work); len(events) == 0 || t.total <= 0 || t.deliveries[0] <= 0 {
		return work, nil
	}
	free, err := t.query(ctx, tx, t.sql.picked, events)
	return append(work, free...), err
}

// pickGroups takes from these ordering groups.
func (t *taking) pickGroups(ctx context.Context, tx pgx.Tx, destination string, groups []string) ([]*journal.Work, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	locked, err := rows(ctx, tx, t.sql.pickedGroups, []any{destination, groups}, pgx.RowTo[string])
	if err != nil || len(locked) == 0 {
		return nil, err
	}
	there := make([]string, len(locked))
	for i := range there {
		there[i] = destination
	}
	return t.query(ctx, tx, t.sql.turns, there, locked)
}
