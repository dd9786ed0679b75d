package memstore

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
)

// Purge implements [hookonce.Purger]. What a transaction holds stays.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (int, error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	p := purge{table: s.table, PurgeRequest: req}
	p.from, p.to = req.Span()
	switch req.Kind {
	case hookonce.PurgeVersions:
		marks(&p, s.table.ranks, "ranks")
	case hookonce.PurgeStates:
		marks(&p, s.table.states, "states")
	case hookonce.PurgeEffects:
		p.effects()
	default:
		p.claims()
	}
	return p.n, nil
}

// purge is one call of Purge. It holds the table's mu.
type purge struct {
	*table
	hookonce.PurgeRequest
	from, to time.Time
	n        int
}

// goes counts a row that may go, as far as its age and the limit tell, and reports whether to delete it.
func (p *purge) goes(changed time.Time, held row) bool {
	if _, busy := p.locks[held]; busy || p.n >= p.Limit || changed.Before(p.from) || !changed.Before(p.to) {
		return false
	}
	p.n++
	return !p.Dry
}

func (p *purge) claims() {
	for ref, c := range p.table.claims {
		if p.Over(c.State) && p.Covers(ref.Source) && p.goes(c.UpdatedAt, claimRow(ref)) {
			delete(p.table.claims, ref)
			delete(p.responses, ref)
		}
	}
}

func (p *purge) effects() {
	for id, e := range p.table.effects {
		step := row{"effects", e.Ref, e.Step}
		if p.Over(e.State) && p.Covers(e.Source) && p.goes(e.updatedAt, step) {
			delete(p.table.effects, id)
			delete(p.steps, step)
		}
	}
}

// marks deletes what guards recorded.
func marks[V any](p *purge, all map[string]mark[V], table string) {
	for name, m := range all {
		if p.goes(m.at, row{table: table, ref: hookonce.Ref{Key: name}}) {
			delete(all, name)
		}
	}
}
