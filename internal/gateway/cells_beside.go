package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
)

// CellsBeside looks at the cells from beside the gateways of one of them. Close must be called.
type CellsBeside struct {
	*cells.Cells
	plan  *plan
	store *journalStore
}

// ErrNoCells says that a configuration has no cells.
var ErrNoCells = errors.New("the configuration has no cells")

// OpenCells opens the store of a configuration, and introduces nothing. The error is one line for people.
func OpenCells(ctx context.Context, cfg *config.Config, o Options) (*CellsBeside, error) {
	if cfg.Cell == "" {
		return nil, ErrNoCells
	}
	o = o.withDefaults()
	p, err := newPlan(cfg, nil)
	if err != nil {
		return nil, err
	}
	p.cell.over(o.Dial)
	s, _, err := openExisting(ctx, p.store, o)
	if err != nil {
		return nil, err
	}
	b := &CellsBeside{plan: p, store: s}
	look, err := p.cellOptions(s, s.Known, o)
	if err == nil {
		b.Cells, err = cells.Look(ctx, look)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return b, nil
}

// Close closes the store.
func (b *CellsBeside) Close() error {
	b.Cells.Close()
	b.plan.cell.peers.CloseIdleConnections()
	return b.store.Close()
}

// CellsPlan is what it comes to if the cells of a configuration are introduced.
type CellsPlan struct {
	From  cells.Map    // that counts; its number is 0 if none is known
	To    *cells.Map   // that would follow
	Told  int64        // the number in the configuration; 0 as long as none is known
	Moves []cells.Move // of keys, the largest first
}

// Plan says what it comes to if the cells of the configuration are introduced. Nothing is.
func (b *CellsBeside) Plan() (CellsPlan, error) {
	s := b.Status()
	to, err := b.Following(b.plan.cell.configured)
	p := CellsPlan{From: s.Map, To: to, Told: s.Told}
	if err == nil && p.From.Number > 0 {
		p.Moves = p.From.Moves(to)
	}
	return p, err
}

// ForgetCell gives a cell up, which is on record as a decision of by. Gateways go by it within seconds.
func (b *CellsBeside) ForgetCell(ctx context.Context, cell string, since time.Time, by, reason string, now time.Time) (*cells.Map, error) {
	return b.Forget(ctx, cell, since, journal.Audit{
		At: now, By: by, Action: journal.ActionForgetCell, Filter: cell,
		Reason: fmt.Sprintf("lost since %s: %s", since.UTC().Format(time.RFC3339), reason),
	})
}
