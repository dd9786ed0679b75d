package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
)

// maxNames bounds the names of effects, which are words of programs.
const maxNames = 1000

// ListEffects implements [hookonce.Inspector].
func (t *Tables) ListEffects(ctx context.Context, q hookonce.EffectQuery) ([]hookonce.QueuedEffect, error) {
	if q.Limit <= 0 {
		return nil, ctx.Err()
	}
	var f filter
	switch {
	case q.ID != 0:
		f.add("id = #", q.ID)
	case q.Ref.Key != "":
		f.add("source = # AND {key} = #", q.Ref.Source, q.Ref.Key)
	case q.Dead:
		f.add("state = 'dead'")
	default:
		return t.openEffects(ctx, q)
	}
	if q.Name != "" {
		f.add("name = #", q.Name)
	}
	if q.After != nil {
		f.add("id > #", q.After.ID)
	}
	return t.effects(ctx, f, "id", q.Limit)
}

// openEffects goes from name to name, because that is how the index knows what is due.
func (t *Tables) openEffects(ctx context.Context, q hookonce.EffectQuery) (found []hookonce.QueuedEffect, err error) {
	names := []string{q.Name}
	if q.Name == "" {
		first := ""
		if q.After != nil {
			first = q.After.Name
		}
		if names, err = t.names(ctx, first); err != nil {
			return nil, err
		}
		if first != "" {
			names = slices.Insert(names, 0, first)
		}
	}
	for _, name := range names {
		var f filter
		f.add("name = # AND due_at IS NOT NULL", name)
		if a := q.After; a != nil && a.Name == name {
			due := a.Due
			if a.State == hookonce.StateProcessing {
				due = a.Lease
			}
			f.add("(due_at > # OR due_at = # AND id > #)", t.time(due), t.time(due), a.ID)
		}
		some, err := t.effects(ctx, f, "due_at, id", q.Limit-len(found))
		if err != nil {
			return nil, err
		}
		if found = append(found, some...); len(found) >= q.Limit {
			break
		}
	}
	return found, nil
}

// names are those of effects, above after: of the open ones where an index has them alone, otherwise of all.
func (t *Tables) names(ctx context.Context, after string) ([]string, error) {
	due := " AND due_at IS NOT NULL"
	if t.tables.Dialect == ddl.MySQL {
		due = ""
	}
	return t.skip(ctx, "effects", "name", due, after, maxNames)
}

func (t *Tables) effects(ctx context.Context, f filter, order string, limit int) (found []hookonce.QueuedEffect, err error) {
	text := "SELECT id, source, coalesce({key}, ''), step, name, state, token, tries, deaths, due_at, enqueued_at, last_error FROM {}effects" +
		f.where() + fmt.Sprintf(" ORDER BY %s LIMIT %d", order, limit)
	err = t.each(ctx, text, f.args, func(scan func(...any) error) error {
		var e hookonce.QueuedEffect
		err := scan(&e.ID, &e.Source, &e.Key, &e.Step, &e.Name, &e.State, &e.Token, &e.Tries, &e.Deaths, stamp{&e.Due}, stamp{&e.EnqueuedAt}, &e.LastError)
		if e.State == hookonce.StateProcessing {
			e.Lease, e.Due = e.Due, e.Lease
		}
		found = append(found, e)
		return err
	})
	return found, err
}

// CountEffects implements [hookonce.Inspector].
func (t *Tables) CountEffects(ctx context.Context, limit int) (counts []hookonce.EffectCount, err error) {
	limit = max(limit, 0)
	names, err := t.names(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c := hookonce.EffectCount{Name: name}
		err := t.each(ctx, `SELECT count(*), coalesce(sum(CASE WHEN due_at <= @1 THEN 1 ELSE 0 END), 0), min(due_at)
			FROM (SELECT due_at FROM {}effects WHERE name = @2 AND due_at IS NOT NULL ORDER BY due_at LIMIT @3) AS counted`,
			[]any{t.time(t.now()), name, limit}, func(scan func(...any) error) error { return scan(&c.Open, &c.Late, stamp{&c.Due}) })
		if err != nil {
			return nil, err
		}
		counts = append(counts, c)
	}
	err = t.each(ctx, `SELECT name, count(*) FROM (SELECT name FROM {}effects WHERE state = 'dead' ORDER BY id LIMIT @1) AS counted GROUP BY name`,
		[]any{limit}, func(scan func(...any) error) error {
			var name string
			var dead int
			err := scan(&name, &dead)
			i, there := slices.BinarySearchFunc(counts, name, func(c hookonce.EffectCount, name string) int { return cmp.Compare(c.Name, name) })
			if !there {
				counts = slices.Insert(counts, i, hookonce.EffectCount{Name: name})
			}
			counts[i].Dead = dead
			return err
		})
	return slices.DeleteFunc(counts, func(c hookonce.EffectCount) bool { return c.Open == 0 && c.Dead == 0 }), err
}
