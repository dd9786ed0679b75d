package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/storm"
	"github.com/hookonce/hookonce/provider"
)

const demoHelp = `Demo runs a webhook provider on a bad day against a small shop, on this machine,
and then checks the shop's ledger.

The provider signs every event, sends copies at one instant, loses
acknowledgements, gives up early, retries, repeats itself later and delivers out
of order. The shop answers 500, is slow, or commits and then drops the
connection. Between them runs the gateway that "hookonce serve" runs, and the
shop books every order through the library: the ledger entry commits together
with the claim. The ledger itself has no unique index; nothing else would stop a
second booking.

The exit status is 0 only if no order was booked twice and none is missing. On a
machine that is very busy an order may still be on its way after two minutes: it
is counted apart, because it is late and not lost.

With --naive there is no gateway, and the shop checks for duplicates the way
everybody does it first: look, remember, act. The exit status is then 0 if the
same storm shows the fault, which it nearly always does.

Everything is made in a temporary folder and removed at the end. --store runs it
on your PostgreSQL instead, in a schema of its own that is dropped at the end.`

// How long the demo waits: for its servers to start and stop, for the gateway to be done with a chapter, before
// the next one plays, and for it to be done with everything.
const (
	demoPatience    = 20 * time.Second
	chapterPatience = 30 * time.Second
	finalPatience   = 2 * time.Minute
)

// demoOptions are what the command line says.
type demoOptions struct {
	store string
	naive bool
	seed  uint64
	scale float64 // of the number of events; 1 but in tests
}

func newDemoCommand(w *world) *cobra.Command {
	o := demoOptions{scale: 1}
	c := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Run a provider at its worst against a small shop, and check the ledger",
		Long:  demoHelp,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(c.Context(), w, nil)
			defer stop()
			return o.run(ctx, w)
		},
	}
	f := c.Flags()
	f.StringVar(&o.store, "store", "", "`database` to use: postgres://user@host/db (default: SQLite in a temporary folder)")
	f.BoolVar(&o.naive, "naive", false, "let the shop check for duplicates by looking first, without hookonce")
	f.Uint64Var(&o.seed, "seed", 1, "`number` that the events and the faults follow from")
	return c
}

func (o demoOptions) run(ctx context.Context, w *world) (err error) {
	stage, err := openStage(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	d := &demo{stage: stage, naive: o.naive, seed: o.seed, board: newBoard(w)}
	d.chapters = chapters(rand.New(rand.NewPCG(o.seed, 0)), o.seed, o.scale)
	return d.play(ctx)
}

// demo is one performance: a provider, perhaps a gateway, a shop, and a board that shows them.
type demo struct {
	*stage
	naive    bool
	seed     uint64
	board    *board
	chapters []*chapter
	shop     *shop
	gateway  *gateway.Gateway // nil when naive
	admin    *adminClient     // of the gateway
	sender   *sender
}

// demoSecret signs the demo's events. It is no secret: both ends are in this program.
const demoSecret = "whsec_ZGVtbyBzZWNyZXQsIG5vdCBhIHNlY3JldA=="

func (d *demo) play(ctx context.Context) error {
	start := time.Now()
	if err := d.setUp(ctx); err != nil {
		return errors.Join(err, d.tearDown(ctx))
	}
	d.board.open(d)
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
	d.board.finish(d, total, time.Since(start))
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
		d.admin = newAdminClient("http://"+d.gateway.AdminAddr().String(), "")
	}
	target, err := storm.ParseTarget(address)
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
	s.Secrets = []config.Secret{config.LiteralSecret(demoSecret)}
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
	stop := d.board.begin(c, d.shop)
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
	d.board.row(c.title, t)
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
	err := d.admin.get(ctx, "/stats", nil, &s)
	return err == nil && s.Pending+s.Processing+s.Failed == 0
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
				err := d.admin.get(ctx, "/events/shop/"+segment(s.id), nil, &e)
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
