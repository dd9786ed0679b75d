package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgerror"
)

var _ journal.CellKeeper = (*Store)(nil)

// storing are the statements that store events.
type storing struct{ plain, accept string }

// fencedStatements are those that store events under one map of cells.
type fencedStatements struct {
	number int64
	storing
}

// fencedID is in the place of an event's id where a statement says that the map is not the newest.
const fencedID = -1

// storing returns the statements for events with that [journal.Event.CellMap].
func (s *Store) storing(number int64) storing {
	switch number {
	case 0:
		return s.sql.uncelled
	case journal.AnyCellMap:
		return s.sql.storing
	}
	if f := s.fence.Load(); f != nil && f.number == number {
		return f.storing
	}
	f := &fencedStatements{number, s.sql.behind(s.fenceOf(number))}
	s.fence.Store(f)
	return f.storing
}

// A statement that stores passes the fence by what it reads, and holds the fence by a lock of the table: the server locks what a
// statement names before it takes the snapshot that it is carried out with, until the transaction ends. So [Store.RaiseCellMap],
// whose lock conflicts with that, waits for all that passed here, and whatever waited for it sees the new map. A transaction with
// one snapshot for all that it does has an older one, and is told no: see [acceptance.insertFenced].
const (
	freshSnapshot = ` AND current_setting('transaction_isolation') = 'read committed'`
	// holdsFence locks the table as FOR KEY SHARE does, and no row of it: a row that many lock at once costs a multixact for each
	// commit. A plain read would lock it as a dump does, for which a map must not wait.
	holdsFence = ` AND NOT EXISTS (SELECT FROM {{.}}cell_fence WHERE number < 0 FOR KEY SHARE)`
	// noCells is a row as long as the store has no map. Who knows of no cells may only read the table.
	noCells = `SELECT 0 AS number WHERE NOT EXISTS (SELECT FROM {{.}}cell_fence)` + freshSnapshot
)

// fenceOf is a row as long as the store's newest map has that number, which is a part of the text, because the bodies have to stay
// the last parameter.
func (s *Store) fenceOf(number int64) string {
	return s.in(`SELECT number FROM {{.}}cell_fence WHERE number = ` + strconv.FormatInt(number, 10) + holdsFence + freshSnapshot)
}

// behind makes the rows that the statements store depend on a fence, and has them say if that was closed.
func (t storing) behind(fence string) storing {
	text := func(text string) string {
		text = strings.Replace(text, "WITH ", "WITH fence AS ("+fence+"), ", 1)
		text = strings.Replace(text, "FROM durable, unnest(", "FROM durable, fence, unnest(", 1)
		return text + `
UNION ALL
SELECT ` + strconv.Itoa(fencedID) + `, 0, '' WHERE NOT EXISTS (SELECT FROM fence)`
	}
	return storing{text(t.plain), text(t.accept)}
}

// CellRecord implements [journal.CellKeeper]. A map that the standby which commits wait for does not have is told to nobody: others
// would accept what it gives them, and this store, once the standby has taken over, accept it as well.
func (s *Store) CellRecord(ctx context.Context) (r journal.CellRecord, err error) {
	err = s.waits.Heed(func() (err error) {
		r.Maps, err = rows(ctx, s.pool, s.in(`WITH `+durable+`, `+replicated+`
SELECT number, content, since FROM replicated, {{.}}cell_maps ORDER BY number`), nil, scanCellMap)
		return err
	})
	if err == nil {
		r.Confirmations, err = rows(ctx, s.pool, s.in(`SELECT cell, number, at FROM {{.}}cell_confirmations ORDER BY cell, number`), nil,
			func(row pgx.CollectableRow) (c journal.CellConfirmation, err error) {
				return c, row.Scan(&c.Cell, &c.Number, &c.At)
			})
	}
	if err == nil {
		err = s.pool.QueryRow(ctx, `SELECT now()`).Scan(&r.Now)
	}
	return r, failed("reading the maps of cells", err)
}

// CellName implements [journal.CellKeeper].
func (s *Store) CellName(ctx context.Context) (name string, err error) {
	err = s.pool.QueryRow(ctx, s.in(`SELECT coalesce((SELECT cell FROM {{.}}cell_fence), '')`)).Scan(&name)
	if pgerror.State(err) == "42501" { // insufficient_privilege
		err = fmt.Errorf("every gateway has to read the table cell_fence; give its role the right to, as its owner: GRANT SELECT ON %scell_fence TO ... (operating.md): %w", s.prefix, err)
	}
	return name, failed("reading which cell the store is", err)
}

func scanCellMap(row pgx.CollectableRow) (m journal.CellMap, err error) {
	err = row.Scan(&m.Number, &m.Content, &m.Since)
	return m, err
}

// raiseTimeout is how long a new map waits for what is being accepted, and what comes after it waits for the map; then also if
// the process that stores it stands still, or cannot be reached.
const raiseTimeout = `SELECT set_config('lock_timeout', '3s', true), set_config('idle_in_transaction_session_timeout', '3s', true)`

// RaiseCellMap implements [journal.CellKeeper]. The lock of the table conflicts with that of [holdsFence], and is given in turn:
// however much is being accepted, the map gets it. The first map takes the one that conflicts with all, for
// [noCells]; that there is a map is looked up before, because a lock that is raised within a transaction is a deadlock of two. So
// is what refuses a first map for good: whoever tries again and again must not have everybody wait, on standbys too.
func (s *Store) RaiseCellMap(ctx context.Context, r journal.CellRaise) error {
	return s.retry(ctx, "storing a map of cells", func() error {
		own, err := s.CellName(ctx)
		if err != nil {
			return err
		}
		lock := `LOCK TABLE {{.}}cell_fence IN EXCLUSIVE MODE`
		if own == "" {
			if err := s.fresh(ctx, s.pool, &r); err != nil {
				return err
			}
			lock = `LOCK TABLE {{.}}cell_fence IN ACCESS EXCLUSIVE MODE`
		}
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			for _, text := range []string{setDurable, raiseTimeout, s.in(lock)} {
				if _, err := tx.Exec(ctx, text); err != nil {
					return err
				}
			}
			return s.raise(ctx, tx, &r)
		})
	})
}

// fresh refuses a store without maps that has events, if it is to have none.
func (s *Store) fresh(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, r *journal.CellRaise) error {
	if !r.Fresh {
		return nil
	}
	var some bool
	err := db.QueryRow(ctx, s.in(`SELECT EXISTS (SELECT FROM {{.}}events)`)).Scan(&some)
	if err == nil && some {
		err = journal.ErrCellEvents
	}
	return err
}

// raise stores what is newer of the maps.
func (s *Store) raise(ctx context.Context, tx pgx.Tx, r *journal.CellRaise) error {
	var newest int64
	var own string
	if err := tx.QueryRow(ctx, s.in(`SELECT coalesce(max(number), 0), coalesce(max(cell), '') FROM {{.}}cell_fence`)).Scan(&newest, &own); err != nil {
		return err
	}
	if own != "" && own != r.Cell {
		return fmt.Errorf("%w: it is %q, and not %q", journal.ErrCellName, own, r.Cell)
	}
	if newest == 0 { // it may have a name, from a map that was taken back
		if err := s.fresh(ctx, tx, r); err != nil {
			return err
		}
	}
	before := newest
	for _, m := range r.Maps {
		switch {
		case m.Number <= before:
			if err := s.sameMap(ctx, tx, m); err != nil {
				return err
			}
			continue
		case newest > 0 && m.Number != newest+1:
			return fmt.Errorf("%w: map %d does not follow %d", journal.ErrCellMap, m.Number, newest)
		}
		if _, err := tx.Exec(ctx, s.in(`INSERT INTO {{.}}cell_maps (number, content, since) VALUES ($1, $2, $3)`), m.Number, m.Content, m.Since); err != nil {
			return err
		}
		newest = m.Number
	}
	if newest == before {
		return nil
	}
	if _, err := tx.Exec(ctx, s.in(`INSERT INTO {{.}}cell_fence (number, cell) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET number = excluded.number`), newest, r.Cell); err != nil {
		return err
	}
	if r.Audit == nil {
		return nil
	}
	_, err := s.audit(ctx, tx, *r.Audit)
	return err
}

// sameMap refuses a map if the store has another one of its number: those that follow it would not follow the store's.
func (s *Store) sameMap(ctx context.Context, tx pgx.Tx, m journal.CellMap) error {
	var content string
	err := tx.QueryRow(ctx, s.in(`SELECT content FROM {{.}}cell_maps WHERE number = $1`), m.Number).Scan(&content)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // before the first one that is kept here
		return nil
	case err == nil && content != m.Content:
		return fmt.Errorf("%w: %d", journal.ErrOtherCellMap, m.Number)
	}
	return err
}

// ConfirmCell implements [journal.CellKeeper].
func (s *Store) ConfirmCell(ctx context.Context, c journal.CellConfirmation) error {
	return s.retry(ctx, "recording what a cell confirms", func() error {
		_, err := s.pool.Exec(ctx, s.in(`WITH `+durable+`
INSERT INTO {{.}}cell_confirmations (cell, number, at) SELECT $1::text, $2::bigint, greatest($3::timestamptz, now()) FROM durable
ON CONFLICT (cell, number) DO NOTHING`), c.Cell, c.Number, c.At)
		return err
	})
}
