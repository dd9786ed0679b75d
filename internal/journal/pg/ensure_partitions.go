package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgerror"
)

// ahead is for how many intervals there are partitions beyond the present one.
const ahead = 3

const day = 24 * time.Hour

// interval returns how much time a partition is for: a day; an hour where things are kept for less than that; a
// thirtieth where they are kept for more than a month, and at most a month. So there never are many partitions,
// and what is in them is not kept for much longer than it should be.
func interval(keep time.Duration) time.Duration {
	switch {
	case keep == 0:
		return 30 * day
	case keep < day:
		return time.Hour
	}
	return min(max(day, (keep/30+day-1).Truncate(day)), 30*day)
}

// gap is a range of identifiers, from first on and below end, that no partition is for.
type gap struct{ first, end int64 }

// gaps returns those between from and until, cut at the multiples of step. The partitions are sorted.
func gaps(have []partition, from, until, step int64) (all []gap) {
	at := from - from%step
	until += step - 1 - (until-1)%step
	cut := func(end int64) {
		for at < end {
			next := min(at-at%step+step, end)
			all = append(all, gap{at, next})
			at = next
		}
	}
	for _, p := range have {
		cut(min(p.first, until))
		at = max(at, p.end)
	}
	cut(until)
	return all
}

// EnsurePartitions implements [journal.Partitioned]. There are partitions for as many as three times ahead of the
// present one. A range of which rows are in the default partition gets none: it would have to be emptied first,
// and serves as well, but for the cost of deleting. So do those for which the server would have to look through too large a
// default partition. Tables that are not divided stay so.
func (s *Store) EnsurePartitions(ctx context.Context, now time.Time, keep *journal.Retention) (map[journal.Kind]journal.Division, error) {
	divisions := map[journal.Kind]journal.Division{}
	if !s.divided {
		return divisions, nil
	}
	for _, kind := range []journal.Kind{journal.KindBodies, journal.KindAttempts} {
		have, err := s.partitions(ctx, s.pool, kind)
		if err != nil {
			return nil, fmt.Errorf("journal/pg: reading the partitions of %s: %w", kind, err)
		}
		long := interval(keep.Of(kind))
		step := journal.FirstID(journal.IDTime(0).Add(long))
		missing := gaps(have, journal.FirstID(now), journal.FirstID(now.Add(ahead*long)), step)
		if at, was := s.crowded.Load(kind); was && now.Sub(at.(time.Time)).Abs() < attachAgain {
			missing = nil
		}
		for _, g := range missing {
			err := s.makePartition(ctx, kind, g)
			if errors.Is(err, errCrowded) {
				s.log.WarnContext(ctx, "journal/pg: partitions are not made beside a large default one; what is in it is deleted row by row",
					"kind", string(kind), "again", now.Add(attachAgain))
				s.crowded.Store(kind, now) // the others would take as long, and whoever stores waits each time
				break
			}
			if err != nil {
				return nil, fmt.Errorf("journal/pg: making the partition %s: %w", partitionName(kind, g), err)
			}
		}
		if len(missing) > 0 {
			if have, err = s.partitions(ctx, s.pool, kind); err != nil {
				return nil, fmt.Errorf("journal/pg: reading the partitions of %s: %w", kind, err)
			}
		}
		divisions[kind] = division(have)
	}
	return divisions, nil
}

// division says how far partitions reach.
func division(have []partition) journal.Division {
	d := journal.Division{Partitions: len(have)}
	if len(have) > 0 {
		d.From, d.Until = journal.IDTime(have[0].first), journal.IDTime(have[len(have)-1].end)
	}
	return d
}

// maxAttach bounds the statement that has the server look through the default partition, of which there
// should be little, while others wait for it.
const maxAttach = 250 * time.Millisecond

// attachAgain is how long none is attached then.
const attachAgain = time.Hour

// errCrowded says that looking through the default partition would take longer than that.
var errCrowded = errors.New("the default partition is too large to look through")

// makePartition makes a partition like the default one, unless somebody else has, or there are rows of it in the
// default. It is made apart and then attached: so whoever stores meanwhile does not wait.
func (s *Store) makePartition(ctx context.Context, kind journal.Kind, g gap) error {
	parent, name, spare := s.table(string(kind)), s.table(partitionName(kind, g)), s.table(string(kind)+"_default")
	_, err := s.upkeep(ctx, func(tx pgx.Tx) error {
		var settled bool
		err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL
			OR EXISTS (SELECT FROM `+spare+` WHERE event_id >= $2 AND event_id < $3)`, name, g.first, g.end).Scan(&settled)
		if err != nil || settled {
			return err
		}
		var options string
		if err := tx.QueryRow(ctx, `SELECT coalesce('WITH (' || array_to_string(reloptions, ', ') || ')', '')
			FROM pg_class WHERE oid = to_regclass($1)`, spare).Scan(&options); err != nil {
			return err
		}
		for _, sql := range []string{
			fmt.Sprintf(`CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING COMPRESSION) %s`, name, spare, options),
			fmt.Sprintf(`SET LOCAL statement_timeout = %d`, s.attach.Milliseconds()),
		} {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`,
			parent, name, g.first, g.end), pgx.QueryExecModeSimpleProtocol)
		if pgerror.State(err) == "57014" { // query_canceled
			return errCrowded
		}
		return err
	})
	if pgerror.State(err) == "23514" { // check_violation: a row of it came to the default meanwhile
		return nil
	}
	return err
}

// partitionName names a partition by when it begins, in UTC.
func partitionName(kind journal.Kind, g gap) string {
	at, layout := journal.IDTime(g.first).UTC(), "20060102"
	if at.Truncate(day) != at {
		layout = "20060102_150405"
	}
	return string(kind) + "_" + at.Format(layout)
}
