// Package demo runs a webhook provider at its worst against a small shop, with the gateway between them or without
// it, and checks the shop's ledger. It is behind the command demo.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/traffic"
	"github.com/hookonce/hookonce/provider"
)

// How long the demo waits: for its servers to start and stop, for the gateway to be done with a chapter, before
// the next one plays, and for it to be done with everything.
const (
	demoPatience    = 20 * time.Second
	chapterPatience = 30 * time.Second
	finalPatience   = 2 * time.Minute
)

// Options say what is played, and how it is shown.
type Options struct {
	// Store is the database to use, as a setting store names one; empty: SQLite in a temporary folder.
	Store string
	// Naive leaves the gateway out, and has the shop check for duplicates by looking first.
	Naive bool
	// Seed is what events and faults follow from.
	Seed uint64
	// Scale multiplies the number of events; 1 but in tests.
	Scale float64
	// Out is where the demo is shown. Live says that it is a terminal, whose rows may count along, and Color that it
	// may be coloured.
	Out         io.Writer
	Live, Color bool
	// Ask reads what is at a path of the admin API, of the gateway whose admin listener has that URL.
	Ask func(ctx context.Context, url, path string, out any) error
}

// Run plays the demo and removes what it made. It fails when an order was booked twice or is missing, and with
// Naive when none was. The end of ctx interrupts it.
func Run(ctx context.Context, o Options) (err error) {
	stage, err := openStage(ctx, o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	d := &demo{stage: stage, naive: o.Naive, seed: o.Seed, progress: &progress{out: o.Out, live: o.Live, color: o.Color}, ask: o.Ask}
	d.chapters = chapters(rand.New(rand.NewPCG(o.Seed, 0)), o.Seed, o.Scale)
	return d.play(ctx)
}

// demo is one performance: a provider, perhaps a gateway, a shop, and what shows them.
type demo struct {
	*stage
	naive    bool
	seed     uint64
	progress *progress
	chapters []*chapter
	shop     *shop
	gateway  *gateway.Gateway // nil when naive
	ask      func(ctx context.Context, url, path string, out any) error
	sender   *sender
}

// demoSecret signs the demo's events. It is no secret: both ends are in this program.
const demoSecret = "whsec_ZGVtbyBzZWNyZXQsIG5vdCBhIHNlY3JldA=="

func (d *demo) play(ctx context.Context) error {
	start := time.Now()
	if err := d.setUp(ctx); err != nil {
		return errors.Join(err, d.tearDown(ctx))
	}
	d.progress.open(d)
	late, err := d.performance(ctx)
	if err != nil {
		return errors.Join(err, d.tearDown(ctx))
	}
	if err := d.tearDown(ctx); err != nil {
		return err
	}
	total, err := d.count(ctx, late, d.chapters...) // again, now that nothing can come any more
	if err != nil {
		return err
	}
	d.progress.finish(d, total, time.Since(start))
	return d.verdict(total)
}

// performance plays the chapters, waits until the gateway is done with all of them, and returns the events for
// which that was too short.
func (d *demo) performance(ctx context.Context) (late map[string]bool, err error) {
	for _, c := range d.chapters {
		if err := d.chapter(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := d.settle(ctx, finalPatience); err != nil {
		return nil, err
	}
	return d.late(ctx, d.chapters...)
}

func (d *demo) setUp(ctx context.Context) error {
	var err error
	if d.shop, err = openShop(ctx, d.stage, d.naive, d.chapters); err != nil {
		return err
	}
	address := d.shop.url
	if !d.naive {
		if d.gateway, err = gateway.Start(ctx, d.gatewayConfig(address), gateway.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
			return err
		}
		address = "http://" + d.gateway.Addr().String() + "/in/shop"
	}
	target, err := traffic.ParseTarget(address)
	if err != nil {
		return err
	}
	d.sender = &sender{target: target, url: address, provider: provider.Standard(demoSecret), random: rand.New(rand.NewPCG(d.seed, 1))}
	return nil
}

// gatewayConfig is what hookonce.yaml would say. Retries come quickly, so that the demo ends before
// its audience leaves.
func (d *demo) gatewayConfig(shop string) *config.Config {
	c := config.Default()
	c.Listen, c.Admin = "127.0.0.1:0", "127.0.0.1:0"
	c.Store, c.Schema, c.Migrate = d.journal, cmp.Or(d.schema, c.Schema), true
	c.Delivery.Timeout = slowShop / 2
	c.Delivery.Backoff, c.Delivery.BackoffMax = 100*time.Millisecond, 500*time.Millisecond
	c.Delivery.Attempts = 10_000 // the shop may be slow for as long as the machine is
	s := config.DefaultSource()
	s.Name, s.Provider, s.To = "shop", "standard", shop
	s.Secrets = []settings.Secret{settings.Literal(demoSecret)}
	c.Sources = []config.Source{s}
	return c
}

// tearDown stops the gateway, which finishes its deliveries, and then the shop.
func (d *demo) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoPatience)
	defer cancel()
	var errs []error
	if d.gateway != nil {
		errs = append(errs, d.gateway.Close(ctx))
	}
	if d.shop != nil {
		errs = append(errs, d.shop.close(ctx))
	}
	return errors.Join(errs...)
}

// chapter plays one chapter and waits for the effects of its events.
func (d *demo) chapter(ctx context.Context, c *chapter) error {
	stop := d.progress.begin(c, d.shop)
	err := d.sender.play(ctx, c)
	if err == nil {
		err = d.settle(ctx, chapterPatience)
	}
	stop()
	if err != nil {
		return fmt.Errorf("%s: %w", c.title, err)
	}
	late, err := d.late(ctx, c)
	if err != nil {
		return err
	}
	t, err := d.count(ctx, late, c)
	if err != nil {
		return err
	}
	d.progress.row(c.title, t)
	return nil
}

// settle waits until nothing is under way any more: the shop is at rest, and the journal has no open delivery.
// It returns without complaint when patience is over: the count tells. The naive shop is at work only while it
// answers.
func (d *demo) settle(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if d.shop.busy.Load() == 0 && d.delivered(ctx) {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// delivered reports whether the gateway says that it has nothing left to deliver. One that is too busy to answer
// has not said so.
func (d *demo) delivered(ctx context.Context) bool {
	if d.naive {
		return true
	}
	var s api.Stats
	err := d.get(ctx, "/stats", &s)
	return err == nil && s.Pending+s.Processing+s.Failed == 0
}

// get asks the gateway's admin API.
func (d *demo) get(ctx context.Context, path string, out any) error {
	return d.ask(ctx, "http://"+d.gateway.AdminAddr().String(), path, out)
}

// late returns the events without an effect that the gateway still means to deliver. What it has done by then,
// the ledger has as well.
func (d *demo) late(ctx context.Context, chapters ...*chapter) (map[string]bool, error) {
	late := map[string]bool{}
	entries, _, err := d.entries(ctx)
	if err != nil || d.naive {
		return late, err
	}
	for _, c := range chapters {
		for _, s := range c.events {
			if entries[s.id] == 0 {
				var e api.Detail
				err := d.get(ctx, "/events/shop/"+s.id, &e)
				late[s.id] = err == nil && e.State != string(journal.Done) && e.State != string(journal.Dead)
			}
		}
	}
	return late, nil
}

// verdict is the error that the command ends with.
func (d *demo) verdict(t tally) error {
	switch bad := t.doubled + t.lost; {
	case d.naive && bad == 0:
		return errors.New("the naive shop was lucky this time; run it again, or with another --seed")
	case !d.naive && bad == 0 && t.late > 0:
		return fmt.Errorf("%d orders were not booked yet when the demo ended; they are on record and none is lost: this machine is too busy for the demo, run it again", t.late)
	case !d.naive && bad > 0:
		return fmt.Errorf("%d orders were booked twice and %d are missing: this is a bug in hookonce, please report it with the seed %d", t.doubled, t.lost, d.seed)
	}
	return nil
}
