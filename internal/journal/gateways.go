package journal

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Gateway is what a process says of itself to those that share its store.
type Gateway struct {
	// ID is drawn at every start.
	ID      string
	Host    string
	PID     int
	Version string
	// Since is when it started, and Seen when it last said this.
	Since, Seen time.Time
	// View is how it finds its destinations, as JSON. Stores do not look into it.
	View []byte
}

// Roster keeps in memory what gateways say of themselves, for stores that one process owns. The zero Roster is
// empty. It is safe for concurrent use.
type Roster struct {
	mu  sync.Mutex
	all map[string]Gateway
}

// Announce implements [Registry].
func (r *Roster) Announce(_ context.Context, g Gateway, forget time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]Gateway{}
	}
	g.View = slices.Clone(g.View)
	r.all[g.ID] = g
	maps.DeleteFunc(r.all, func(_ string, other Gateway) bool { return other.Seen.Before(forget) && other.ID != g.ID })
	return nil
}

// Withdraw implements [Registry].
func (r *Roster) Withdraw(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
	return nil
}

// Gateways implements [Registry].
func (r *Roster) Gateways(context.Context) ([]Gateway, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.all), func(a, b Gateway) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	}), nil
}
