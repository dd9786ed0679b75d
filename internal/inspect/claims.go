package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
)

// open are the states of claims that are not done.
var open = []hookonce.State{hookonce.StateProcessing, hookonce.StateFailed, hookonce.StateDead}

// filter collects the conditions of a query, with their arguments.
type filter struct {
	conditions []string
	args       []any
}

// add adds a condition, in which each # is the next argument.
func (f *filter) add(condition string, args ...any) {
	for _, a := range args {
		f.args = append(f.args, a)
		condition = strings.Replace(condition, "#", fmt.Sprintf("@%d", len(f.args)), 1)
	}
	f.conditions = append(f.conditions, condition)
}

func (f *filter) where() string { return " WHERE " + strings.Join(f.conditions, " AND ") }

// ListClaims implements [hookonce.Inspector]. It asks state by state, because that is how indexes know claims, and the state
// stands in the text, so that the database can tell which of them knows it.
func (t *Tables) ListClaims(ctx context.Context, q hookonce.ClaimQuery) ([]hookonce.Claim, error) {
	switch {
	case q.Limit <= 0:
		return nil, ctx.Err()
	case q.Key != "":
		return t.claimsOfKey(ctx, q)
	case len(q.States) == 0:
		q.States = open
	}
	var found []hookonce.Claim
	for _, state := range q.States {
		var f filter
		switch {
		case q.Lapsed && state != hookonce.StateProcessing, state == hookonce.StateDone && q.Source == "":
			continue
		case state == hookonce.StateDone:
			f.add("state = 'done'")
		case slices.Contains(open, state):
			f.add("state = '" + string(state) + "' AND state <> 'done'")
		default:
			continue
		}
		t.narrow(&f, q)
		claims, err := t.claims(ctx, f, q.Limit)
		if err != nil {
			return nil, err
		}
		found = append(found, claims...)
	}
	return latest(found, q.Limit), nil
}

// narrow adds what a query asks besides the state.
func (t *Tables) narrow(f *filter, q hookonce.ClaimQuery) {
	if q.Source != "" {
		f.add("source = #", q.Source)
	}
	if q.Lapsed {
		f.add("lease_until < #", t.time(t.now()))
	}
	if !q.From.IsZero() {
		f.add("updated_at >= #", t.time(q.From))
	}
	if !q.Until.IsZero() {
		f.add("updated_at < #", t.time(q.Until))
	}
	if a := q.After; a != nil {
		at := t.time(a.UpdatedAt)
		f.add("updated_at <= # AND (updated_at < # OR source < # OR source = # AND {key} < #)", at, at, a.Source, a.Source, a.Key)
	}
}

func (t *Tables) claims(ctx context.Context, f filter, limit int) (found []hookonce.Claim, err error) {
	text := "SELECT " + columns + " FROM {}claims" + f.where() + fmt.Sprintf(" ORDER BY updated_at DESC, source DESC, {key} DESC LIMIT %d", limit)
	err = t.each(ctx, text, f.args, func(scan func(...any) error) error {
		var c hookonce.Claim
		err := scan(claimFields(&c)...)
		found = append(found, c)
		return err
	})
	return found, err
}

// claimsOfKey finds a key in all sources, each of which is one look into the index of keys.
func (t *Tables) claimsOfKey(ctx context.Context, q hookonce.ClaimQuery) ([]hookonce.Claim, error) {
	sources := []string{q.Source}
	if q.Source == "" {
		var err error
		if sources, err = t.Sources(ctx); err != nil || len(sources) == 0 {
			return nil, err
		}
	}
	var f filter
	f.add("{key} = #", q.Key)
	var args []any
	for _, s := range sources {
		args = append(args, s)
	}
	f.add("source IN ("+strings.TrimSuffix(strings.Repeat("#, ", len(args)), ", ")+")", args...)
	q.Source = ""
	t.narrow(&f, q)
	found, err := t.claims(ctx, f, q.Limit)
	if len(q.States) > 0 {
		found = slices.DeleteFunc(found, func(c hookonce.Claim) bool { return !slices.Contains(q.States, c.State) })
	}
	return found, err
}

// FindClaims implements [hookonce.Inspector]. Each key is one look into the index of keys.
func (t *Tables) FindClaims(ctx context.Context, source string, keys []string) (found []hookonce.Claim, err error) {
	if len(keys) > hookonce.MaxFind {
		return nil, fmt.Errorf("%d keys are asked for at once, and %d may be", len(keys), hookonce.MaxFind)
	}
	args := []any{source}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		if key != "" && (hookonce.Ref{Source: source, Key: key}).Validate() == nil {
			args = append(args, key)
		}
	}
	if len(args) == 1 {
		return nil, ctx.Err()
	}
	var marks strings.Builder
	for n := 2; n <= len(args); n++ {
		fmt.Fprintf(&marks, ", @%d", n)
	}
	text := "SELECT " + columns + " FROM {}claims WHERE source = @1 AND {key} IN (" + marks.String()[2:] + ")"
	err = t.each(ctx, text, args, func(scan func(...any) error) error {
		var c hookonce.Claim
		err := scan(claimFields(&c)...)
		found = append(found, c)
		return err
	})
	return found, err
}

// latest returns the first of the claims, those that were changed last first.
func latest(claims []hookonce.Claim, limit int) []hookonce.Claim {
	slices.SortFunc(claims, func(a, b hookonce.Claim) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.Source, a.Source), cmp.Compare(b.Key, a.Key))
	})
	return claims[:min(limit, len(claims))]
}

// CountClaims implements [hookonce.Inspector]. Where much is dead for long, the oldest do not come to what is processing now, and
// that a lease ran out is what somebody has to know of first: so the newest are counted as well, for that.
func (t *Tables) CountClaims(ctx context.Context, limit int) (counts []hookonce.ClaimCount, err error) {
	oldest, newest := "state <> 'done' ORDER BY updated_at", "state <> 'done' ORDER BY updated_at DESC" // which an index has
	if t.tables.Dialect == ddl.MySQL {                                                                  // whose index goes state by state
		oldest, newest = "state IN ('processing', 'failed', 'dead')", "state = 'processing' ORDER BY updated_at DESC"
	}
	if counts, err = t.countClaims(ctx, oldest, limit); err != nil {
		return nil, err
	}
	late, err := t.countClaims(ctx, newest, limit)
	for _, l := range late {
		if l.Lapsed == 0 {
			continue
		}
		i, counted := slices.BinarySearchFunc(counts, l, bySourceAndState)
		if !counted {
			counts = slices.Insert(counts, i, l)
			continue
		}
		c := &counts[i] // of the same claims, or of others
		held := max(c.N-c.Lapsed, l.N-l.Lapsed)
		c.Lapsed = max(c.Lapsed, l.Lapsed)
		c.N = held + c.Lapsed
		if l.Oldest.Before(c.Oldest) {
			c.Oldest = l.Oldest
		}
	}
	return counts, err
}

// countClaims counts the first of the chosen claims by source and state, in the order of both.
func (t *Tables) countClaims(ctx context.Context, chosen string, limit int) (counts []hookonce.ClaimCount, err error) {
	text := `SELECT source, state, count(*), sum(CASE WHEN state = 'processing' AND lease_until < @1 THEN 1 ELSE 0 END), min(updated_at)
		FROM (SELECT source, state, lease_until, updated_at FROM {}claims WHERE ` + chosen + ` LIMIT @2) AS counted GROUP BY source, state`
	err = t.each(ctx, text, []any{t.time(t.now()), max(limit, 0)}, func(scan func(...any) error) error {
		var c hookonce.ClaimCount
		err := scan(&c.Source, &c.State, &c.N, &c.Lapsed, stamp{&c.Oldest})
		counts = append(counts, c)
		return err
	})
	slices.SortFunc(counts, bySourceAndState) // as Go compares, whatever the collation of the database
	return counts, err
}

func bySourceAndState(a, b hookonce.ClaimCount) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.State, b.State))
}
