package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// asideStep is how many events one transaction looks at that puts rows aside, and asidePart how many one call does.
const (
	asideStep = 1000
	asidePart = 100 * asideStep
)

// DropPartitions implements [journal.Partitioned]. Rows that are needed are moved to the table of what is kept, which all
// statements look into. When a whole look at the partition has found none, the next one drops it, if
// there is none still: a statement that looked for a row just before it was moved has found it in its old place
// by then.
func (s *Store) DropPartitions(ctx context.Context, now time.Time, keep *journal.Retention) (journal.Dropped, error) {
	s.dropping.Lock()
	defer s.dropping.Unlock()
	d := journal.Dropped{Rows: map[journal.Kind]int64{}}
	var failed error // of one kind, which is no reason not to try the other
	for _, kind := range []journal.Kind{journal.KindBodies, journal.KindAttempts} {
		all, err := s.droppable(ctx, s.pool, kind)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("journal/pg: reading the partitions of %s: %w", kind, err))
			continue
		}
		if keep.Of(kind) == 0 || len(all) == 0 || all[0].end > journal.FirstID(now.Add(-keep.Of(kind))) {
			continue
		}
		done, err := s.retire(ctx, kind, all[0], keep.Longer(kind), now, &d)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("journal/pg: dropping the partition %s: %w", all[0].name, err))
			continue
		}
		d.More, d.Busy = d.More || done, d.Busy || !done
	}
	return d, failed
}

// aside is a look at a whole partition that puts aside what is needed of it. It takes as many calls as there are parts, and
// goes on from where it was also after one that failed.
type aside struct {
	partition string
	longer    []string
	after     int64 // what it has seen
	moved     int   // rows, that it has put aside
	ended     time.Time
}

// lookLasts is for how long a look that has ended counts while others are in the way of dropping the partition: attempts may be made
// meanwhile at events of sources that keep them for longer.
const lookLasts = time.Hour

// lookAt returns the look at a partition that is under way, or a new one.
func (s *Store) lookAt(kind journal.Kind, p partition, longer []string, now time.Time) *aside {
	look := s.looks[kind]
	if look == nil || !look.ended.IsZero() && now.Sub(look.ended).Abs() > lookLasts || look.partition != p.name || !slices.Equal(look.longer, longer) {
		look = &aside{partition: p.name, longer: longer, after: p.first - 1}
		s.looks[kind] = look
	}
	return look
}

// retire puts aside what is needed of a partition, or drops it if that is nothing. It reports whether it came to
// that, or to a part of it: false means that others are in the way.
func (s *Store) retire(ctx context.Context, kind journal.Kind, p partition, longer []string, now time.Time, d *journal.Dropped) (done bool, err error) {
	look := s.lookAt(kind, p, longer, now)
	more, busy, err := s.putAside(ctx, kind, p, look)
	if err != nil || busy || more {
		d.Part = d.Part || more
		return more, err
	}
	if look.ended.IsZero() {
		look.ended = now
	}
	if look.moved > 0 {
		delete(s.looks, kind)
		return true, nil
	}
	done, needed, err := s.dropPartition(ctx, kind, p)
	if done || needed { // else the next call tries again, and what was looked at stays so
		delete(s.looks, kind)
	}
	if done {
		d.Rows[kind] += p.rows
		s.log.InfoContext(ctx, "journal/pg: dropped a partition", "partition", p.name, "rows", p.rows)
	}
	return done, err
}

// putAside moves what is needed of the next part of a partition. It reports whether there is more of it.
func (s *Store) putAside(ctx context.Context, kind journal.Kind, p partition, look *aside) (more, busy bool, err error) {
	ids := `SELECT event_id FROM {{.}}deliveries`
	if len(look.longer) > 0 {
		ids = `SELECT event_id FROM ` + s.table(p.name)
	}
	sql := s.in(lookSQL(ids + ` WHERE event_id > $1 AND event_id < $2`))
	for part := 0; part < asidePart; part += asideStep {
		seen, after, moved := 0, look.after, 0
		busy, err = s.upkeep(ctx, func(tx pgx.Tx) error {
			var needed []int64
			var f journal.Found
			var received *time.Time // which the partition says as well
			err := each(ctx, tx, sql, []any{look.after, p.end, asideStep}, []any{&f.ID, &f.Source, &f.Open, &received}, func() error {
				seen++
				after = f.ID
				if f.Open || slices.Contains(look.longer, f.Source) {
					needed = append(needed, f.ID)
				}
				return nil
			})
			if err != nil {
				return err
			}
			moved, err = s.move(ctx, tx, kind, p, needed)
			return err
		})
		if err != nil || busy {
			return false, busy, err
		}
		look.after, look.moved = after, look.moved+moved
		if seen < asideStep {
			return false, false, nil
		}
	}
	return true, false, nil
}

// moveSQL moves rows in one snapshot, so that every other one finds them in one of the two places.
const moveSQL = `WITH moved AS (DELETE FROM %[1]s WHERE event_id = ANY ($1::bigint[]) RETURNING *)
	INSERT INTO %[2]s (%[3]s) SELECT %[3]s FROM moved ON CONFLICT DO NOTHING`

// columnsOfKind are the columns of a table that is divided.
func columnsOfKind(kind journal.Kind) string {
	if kind == journal.KindBodies {
		return "event_id, header, body"
	}
	return "event_id, destination, token, outcome, status, error, started_at, duration_us, answer, error_kind"
}

func (s *Store) move(ctx context.Context, tx pgx.Tx, kind journal.Kind, p partition, ids []int64) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf(moveSQL, s.table(p.name), s.table("kept_"+string(kind)), columnsOfKind(kind)), ids)
	return int(tag.RowsAffected()), err
}

// dropPartition drops a partition of which nothing is needed, or reports that something is. Nobody can make that wrong meanwhile: what is open is
// looked for while nothing can be stored in the partition and no replay runs. The second lock keeps
// the server's own cleaning away, which would not give way in time.
func (s *Store) dropPartition(ctx context.Context, kind journal.Kind, p partition) (done, needed bool, err error) {
	name := s.table(p.name)
	busy, err := s.upkeep(ctx, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`LOCK TABLE ` + name + ` IN SHARE MODE`,
			`LOCK TABLE ` + s.table(string(kind)+"_default") + ` IN SHARE UPDATE EXCLUSIVE MODE`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, s.in(`SELECT EXISTS (SELECT FROM {{.}}deliveries d WHERE d.event_id >= $1 AND d.event_id < $2
			AND EXISTS (SELECT FROM `+name+` b WHERE b.event_id = d.event_id))`), p.first, p.end).Scan(&needed); err != nil || needed {
			return err
		}
		_, err := tx.Exec(ctx, `DROP TABLE `+name)
		done = err == nil
		return err
	})
	return done && !busy && err == nil, needed, err
}
