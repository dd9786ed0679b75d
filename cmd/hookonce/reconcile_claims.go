package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/outbox"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/provider/spec"
)

// claimsOf says how a sender's list is compared with the claims of a program that uses the library, without a gateway.
type claimsOf struct {
	provider, spec, token string
	with, types           []string
	lag, remembered       string
}

func (o *claimsOf) declare(f *pflag.FlagSet) {
	f.StringVar(&o.provider, "provider", "", "compare with the library's claims in --store, as the catalogue's provider of this `name` lists")
	f.StringVar(&o.spec, "spec", "", "or as the specification in this `file` says")
	f.StringVar(&o.token, "token", "", "with --provider: token of the sender's API, as a `reference`: env:NAME or file:PATH")
	f.StringArrayVar(&o.with, "with", nil, "with --provider: what else that API needs to know, `NAME=VALUE`; 'hookonce providers show' says what; repeatable")
	f.StringArrayVar(&o.types, "type", nil, "with --provider: `pattern` for the types that the webhook is subscribed to; repeatable")
	f.StringVar(&o.lag, "lag", settings.ShowDuration(reconcile.DefaultLag), "with --provider: `time` after which an event that did not arrive is missing")
	f.StringVar(&o.remembered, "remembered", settings.ShowDuration(janitor.DefaultEvents), "with --provider: `time` for which the program keeps claims of what is done, as its janitor is set")
}

// claimsFlags are those of them that mean nothing without the first two.
var claimsFlags = []string{"token", "with", "type", "lag", "remembered"}

func (o *claimsOf) chosen() bool { return o.provider != "" || o.spec != "" }

// unused refuses flags that only count for claims: a source of a gateway has them in its configuration.
func (o *claimsOf) unused(f *pflag.FlagSet) error {
	for _, name := range claimsFlags {
		if f.Changed(name) {
			return fmt.Errorf("--%s goes with --provider, for a program that uses the library; for a source of a gateway it stands in the configuration, under reconcile", name)
		}
	}
	return nil
}

// run compares. Its results are those of a gateway's source.
func (o *claimsOf) run(w *env, c *cobra.Command, ask *gateway.Comparison, asJSON bool) error {
	opts, err := o.read(w, ask)
	if err != nil {
		return &usageError{c.CommandPath(), err}
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	cfg, err := loadStoreConfig(w, c.Flags())
	if err != nil {
		return err
	}
	store, end, err := outbox.Open(ctx, cfg)
	if err != nil {
		return gateway.Explain(cfg.Store, err)
	}
	defer end()
	opts.Ledger, opts.Log = claims{store}, newLogger(w, cfg, cfg.LogLevel)
	if !ask.Really {
		opts.Hold = func(ctx context.Context, missing []reconcile.Missing) (map[string]string, error) {
			return claims{store}.underOthers(ctx, ask.Source, missing)
		}
	}
	return tellReconciled(ctx, w, ask.Since, asJSON, func(show func(reconcile.Progress)) (*reconcile.Report, error) {
		opts.Progress = show
		return reconcile.Run(ctx, opts)
	})
}

// read returns what the flags say, or which of them is wrong.
func (o *claimsOf) read(w *env, ask *gateway.Comparison) (opts reconcile.Options, err error) {
	known, err := specification(o.provider, o.spec)
	if err != nil {
		return opts, err
	}
	opts = reconcile.Options{Source: ask.Source, Since: ask.Since, Until: ask.Until, Types: o.types, Redeliver: ask.Redeliver, With: map[string]string{}}
	if err := settings.Duration(&opts.Lag, 0, 7*settings.Day).Set(o.lag); err != nil {
		return opts, fmt.Errorf("--lag: %w", err)
	}
	if opts.Lag == 0 {
		opts.Lag = -1 // none, and not the default
	}
	if err := settings.Duration(&opts.Remembered, time.Hour, 100*365*settings.Day).Set(o.remembered); err != nil {
		return opts, fmt.Errorf("--remembered: %w", err)
	}
	list := known.Reconcile
	switch {
	case list == nil:
		return opts, fmt.Errorf("--provider: no API of %s is known that lists its events; compare its objects with yours instead, by the time of their last change", known.Title)
	case ask.Ingest:
		return opts, errors.New("--ingest: nobody but the program can carry out the effect, in the transaction that claims the event; have the sender send it again (--redeliver, or its own pages), or run your handler with what --json lists")
	case ask.Redeliver && list.Redeliver == nil:
		return opts, fmt.Errorf("--redeliver: %s documents no API that sends an event again; use its own pages, or run your handler with what --json lists", known.Title)
	case o.token == "":
		return opts, errors.New("--token is missing: write env:NAME or file:PATH; 'hookonce providers show' says which right it needs")
	case !strings.HasPrefix(o.token, "env:") && !strings.HasPrefix(o.token, "file:"):
		return opts, errors.New("--token: write env:NAME or file:PATH, not the token itself")
	case ask.Since.Before(time.Now().Add(-opts.Remembered)):
		return opts, fmt.Errorf("--since: claims of what is done are kept for %s (--remembered), so that what came before cannot be told from what never arrived; ask for less", o.remembered)
	}
	for _, pair := range o.with {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return opts, errors.New("--with: write NAME=VALUE, such as hook=123")
		}
		opts.With[name] = value
	}
	if err := list.CheckSettings(opts.With); err != nil {
		return opts, fmt.Errorf("--with: %w", err)
	}
	if opts.Token, err = dereference(w, o.token); err != nil {
		return opts, fmt.Errorf("--token: %w", err)
	}
	opts.Provider, err = spec.NewListed(known)
	return opts, err
}

// claims are what a program has on record.
type claims struct{ store hookonce.Inspector }

// Known implements [reconcile.Ledger].
func (c claims) Known(ctx context.Context, source string, keys []string) (map[string]reconcile.Known, error) {
	found, err := c.store.FindClaims(ctx, source, keys)
	if err != nil {
		return nil, err
	}
	known := make(map[string]reconcile.Known, len(found))
	for i := range found {
		one := &found[i]
		k := reconcile.Known{Received: one.FirstSeen, Status: string(one.State), Unfinished: one.State != hookonce.StateDone, Error: one.LastError}
		if one.State == hookonce.StateProcessing && !one.Lease.IsZero() && one.Lease.Before(time.Now()) {
			k.Status += ", its lease has run out"
		}
		known[one.Key] = k
	}
	return known, nil
}

// underOthers says why nothing is to be sent again that is claimed under another source: under the name that this one has had, or has had
// in between, so that the effect would happen again. It refuses all where the other had it when this one had nothing yet: that is
// likely to be the same source under its old name.
func (c claims) underOthers(ctx context.Context, source string, missing []reconcile.Missing) (held map[string]string, err error) {
	sources, err := c.store.Sources(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for other sources: %w", err)
	}
	keys := make([]string, len(missing))
	for i := range missing {
		keys[i] = missing[i].Key
	}
	if len(sources) == hookonce.MaxSources {
		return nil, fmt.Errorf("%w: there are more sources than the %d that can be looked through for them; choose --since after the first event of %s, or else say --really", gateway.ErrRenamed, hookonce.MaxSources, source)
	}
	held = map[string]string{}
	for _, other := range sources {
		if other == source || strings.HasPrefix(other, "once:") {
			continue
		}
		found, err := c.store.FindClaims(ctx, other, keys)
		if err != nil {
			return held, fmt.Errorf("looking for them under %s: %w", other, err)
		}
		var last time.Time
		for j := range found {
			at := found[j].FirstSeen
			held[found[j].Key] = fmt.Sprintf("claimed under %s, first at %s", other, at.UTC().Format(time.RFC3339))
			if at.After(last) {
				last = at
			}
		}
		if len(found) == 0 {
			continue
		}
		all := []hookonce.State{hookonce.StateDone, hookonce.StateFailed, hookonce.StateDead, hookonce.StateProcessing}
		before, err := c.store.ListClaims(ctx, hookonce.ClaimQuery{Source: source, States: all, Until: last, Limit: 1})
		if err != nil {
			return held, err
		}
		if len(before) == 0 {
			return held, fmt.Errorf("%w: %d of %d events that are missing at %s are claimed under %s, the last of them first at %s, and %s has no claim from before; if it is the same source under a new name, choose --since after that; else say --really",
				gateway.ErrRenamed, len(found), len(missing), source, other, last.UTC().Format(time.RFC3339), source)
		}
	}
	return held, nil
}
