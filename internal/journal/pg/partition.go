package pg

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgerror"
)

var _ journal.Partitioned = (*Store)(nil)

// divided reports whether the table of a kind, which has the kind's name, is divided into partitions: by
// identifier, and so by time. What is put aside of them is in a table beside it, kept_ and the name. All
// statements that read look there as well.
func divided(kind journal.Kind) bool {
	return kind == journal.KindBodies || kind == journal.KindAttempts
}

// partition is one of a table. The one that takes what no other is for, the default, has none of this.
type partition struct {
	name       string
	first, end int64 // identifiers, from first on and below end
	rows       int64 // an estimate
	owned      bool  // this role may drop it
}

const partitionsSQL = `SELECT c.relname, pg_get_expr(c.relpartbound, c.oid),
	greatest(c.reltuples::bigint, pg_stat_get_live_tuples(c.oid), 0), pg_has_role(c.relowner, 'USAGE')
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1)`

// partitions returns those of a table, the default apart, oldest first.
func (s *Store) partitions(ctx context.Context, db querier, kind journal.Kind) ([]partition, error) {
	var all []partition
	var p partition
	var bound *string // nil: it was dropped a moment ago
	err := each(ctx, db, partitionsSQL, []any{s.prefix + string(kind)}, []any{&p.name, &bound, &p.rows, &p.owned}, func() (err error) {
		if bound == nil || *bound == "DEFAULT" {
			return nil
		}
		if p.first, p.end, err = parseBound(*bound); err != nil {
			return fmt.Errorf("partition %s: %w", p.name, err)
		}
		all = append(all, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b partition) int { return cmp.Compare(a.first, b.first) })
	return all, nil
}

// droppable returns those of a table that this role may drop, oldest first. What is in the others is deleted row by row.
func (s *Store) droppable(ctx context.Context, db querier, kind journal.Kind) ([]partition, error) {
	all, err := s.partitions(ctx, db, kind)
	return slices.DeleteFunc(all, func(p partition) bool { return !p.owned }), err
}

// boundPattern is how the server writes the bounds of a partition: FOR VALUES FROM ('1') TO ('2').
var boundPattern = regexp.MustCompile(`^FOR VALUES FROM \((?:MINVALUE|'(\d+)')\) TO \('(\d+)'\)$`)

// parseBound reads bounds. One without a lower end begins at 0, below all identifiers.
func parseBound(text string) (first, end int64, err error) {
	parts := boundPattern.FindStringSubmatch(text)
	if parts == nil {
		return 0, 0, fmt.Errorf("its bounds were not made by this program: %s", text)
	}
	if parts[1] != "" {
		if first, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	end, err = strconv.ParseInt(parts[2], 10, 64)
	return first, end, err
}

// table returns a table of the schema as statements have it.
func (s *Store) table(name string) string { return s.prefix + pgx.Identifier{name}.Sanitize() }

// upkeepSQL bounds how long a transaction waits for each lock on a table. Whoever comes after it waits as long.
const upkeepSQL = `SET LOCAL lock_timeout = '50ms'`

// upkeep runs a transaction that changes tables, while nobody purges, replays, or does the same elsewhere. If
// somebody does for longer than a second, or holds a table, or has dropped it, it is not run, or rolled back, and
// busy is true.
func (s *Store) upkeep(ctx context.Context, f func(tx pgx.Tx) error) (busy bool, err error) {
	err = s.durably(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return err
		}
		if err := s.awaitPurge(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, upkeepSQL); err != nil {
			return err
		}
		return f(tx)
	})
	switch pgerror.State(err) {
	case "55P03", "42P01": // lock_not_available; undefined_table: somebody else has dropped it
		return true, nil
	}
	return false, err
}
