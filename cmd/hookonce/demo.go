package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/cmd/hookonce/internal/demo"
	"github.com/hookonce/hookonce/internal/settings"
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

func newDemoCommand(w *env) *cobra.Command {
	o := demo.Options{Scale: 1, Out: w.out, Ask: func(ctx context.Context, url, path string, out any) error {
		return newAdminClient(url, "").get(ctx, path, nil, out)
	}}
	c := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Run a provider at its worst against a small shop, and check the ledger",
		Long:  demoHelp,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(c.Context(), w, nil, nil)
			defer stop()
			o.Live = isTerminal(w.out)
			o.Color = o.Live && settings.Lookup(w.environ, "NO_COLOR") == ""
			return demo.Run(ctx, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Store, "store", "", "`database` to use: postgres://user@host/db (default: SQLite in a temporary folder)")
	f.BoolVar(&o.Naive, "naive", false, "let the shop check for duplicates by looking first, without hookonce")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that the events and the faults follow from")
	return c
}
