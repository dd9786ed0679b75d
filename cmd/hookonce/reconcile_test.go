package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/reconcile"
)

// A comparison succeeds if all that was asked for was compared and nothing is missing any more, also of what has no key.
func TestMissingEventsAreAFailure(t *testing.T) {
	asked := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		report reconcile.Report
		fails  bool
	}{
		"nothing is missing":            {reconcile.Report{Listed: 7, Known: 7}, false},
		"one is missing":                {reconcile.Report{Listed: 7, Known: 6, Missing: 1}, true},
		"all are sent again, or stored": {reconcile.Report{Missing: 6, Redelivered: 3, Stored: 2, Arrived: 1}, false},
		"one could not be":              {reconcile.Report{Missing: 6, Redelivered: 3, Stored: 2, Failed: 1}, true},
		"one is held":                   {reconcile.Report{Missing: 1, Held: 1}, true},
		"one is another cell's":         {reconcile.Report{Missing: 1, Elsewhere: 1}, true},
		"one without a key is lost":     {reconcile.Report{Listed: 1, Unkeyed: 1, Undelivered: make([]reconcile.Missing, 1)}, true},
		"it is sent again":              {reconcile.Report{Listed: 1, Unkeyed: 1, Undelivered: make([]reconcile.Missing, 1), Redelivered: 1}, false},
		"the list begins later":         {reconcile.Report{Listed: 7, Known: 7, Cut: true, Since: asked.Add(time.Hour)}, true},
		"or is empty":                   {reconcile.Report{Cut: true, Since: asked.Add(time.Hour)}, true},
		"it begins a moment later":      {reconcile.Report{Listed: 7, Known: 7, Cut: true, Since: asked.Add(time.Second)}, false},
	} {
		var out bytes.Buffer
		w := &env{out: &out, err: &out}
		err := tellReconciled(t.Context(), w, asked, false, func(func(reconcile.Progress)) (*reconcile.Report, error) { return &c.report, nil })
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// crowded is a store with so many sources.
type crowded struct {
	hookonce.Inspector
	sources int
}

func (c crowded) Sources(context.Context) (all []string, err error) {
	for i := range c.sources {
		all = append(all, fmt.Sprint("source_", i))
	}
	return all, nil
}

func (crowded) FindClaims(context.Context, string, []string) ([]hookonce.Claim, error) {
	return nil, nil
}

// Where there may be more sources than are looked through, nobody knows whether one of them has what is missing.
func TestTooManySourcesToLookThrough(t *testing.T) {
	missing := []reconcile.Missing{{Key: "evt_1"}}
	for n, want := range map[int]error{hookonce.MaxSources - 1: nil, hookonce.MaxSources: gateway.ErrRenamed} {
		_, err := claims{crowded{sources: n}}.underOthers(t.Context(), "billing", missing)
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "--really") {
			t.Errorf("with %d sources: %v, want %v", n, err, want)
		}
	}
}

// renamed is a store whose source billing has had the name old in between.
type renamed struct {
	hookonce.Inspector
	first time.Time // claim of billing
	old   hookonce.Claim
}

func (renamed) Sources(context.Context) ([]string, error) {
	return []string{"billing", "old", "once:x"}, nil
}

func (r renamed) FindClaims(_ context.Context, source string, _ []string) ([]hookonce.Claim, error) {
	if source == "old" {
		return []hookonce.Claim{r.old}, nil
	}
	return nil, nil
}

func (r renamed) ListClaims(_ context.Context, q hookonce.ClaimQuery) ([]hookonce.Claim, error) {
	if q.Until.Before(r.first) {
		return nil, nil
	}
	return make([]hookonce.Claim, 1), nil
}

// What is claimed under a name that the source has had in between is held, and nothing else is; where the source had nothing yet, all is
// refused.
func TestClaimedUnderAnotherName(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	missing := []reconcile.Missing{{Key: "evt_1"}, {Key: "evt_2"}}
	for name, c := range map[string]struct {
		first time.Time
		want  error
	}{"in between": {at.Add(-time.Hour), nil}, "before": {at.Add(time.Hour), gateway.ErrRenamed}} {
		store := renamed{first: c.first, old: hookonce.Claim{Ref: hookonce.Ref{Source: "old", Key: "evt_1"}, FirstSeen: at}}
		held, err := claims{store}.underOthers(t.Context(), "billing", missing)
		if !errors.Is(err, c.want) || len(held) != 1 || held["evt_1"] != "claimed under old, first at 2026-11-21T12:00:00Z" {
			t.Errorf("%s: held is %q, %v, want %v", name, held, err, c.want)
		}
	}
}

// The report says beside each event why nothing was done about it, and gives no other reason for all.
func TestHeldForItsReason(t *testing.T) {
	var out bytes.Buffer
	events := []reconcile.Missing{{Key: "evt_1", Outcome: reconcile.Held, Why: "nobody knows when it was made"}}
	printReconciled(&env{out: &out}, &reconcile.Report{Listed: 1, Missing: 1, Held: 1, Events: events}, false)
	if !strings.Contains(out.String(), "held nobody knows when it was made") || strings.Contains(out.String(), "another source") {
		t.Errorf("it says\n%s", &out)
	}
}
