package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/cmd/hookonce/internal/hammer"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/signer"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// hammerOptions are what the command line says.
type hammerOptions struct {
	signing
	copies    int
	rounds    int
	timeout   time.Duration
	expectSQL string
	dsn       string
	wait      time.Duration
	settle    time.Duration
	seed      uint64
	json      bool
	hmac      hmacOptions
}

// hmacOptions describe a sender that is not in the catalogue.
type hmacOptions struct{ header, encoding, digest, prefix, key string }

const hammerHelp = `Hammer sends one signed event many times at the same instant to any endpoint, and
says whether it took effect once.

Every round makes a fresh event, opens a connection for each copy, sends all of
every request but its last byte, and then the last bytes together: the copies
arrive at one instant, which is what duplicate checks break under.

With several URLs, the doors of one endpoint (several processes, regions or cells),
the copies of each event go to random ones of them at the same instant. The report
says what each door answered; a copy that was new at two doors is a doubled event,
and a door that acknowledges nothing fails.

Answers alone cannot prove what happened behind them. With --expect-sql, hammer
counts the effect in your database before and after each round; it must rise by
exactly one. {{key}} in the statement stands for the event's key.

The exit status is 0 when every event took effect once (or, without --expect-sql,
when no answer contradicts that), 1 when one was doubled, lost, or never
acknowledged, when a door acknowledged nothing, or when hammer could not go on after
the first event was sent (a door went away, Ctrl-C): the report then has what was
found until then. It is 2 when nothing could be sent as asked. Where nothing tells a
copy from another event (dropbox, mollie-classic), copies may take effect each.

Only hammer endpoints that you own: it writes test events into them.`

const hammerExample = `  hookonce hammer http://127.0.0.1:3000/webhooks/stripe --provider stripe --secret env:STRIPE_WEBHOOK_SECRET
  hookonce hammer http://127.0.0.1:8080/in/billing --provider stripe --secret whsec_example \
      --dsn postgres://app@localhost/app \
      --expect-sql "SELECT count(*) FROM payments WHERE event_id = {{key}}"
  hookonce hammer https://staging.example.com/hooks --provider github --secret file:secret.txt --body push.json
  hookonce hammer https://eu.example.com/in/billing https://us.example.com/in/billing \
      --provider stripe --secret env:STRIPE_WEBHOOK_SECRET --copies 50 --rounds 100`

func newHammerCommand(w *env) *cobra.Command {
	var o hammerOptions
	c := &cobra.Command{
		Use:     "hammer URL... [flags]",
		Short:   "Fire the same signed event many times at once, at any endpoint",
		Long:    hammerHelp,
		Example: hammerExample,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{c.CommandPath(), errors.New("the URL is missing")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(len(args)); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			h, err := o.hammer(w, args)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return o.run(c.Context(), w, h)
		},
	}
	o.declare(c.Flags())
	return c
}

func (o *hammerOptions) declare(f *pflag.FlagSet) {
	f.SortFlags = false
	o.signing.declare(f)
	f.IntVar(&o.copies, "copies", 25, "`number` of copies of each event, all at once")
	f.IntVar(&o.rounds, "rounds", 4, "`number` of rounds, each with a fresh event")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "longest `time` to wait for the answers of a round")
	f.StringVar(&o.expectSQL, "expect-sql", "", "`statement` that counts the effect; {{key}} is the event's key")
	f.StringVar(&o.dsn, "dsn", "", "`database` to run it in: postgres://user@host/db or sqlite:PATH")
	f.DurationVar(&o.wait, "wait", 10*time.Second, "longest `time` for an effect to appear")
	f.DurationVar(&o.settle, "settle", 500*time.Millisecond, "`time` to watch for a second effect after the first")
	f.Uint64Var(&o.seed, "seed", 0, "`number` that the event ids follow from; a random one if not set")
	f.BoolVar(&o.json, "json", false, "write the report as JSON")
	f.StringVar(&o.hmac.header, "hmac-header", "", "provider hmac: `name` of the header that carries the signature")
	f.StringVar(&o.hmac.encoding, "hmac-encoding", "", "provider hmac: `form` of the signature, hex or base64")
	f.StringVar(&o.hmac.digest, "hmac-digest", "", "provider hmac: `hash` sha256, sha1 or sha512")
	f.StringVar(&o.hmac.prefix, "hmac-prefix", "", "provider hmac: `text` before the signature")
	f.StringVar(&o.hmac.key, "hmac-key", "", "provider hmac: `place` of the event's key, json:$.id or header:NAME")
}

func (o *hammerOptions) run(ctx context.Context, w *env, h *hammer.Hammer) (err error) {
	ctx, stop := untilSignal(ctx, w, nil, nil)
	defer stop()
	if o.expectSQL != "" {
		if h.Effect, err = hammer.OpenEffect(ctx, o.dsn, o.expectSQL); err != nil {
			return &unaskedError{err}
		}
		defer h.Effect.Close()
	}
	if !o.json {
		h.Watch = hammer.NewText(w.out, h)
	}
	report, err := h.Run(ctx)
	if err != nil {
		return &unaskedError{err}
	}
	if o.json {
		enc := json.NewEncoder(w.out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(report); err != nil {
			return err
		}
	} else {
		h.Watch.Finish(report)
	}
	return report.Failure()
}

// hammer turns the options into what run needs. Its errors are mistakes of whoever asks.
func (o *hammerOptions) hammer(w *env, urls []string) (*hammer.Hammer, error) {
	var from []*signer.Signer
	for _, url := range urls {
		s, err := o.signer(w, url)
		if err != nil {
			return nil, err
		}
		from = append(from, s)
	}
	seed := o.seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &hammer.Hammer{
		Signers: from, Seed: seed,
		Copies: o.copies, Rounds: o.rounds, Timeout: o.timeout, Wait: o.wait, Settle: o.settle,
	}, nil
}

// signer builds the maker of signed requests.
func (o *hammerOptions) signer(w *env, url string) (*signer.Signer, error) {
	if o.provider == "hmac" {
		return o.signerOf(w, o.hmac.spec(), url)
	}
	if o.hmac != (hmacOptions{}) {
		return nil, errors.New("the --hmac flags are for --provider hmac")
	}
	return o.signing.signer(w, url)
}

func (o hmacOptions) spec() spec.Spec {
	c := provider.HMACConfig{
		Header: o.header, Prefix: o.prefix,
		Hash: spec.Hash(o.digest), Encoding: spec.Encoding(o.encoding),
	}
	if o.key != "" {
		c.Key = []spec.Value{spec.Value(o.key)}
	}
	return c.Spec()
}

func (o *hammerOptions) check(urls int) error {
	switch {
	case o.copies < 1 || o.copies > 10_000:
		return fmt.Errorf("--copies is %d; it must be from 1 to 10000", o.copies)
	case o.copies < urls:
		return fmt.Errorf("--copies is %d, and there are %d URLs; each needs a copy", o.copies, urls)
	case o.rounds < 1:
		return fmt.Errorf("--rounds is %d; it must be at least 1", o.rounds)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout is %v; it must be more than 0", o.timeout)
	case o.expectSQL != "" && o.dsn == "":
		return errors.New("--expect-sql needs --dsn, the database to run it in: postgres://user@host/db or sqlite:PATH")
	case o.expectSQL == "" && o.dsn != "":
		return errors.New("--dsn needs --expect-sql, the statement that counts the effect")
	}
	return nil
}
