package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookonce/hookonce/internal/journal"
)

var _ journal.CellKeeper = (*Store)(nil)

// fencedStatements store events under one map of cells.
type fencedStatements struct {
	number        int64
	plain, accept string
}

// fencedID is in the place of an event's id where a statement says that the map is not the newest.
const fencedID = -1

// fenced returns the statements that store events as long as the store's newest map has that number: the row of the fence is
// locked for as long as the transaction lasts, and read anew where it was changed since the snapshot, so that
// [Store.RaiseCellMap] waits for all that has passed it, and nothing passes it afterwards. The number is a part of the
// texts, because the bodies have to stay the last parameter.
func (s *Store) fenced(number int64) *fencedStatements {
	if f := s.fence.Load(); f != nil && f.number == number {
		return f
	}
	f := &fencedStatements{number: number, plain: s.fencedText(s.sql.plain, number), accept: s.fencedText(s.sql.accept, number)}
	s.fence.Store(f)
	return f
}

// fencedText makes the rows that a statement stores depend on the fence, and has it say if that was closed.
func (s *Store) fencedText(text string, number int64) string {
	fence := `WITH fence AS (SELECT number FROM ` + s.prefix + `cell_fence WHERE number = ` + strconv.FormatInt(number, 10) + ` FOR SHARE), `
	text = strings.Replace(text, "WITH ", fence, 1)
	text = strings.Replace(text, "FROM durable, unnest(", "FROM durable, fence, unnest(", 1)
	return text + `
UNION ALL
SELECT ` + strconv.Itoa(fencedID) + `, 0, '' WHERE NOT EXISTS (SELECT FROM fence)`
}

// CellRecord implements [journal.CellKeeper].
func (s *Store) CellRecord(ctx context.Context) (r journal.CellRecord, err error) {
	r.Maps, err = rows(ctx, s.pool, s.in(`SELECT number, content, since FROM {{.}}cell_maps ORDER BY number`), nil, scanCellMap)
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

// CellName implements [journal.CellKeeper]. A role of a gateway without cells may lack the right to read the name, but what
// the row takes on the disk it may know: nothing if there never was one.
func (s *Store) CellName(ctx context.Context) (name string, err error) {
	err = s.pool.QueryRow(ctx, s.in(`SELECT coalesce((SELECT cell FROM {{.}}cell_fence), '')`)).Scan(&name)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "42501" { // insufficient_privilege
		var some bool
		err = s.pool.QueryRow(ctx, `SELECT pg_relation_size($1::regclass) > 0`, s.in(`{{.}}cell_fence`)).Scan(&some)
		if some {
			name = journal.UnreadCellName
		}
	}
	return name, failed("reading which cell the store is", err)
}

func scanCellMap(row pgx.CollectableRow) (m journal.CellMap, err error) {
	err = row.Scan(&m.Number, &m.Content, &m.Since)
	return m, err
}

// raiseTimeout is how long a new map waits for what is being accepted, and what comes after it waits for the map.
const raiseTimeout = `SET LOCAL lock_timeout = '3s'`

// RaiseCellMap implements [journal.CellKeeper]. The lock of the table conflicts with that of FOR SHARE, and unlike that of the row it
// is given in turn: however much is being accepted, the map gets it.
func (s *Store) RaiseCellMap(ctx context.Context, cell string, maps []journal.CellMap, audit *journal.Audit) error {
	return s.retry(ctx, "storing a map of cells", func() error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			for _, text := range []string{setDurable, raiseTimeout, s.in(`LOCK TABLE {{.}}cell_fence IN EXCLUSIVE MODE`)} {
				if _, err := tx.Exec(ctx, text); err != nil {
					return err
				}
			}
			return s.raise(ctx, tx, cell, maps, audit)
		})
	})
}

// raise stores what is newer of the maps.
func (s *Store) raise(ctx context.Context, tx pgx.Tx, cell string, maps []journal.CellMap, audit *journal.Audit) error {
	var newest int64
	var own string
	if err := tx.QueryRow(ctx, s.in(`SELECT coalesce(max(number), 0), coalesce(max(cell), '') FROM {{.}}cell_fence`)).Scan(&newest, &own); err != nil {
		return err
	}
	if own != "" && own != cell {
		return fmt.Errorf("%w: it is %q, and not %q", journal.ErrCellName, own, cell)
	}
	before := newest
	for _, m := range maps {
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
	if _, err := tx.Exec(ctx, s.in(`INSERT INTO {{.}}cell_fence (number, cell) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET number = excluded.number`), newest, cell); err != nil {
		return err
	}
	if audit == nil {
		return nil
	}
	_, err := s.audit(ctx, tx, *audit)
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
