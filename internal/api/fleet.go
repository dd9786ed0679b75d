package api

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Gone is how long after its last word a gateway counts as gone. Gateways tell of themselves more often.
const Gone = 10 * time.Second

// Gateway is a process on the store: the one that answers, or another.
type Gateway struct {
	ID      string    `json:"id" doc:"Drawn at every start."`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since" doc:"When it started."`
	Seen    time.Time `json:"seen" doc:"When it last told of itself."`
	Gone    bool      `json:"gone,omitempty" doc:"It has not told of itself for a while, and did not stop in order: it was killed, or cannot reach the store. What it held is taken over by the others. After an hour it is forgotten."`
	Answers bool      `json:"answers,omitempty" doc:"This answer is its."`
}

// Stand is how one gateway finds a destination.
type Stand struct {
	Gateway  string `json:"gateway" doc:"Its identifier."`
	Health   Health `json:"health"`
	Waiting  int    `json:"waiting" doc:"Deliveries that it holds for their turn."`
	Underway int    `json:"underway" doc:"Attempts that it is making."`
}

// member is a gateway with how it finds its destinations.
type member struct {
	Gateway
	targets []Target
}

// fleet returns the gateways on the store, the longest running first. What this one says is of this moment, what the
// others say some seconds old.
func (a *api) fleet(ctx context.Context) ([]member, error) {
	known, err := a.opt.Records.Gateways(ctx)
	if err != nil {
		return nil, err
	}
	now := a.opt.Now()
	self := a.opt.Self
	self.Seen = now
	known = append(slices.DeleteFunc(known, func(g journal.Gateway) bool { return g.ID == self.ID }), self)
	slices.SortStableFunc(known, func(a, b journal.Gateway) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	all := make([]member, len(known))
	for i, g := range known {
		all[i].Gateway = Gateway{g.ID, g.Host, g.PID, g.Version, g.Since.UTC(), g.Seen.UTC(), now.Sub(g.Seen) > Gone, g.ID == self.ID}
		if g.ID == self.ID {
			all[i].targets = a.opt.Targets()
		} else if err := json.Unmarshal(g.View, &all[i].targets); err != nil {
			a.opt.Logger.LogAttrs(ctx, slog.LevelWarn, "api: another gateway, of another version, is not understood", slog.String("version", g.Version), slog.Any("error", err))
		}
	}
	return all, nil
}

// describe adds how a gateway finds the destination. The destination is as bad as it is for any of them.
func (d *Destination) describe(m *member, t *Target) {
	if !d.Configured || m.Answers {
		d.URL, d.Order = t.URL, "none"
		if t.Ordered {
			d.Order = "by_resource"
		}
	}
	d.Configured = true
	d.Waiting += t.Waiting
	d.Underway += t.Underway
	d.Gateways = append(d.Gateways, Stand{m.ID, t.Health, t.Waiting, t.Underway})
	if d.Health == nil {
		d.Health = &Health{State: "healthy"}
	}
	limit := d.Health.Limit + t.Health.Limit
	if t.Health.worse(d.Health) {
		*d.Health = t.Health
	}
	d.Health.Limit = limit
}

// worse reports whether a destination stands worse here than there. Of two that are ill the one counts that is tried
// first.
func (h *Health) worse(than *Health) bool {
	severity := map[string]int{"recovering": 1, "ill": 2}
	if h.State != than.State {
		return severity[h.State] > severity[than.State]
	}
	return h.Probe != nil && (than.Probe == nil || h.Probe.Before(*than.Probe))
}
