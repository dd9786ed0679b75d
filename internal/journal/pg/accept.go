package pg

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Accept implements [journal.Store]. New entries are stored in one transaction; copies are looked up
// and re-driven in a second one, so when that fails the new entries are stored although the call
// failed.
func (s *Store) Accept(ctx context.Context, batch []*journal.Record, now, lease time.Time) ([]journal.Result, error) {
	a := &acceptance{
		Store: s, batch: batch, now: now, lease: lease,
		results: make([]journal.Result, len(batch)), digests: make([][]byte, len(batch)),
	}
	err := s.waits.Heed(func() error {
		for todo := a.valid(); len(todo) > 0; {
			firsts, rest := a.split(todo)
			if err := a.store(ctx, firsts); err != nil {
				return err
			}
			todo = a.follow(rest)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.results, nil
}

// acceptance is one call of Accept. Entries are named by their index in the batch.
type acceptance struct {
	*Store
	batch      []*journal.Record
	now, lease time.Time
	results    []journal.Result
	digests    [][]byte             // what is stored under the key of a settled entry
	first      map[hookonce.Ref]int // the entry that stands for a key in this round
}

// valid returns the entries that can be stored, and answers the others.
func (a *acceptance) valid() []int {
	valid := make([]int, 0, len(a.batch))
	for i, e := range a.batch {
		if err := e.Validate(); err != nil {
			a.results[i].Err = err
			continue
		}
		valid = append(valid, i)
	}
	return valid
}

// split parts the first entry of each key from its copies, and puts the firsts into the order of
// source and key in which all batches lock.
func (a *acceptance) split(todo []int) (firsts, rest []int) {
	a.first = make(map[hookonce.Ref]int, len(todo))
	firsts = make([]int, 0, len(todo))
	for _, i := range todo {
		r := ref(a.batch[i])
		if _, seen := a.first[r]; seen && r.Key != "" {
			rest = append(rest, i)
			continue
		}
		a.first[r] = i
		firsts = append(firsts, i)
	}
	slices.SortFunc(firsts, func(i, j int) int {
		x, y := a.batch[i], a.batch[j]
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Key, y.Key))
	})
	return firsts, rest
}

func ref(e *journal.Record) hookonce.Ref { return hookonce.Ref{Source: e.Source, Key: e.Key} }

// follow answers the copies of entries that were settled in this round, and returns those whose first was
// refused, because the next of them may be better, or is delivered by another event, about which the
// store knows, or comes from a list or went past the store and they do not: they re-drive; or coalesces, and goes not to
// all destinations that they go to.
func (a *acceptance) follow(rest []int) (todo []int) {
	for _, i := range rest {
		f := a.first[ref(a.batch[i])]
		res := a.results[f]
		if res.Err != nil || a.dropped(f) || a.batch[f].Listed && !a.batch[i].Listed || a.batch[f].Bypassed && !a.batch[i].Bypassed ||
			journal.Coalesces(a.batch[i].Key) && !a.batch[f].TakesIn(a.batch[i].Event) {
			todo = append(todo, i)
			continue
		}
		if res.Status == journal.Accepted {
			res.Done = len(a.batch[f].Destinations) == 0
		}
		res.Status, res.Redriven = a.compare(i, a.digests[f]), false
		a.results[i] = res
	}
	return todo
}

// compare returns the status of a copy of what is stored with the given digest.
func (a *acceptance) compare(i int, stored []byte) journal.Status {
	if a.batch[i].Listed || journal.Coalesces(a.batch[i].Key) || bytes.Equal(stored, a.batch[i].Digest) {
		return journal.Duplicate
	}
	return journal.Conflict
}

// store settles entries with different keys, of which those that were placed by one map of cells are stored together.
func (a *acceptance) store(ctx context.Context, entries []int) error {
	for len(entries) > 0 {
		number := a.batch[entries[0]].CellMap
		var same, others []int
		for _, i := range entries {
			if a.batch[i].CellMap == number {
				same = append(same, i)
			} else {
				others = append(others, i)
			}
		}
		if err := a.storeUnder(ctx, number, same); err != nil {
			return err
		}
		entries = others
	}
	return nil
}

// storeUnder settles entries under one map. A copy whose first was purged between the statements, or
// lost its key, is new after all, so the rest is offered again.
func (a *acceptance) storeUnder(ctx context.Context, number int64, entries []int) error {
	for onlyCopies := number == journal.CopiesOnly; len(entries) > 0; {
		copies := entries
		if !onlyCopies {
			var err error
			if copies, err = a.insertNew(ctx, number, entries); err != nil {
				return err
			}
		}
		if len(copies) == 0 {
			return nil
		}
		err := a.retry(ctx, "reading copies", func() (err error) {
			if err = a.release(ctx, copies); err == nil {
				entries, err = a.resolve(ctx, copies)
			}
			return err
		})
		if err != nil {
			return err
		}
		if onlyCopies {
			a.misplace(number, entries)
			return nil
		}
	}
	return nil
}

// insertNew stores those of the entries whose keys are new, and returns the others. None of them is left if the map is not
// the store's any more: all are answered so, copies too, because where those belong has to be found anew as well.
func (a *acceptance) insertNew(ctx context.Context, number int64, entries []int) (rest []int, err error) {
	err = a.retry(ctx, "accepting", func() (err error) {
		if number == journal.AnyCellMap {
			rest, err = a.insert(ctx, a.pool, number, entries)
		} else {
			rest, err = a.insertFenced(ctx, number, entries)
		}
		if rowRefused(err) {
			rest, err = a.bisect(ctx, number, entries)
		}
		return err
	})
	if errors.Is(err, journal.ErrCellMap) {
		a.misplace(number, entries)
		return nil, nil
	}
	return rest, err
}

// insertFenced inserts under a map, or for a gateway that knows of none. Where transactions have one snapshot for all that they do,
// which is a setting of the server, of the database or of the role, only another kind can tell which map there is.
func (a *acceptance) insertFenced(ctx context.Context, number int64, entries []int) (rest []int, err error) {
	if !a.oneSnapshot.Load() {
		if rest, err = a.insert(ctx, a.pool, number, entries); !errors.Is(err, journal.ErrCellMap) {
			return rest, err
		}
	}
	err = a.durably(ctx, func(tx pgx.Tx) (err error) {
		rest, err = a.insert(ctx, tx, number, entries)
		return err
	})
	if err == nil {
		a.oneSnapshot.Store(true)
	}
	return rest, err
}

// misplace answers entries that do not belong here, as far as is known.
func (a *acceptance) misplace(number int64, entries []int) {
	err := journal.ErrCellMap
	if number == 0 {
		err = journal.ErrNoCells
	}
	for _, i := range entries {
		a.results[i] = journal.Result{Err: err}
	}
}

// querier is a pool or a transaction.
// insert stores the entries whose keys are new, in one statement, and returns those that need a second
// one: the others, and logical duplicates whose deliveries another event stands for.
func (a *acceptance) insert(ctx context.Context, db querier, number int64, entries []int) (rest []int, err error) {
	c := newColumns(len(entries))
	for _, i := range entries {
		c.add(a.batch[i])
	}
	rows, err := a.query(ctx, db, number, c)
	if err != nil {
		return nil, err
	}
	special := map[int64]earlier{}
	var id int64
	var e earlier
	if _, err := pgx.ForEachRow(rows, []any{&id, &e.id, &e.key}, func() error { special[id] = e; return nil }); err != nil {
		return nil, err
	}
	if _, fenced := special[fencedID]; fenced {
		return nil, journal.ErrCellMap
	}
	for _, i := range entries {
		e, found := special[a.batch[i].ID]
		if a.settle(i, found && e.id == 0, e) {
			rest = append(rest, i)
		}
	}
	return rest, nil
}

// query runs the statement that stores the columns.
func (a *acceptance) query(ctx context.Context, db querier, number int64, c *columns) (pgx.Rows, error) {
	t := &c.logical
	sql := a.storing(number)
	if c.group == nil && c.listed == nil && t.id == nil {
		return db.Query(ctx, sql.plain, c.id, c.source, c.key, c.kind, c.digest, c.received, c.resource, c.rank, c.vouched, c.unrouted,
			c.event, c.destination, c.hold, a.now, a.lease, c.rankKind, c.header, c.body)
	}
	return db.Query(ctx, sql.accept, c.id, c.source, c.key, c.kind, c.digest, c.received, c.resource, c.rank, c.vouched, c.unrouted,
		c.event, c.destination, c.hold, c.group, a.now, a.lease,
		t.id, t.source, t.logical, t.key, t.drop, c.listed, c.origin, c.rankKind, c.header, c.body)
}

// earlier names the event that has the logical key of another. Zero: there is none.
type earlier struct {
	id  int64
	key string
}

// settle answers an entry that was stored, unless its key was taken. It reports whether that is not all:
// what is delivered in place of the entry may have failed.
func (a *acceptance) settle(i int, taken bool, first earlier) bool {
	e := a.batch[i]
	a.digests[i] = e.Digest
	switch {
	case taken:
		return true
	case e.Key == "":
		a.results[i] = journal.Result{Status: journal.Unkeyed, ID: e.ID}
	default:
		a.results[i] = journal.Result{Status: journal.Accepted, ID: e.ID, LogicalDuplicateOf: first.id, LogicalDuplicateKey: first.key}
	}
	return a.dropped(i)
}

// dropped reports whether an entry was stored without deliveries.
func (a *acceptance) dropped(i int) bool {
	return a.results[i].LogicalDuplicateOf != 0 && a.batch[i].DropLogicalDuplicate
}

// resolve answers entries whose keys were taken, re-driving what failed under them, and returns
// those whose keys are free again, or that have just supplied what they are to be compared with.
func (a *acceptance) resolve(ctx context.Context, copies []int) (again []int, err error) {
	var n []int32
	var source, key []string
	var listed, bypassed []*bool
	for at, i := range copies {
		n = append(n, int32(i))
		source, key = append(source, a.batch[i].Source), append(key, a.batch[i].Key)
		if a.batch[i].Listed {
			listed = sparse(listed, at, new(true))
		}
		if a.batch[i].Bypassed {
			bypassed = sparse(bypassed, at, new(true))
		}
	}
	rows, err := a.pool.Query(ctx, a.sql.copies, n, source, key, a.now, listed, bypassed)
	if err != nil {
		return nil, err
	}
	found := make(map[int]bool, len(copies))
	var supplying []int
	var i int
	var digest []byte
	var unsupplied bool
	var res journal.Result
	_, err = pgx.ForEachRow(rows, []any{&i, &res.ID, &digest, &res.Done, &res.Redriven, &unsupplied}, func() error {
		if unsupplied {
			supplying = append(supplying, i)
			return nil
		}
		found[i], a.digests[i] = true, bytes.Clone(digest)
		if a.dropped(i) {
			a.results[i].Redriven = res.Redriven
			return nil
		}
		res.Status = a.compare(i, digest)
		a.results[i] = res
		return nil
	})
	if err == nil && len(supplying) > 0 {
		err = a.supply(ctx, supplying)
	}
	return slices.DeleteFunc(slices.Clone(copies), func(i int) bool { return found[i] }), err
}

// supply gives what was stored from a list the digests of these entries, of which no two have the same key. Whose digest
// it is in the end is known when they are compared: another process may have been first.
func (a *acceptance) supply(ctx context.Context, entries []int) error {
	var source, key []string
	var digest [][]byte
	for _, i := range entries {
		e := a.batch[i]
		source, key, digest = append(source, e.Source), append(key, e.Key), append(digest, notNull(e.Digest))
	}
	_, err := a.pool.Exec(ctx, a.sql.supply, source, key, digest)
	return err
}
