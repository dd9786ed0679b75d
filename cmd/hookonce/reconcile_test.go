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
		err := claims{crowded{sources: n}}.renamed(t.Context(), "billing", missing)
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "--really") {
			t.Errorf("with %d sources: %v, want %v", n, err, want)
		}
	}
}
