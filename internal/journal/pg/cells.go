package pg

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

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
	return r, failed("reading the maps of cells", err)
}

func scanCellMap(row pgx.CollectableRow) (m journal.CellMap, err error) {
	err = row.Scan(&m.Number, &m.Content, &m.Since)
	return m, err
}

// raiseTimeout is how long a new map waits for what is being accepted, and what comes after it waits for the map.
const raiseTimeout = `SET LOCAL lock_timeout = '3s'`

// RaiseCellMap implements [journal.CellKeeper]. The lock of the table conflicts with that of FOR SHARE, and unlike that of the row it
// is given in turn: however much is being accepted, the map gets it.
func (s *Store) RaiseCellMap(ctx context.Context, maps []journal.CellMap, audit *journal.Audit) error {
	return s.retry(ctx, "storing a map of cells", func() error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			for _, text := range []string{setDurable, raiseTimeout, s.in(`LOCK TABLE {{.}}cell_fence IN EXCLUSIVE MODE`)} {
				if _, err := tx.Exec(ctx, text); err != nil {
					return err
				}
			}
			return s.raise(ctx, tx, maps, audit)
		})
	})
}

// raise stores what is newer of the maps.
func (s *Store) raise(ctx context.Context, tx pgx.Tx, maps []journal.CellMap, audit *journal.Audit) error {
	var newest int64
	if err := tx.QueryRow(ctx, s.in(`SELECT coalesce(max(number), 0) FROM {{.}}cell_fence`)).Scan(&newest); err != nil {
		return err
	}
	before := newest
	for _, m := range maps {
		switch {
		case m.Number <= newest:
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
	if _, err := tx.Exec(ctx, s.in(`INSERT INTO {{.}}cell_fence (number) VALUES ($1) ON CONFLICT (one) DO UPDATE SET number = excluded.number`), newest); err != nil {
		return err
	}
	if audit == nil {
		return nil
	}
	_, err := s.audit(ctx, tx, *audit)
	return err
}

// ConfirmCell implements [journal.CellKeeper].
func (s *Store) ConfirmCell(ctx context.Context, c journal.CellConfirmation) error {
	return s.retry(ctx, "recording what a cell confirms", func() error {
		_, err := s.pool.Exec(ctx, s.in(`WITH `+durable+`
INSERT INTO {{.}}cell_confirmations (cell, number, at) SELECT $1::text, $2::bigint, $3::timestamptz FROM durable
ON CONFLICT (cell, number) DO NOTHING`), c.Cell, c.Number, c.At)
		return err
	})
}
