package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// effect is one as it is shown: without its payload.
type effect struct {
	ID       int64      `json:"id,string"`
	Name     string     `json:"name"`
	Source   string     `json:"source"`
	Key      string     `json:"key,omitempty"`
	Step     string     `json:"step"`
	State    string     `json:"state"`
	Tries    int        `json:"tries"`
	Deaths   int        `json:"deaths,omitempty"`
	Due      *time.Time `json:"due,omitempty"`
	Lease    *time.Time `json:"lease_until,omitempty"`
	Enqueued time.Time  `json:"enqueued"`
	Error    string     `json:"error,omitempty"`
	// Idempotency is the key under which it is carried out.
	Idempotency string `json:"idempotency_key"`
}

func (d *dashboard) shownEffect(e hookonce.QueuedEffect) effect {
	s := effect{ID: e.ID, Name: e.Name, Source: e.Source, Key: e.Key, Step: e.Step, State: string(e.State), Tries: e.Tries, Deaths: e.Deaths,
		Enqueued: e.EnqueuedAt, Error: e.LastError, Idempotency: e.IdempotencyKey()}
	if !e.Due.IsZero() {
		s.Due = &e.Due
	}
	if !e.Lease.IsZero() {
		s.Lease = &e.Lease
	}
	return s
}

// Address is that of its page.
func (e effect) Address() string {
	return frame.Query("/effect", "id", strconv.FormatInt(e.ID, 10))
}

// ClaimAddress is that of the claim that asked for it. Empty: it has none with a key.
func (e effect) ClaimAddress() string {
	if e.Key == "" {
		return ""
	}
	return claim{Source: e.Source, Key: e.Key}.Address()
}

// outboxView is a part of the outbox.
type outboxView struct {
	Counts  []effectCount `json:"counts"`
	Dead    bool          `json:"dead"` // those that were given up are listed, and not those to come
	Name    string        `json:"name,omitempty"`
	Effects []effect      `json:"effects"`
	NextURL string        `json:"next,omitempty"`
	Further bool          `json:"-"`
}

func (d *dashboard) outbox(r *http.Request) (*frame.Page, error) {
	f := r.URL.Query()
	v := outboxView{Name: f.Get("name"), Dead: f.Get("show") == "dead", Effects: []effect{}}
	counts, err := d.countEffects(r.Context())
	if err != nil {
		return nil, err
	}
	v.Counts = counts
	q := hookonce.EffectQuery{Name: v.Name, Dead: v.Dead, Limit: pageSize + 1}
	if id, err := strconv.ParseInt(f.Get("after"), 10, 64); err == nil {
		v.Further = true
		micros, _ := strconv.ParseInt(f.Get("after_due"), 10, 64) // needed for those to come alone
		q.After = &hookonce.QueuedEffect{ID: id, Effect: hookonce.Effect{Name: f.Get("after_name"), Due: time.UnixMicro(micros)}}
	}
	found, err := d.store.ListEffects(r.Context(), q)
	if err != nil {
		return nil, err
	}
	for _, e := range found[:min(pageSize, len(found))] {
		v.Effects = append(v.Effects, d.shownEffect(e))
	}
	if len(found) > pageSize {
		last := found[pageSize-1]
		due := last.Due
		if last.State == hookonce.StateProcessing {
			due = last.Lease
		}
		v.NextURL = frame.Query("/outbox", "show", f.Get("show"), "name", v.Name, "after", strconv.FormatInt(last.ID, 10), "after_name", last.Name,
			"after_due", strconv.FormatInt(due.UnixMicro(), 10))
	}
	return &frame.Page{Title: "Outbox", Place: "/outbox", Again: 10, Data: v, Commands: []frame.Command{
		{"List those that were given up", "hookonce relay list --store DSN"}, {"Try all of them again", "hookonce relay redrive --all-dead --store DSN"},
	}}, nil
}

func (d *dashboard) effect(r *http.Request) (*frame.Page, error) {
	e, err := d.effectOf(r, r.URL.Query().Get("id"))
	if err != nil {
		return nil, err
	}
	v := struct {
		effect
		MayRedrive bool `json:"-"`
	}{d.shownEffect(e), d.admin != nil && e.State == hookonce.StateDead}
	return &frame.Page{Title: "Effect " + strconv.FormatInt(e.ID, 10), Place: "/outbox", Again: 10, Data: v, Commands: []frame.Command{
		{"Try it again", "hookonce relay redrive " + strconv.FormatInt(e.ID, 10) + " --store DSN"},
	}}, nil
}

func (d *dashboard) effectOf(r *http.Request, text string) (e hookonce.QueuedEffect, err error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err == nil && id > 0 {
		found, err := d.store.ListEffects(r.Context(), hookonce.EffectQuery{ID: id, Limit: 1})
		if err != nil {
			return e, err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return e, refuse(http.StatusNotFound, "there is no such effect, or not any more")
}

// redrive has a dead effect carried out again.
func (d *dashboard) redrive(r *http.Request, reason string) (*change, error) {
	e, err := d.effectOf(r, r.PostFormValue("id"))
	if err != nil {
		return nil, err
	}
	alive := refuse(http.StatusConflict, "the effect is not dead any more")
	switch {
	case d.admin == nil:
		return nil, refuse(http.StatusConflict, "this store has no outbox that can be looked after")
	case e.State != hookonce.StateDead:
		return nil, alive
	}
	what := "effect " + strconv.FormatInt(e.ID, 10) + ", " + e.Name
	if e.Key != "" {
		what += ", of " + of(e.Ref)
	}
	return &change{Change{By: d.visitor(r).Name, Reason: reason, Action: Redrive, What: what}, func(ctx context.Context) error {
		err := d.admin.RedriveEffect(ctx, e.ID)
		if errors.Is(err, hookonce.ErrStale) || errors.Is(err, hookonce.ErrNotFound) {
			return alive
		}
		return err
	}, d.shownEffect(e).Address()}, nil
}
