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

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
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

The exit status is 0 only if no order was booked twice and none is missing.

With --naive there is no gateway, and the shop checks for duplicates the way
everybody does it first: look, remember, act. The exit status is then 0 if the
same storm shows the fault, which it nearly always does.

Everything is made in a temporary folder and removed at the end. --store runs it
on your PostgreSQL instead, in a schema of its own that is dropped at the end.`

// demoPatience bounds everything that the demo waits for.
const demoPatience = 20 * time.Second

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
			ctx, stop := untilSignal(c.Context(), w)
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
	for _, c := range d.chapters {
		if err := d.chapter(ctx, c); err != nil {
			return errors.Join(err, d.tearDown(ctx))
		}
	}
	if err := d.tearDown(ctx); err != nil {
		return err
	}
	total, err := d.count(ctx, d.chapters...) // again, now that nothing can come any more
	if err != nil {
		return err
	}
	d.board.finish(d, total, time.Since(start))
	return d.verdict(total)
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
		err = d.settle(ctx, c)
	}
	stop()
	if err != nil {
		return fmt.Errorf("%s: %w", c.title, err)
	}
	t, err := d.count(ctx, c)
	if err != nil {
		return err
	}
	d.board.row(c.title, t)
	return nil
}

// settle waits until every event of the chapter has its effect and its troubles are over, and returns
// without complaint when patience is over: the count tells. The naive shop is at work only while it
// answers.
func (d *demo) settle(ctx context.Context, c *chapter) error {
	deadline := time.Now().Add(demoPatience / 2)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for time.Now().Before(deadline) {
		if d.shop.busy.Load() == 0 && (d.naive || c.recovered()) {
			if t, err := d.count(ctx, c); err != nil || t.lost == 0 || d.naive {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// verdict is the error that the command ends with.
func (d *demo) verdict(t tally) error {
	switch bad := t.doubled + t.lost; {
	case d.naive && bad == 0:
		return errors.New("the naive shop was lucky this time; run it again, or with another --seed")
	case !d.naive && bad > 0:
		return fmt.Errorf("%d orders were booked twice and %d are missing: this is a bug in hookonce, please report it with the seed %d", t.doubled, t.lost, d.seed)
	}
	return nil
}
