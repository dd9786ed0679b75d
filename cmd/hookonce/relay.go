package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/outbox"
)

const relayHelp = `Relay takes the effects that applications stored with hookonce.Enqueue or the SQL function enqueue, and
posts each to the URL that its name is given, until the answer is 2xx: at least once, always under the
same Idempotency-Key. It runs until it receives SIGTERM or SIGINT, finishes what is under way, and hands
back the rest. Effects of other names are left alone, so several relays can share an outbox.

410 and the statuses of --permanent give an effect up; so does the last of the --attempts. What was given
up is listed by 'relay list', and tried again after 'relay revive'.

A URL can be env:NAME or file:PATH, because it may hold a secret. So must a secret of --secret, with which
requests are signed as Standard Webhooks describe it.`

const relayExample = `  hookonce relay --store postgres://app@localhost/shop --to mail.receipt=https://mailer.example/send
  hookonce relay --store sqlite:shop.db --to crm=env:CRM_URL --secret crm=env:CRM_SECRET --permanent 404
  hookonce relay list --store sqlite:shop.db
  hookonce relay revive --all-dead --store sqlite:shop.db`

// relaying is what the command line of relay says.
type relaying struct {
	outbox.Settings
	to, secrets []string
}

func newRelayCommand(w *world) *cobra.Command {
	r := relaying{Settings: outbox.Defaults()}
	c := &cobra.Command{
		Use:     "relay --to NAME=URL [flags]",
		Short:   "Carry out the effects in an outbox by posting them",
		Long:    relayHelp,
		Example: relayExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := r.check(w); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			cfg, err := loadStoreConfig(w, c.Flags())
			if err != nil {
				return err
			}
			return r.run(c.Context(), w, cfg)
		},
	}
	r.declare(c)
	c.AddCommand(newRelayListCommand(w), newRelayReviveCommand(w))
	return c
}

func (r *relaying) declare(c *cobra.Command) {
	storeFlags(c)
	fs := c.Flags()
	fs.StringArrayVar(&r.to, "to", nil, "post the effects of a name to a URL, as `NAME=URL`; may be repeated")
	fs.StringArrayVar(&r.secrets, "secret", nil, "sign what is posted for a name, as `NAME=env:VARIABLE` or NAME=file:PATH; repeated for one name while a secret is rotated")
	fs.IntSliceVar(&r.Permanent, "permanent", nil, "give effects up that are answered with this `status`, besides 410; may be repeated")
	fs.IntVar(&r.Concurrency, "concurrency", r.Concurrency, "post at most this `number` of effects at a time")
	fs.DurationVar(&r.Timeout, "timeout", r.Timeout, "how long to wait for an answer")
	fs.DurationVar(&r.Lease, "lease", r.Lease, "how long the effects of a relay that died are left alone")
	fs.IntVar(&r.Attempts, "attempts", r.Attempts, "try an effect at most this `number` of times")
	fs.DurationVar(&r.FirstWait, "first-wait", r.FirstWait, "how long to wait after the first failed attempt, or down to half of it; then three times as long, and so on")
	fs.DurationVar(&r.MaxWait, "max-wait", r.MaxWait, "how long to wait between two attempts at most")
}

// storeFlags declares what says where the outbox is.
func storeFlags(c *cobra.Command) {
	configFlag(c.Flags())
	config.StoreFlags(c.Flags())
}

// check reads what the command line refers to.
func (r *relaying) check(w *world) error {
	secrets, err := r.secretsOf(w)
	if err != nil {
		return err
	}
	for _, to := range r.to {
		name, url, ok := strings.Cut(to, "=")
		if !ok || name == "" {
			return errors.New("--to: write NAME=URL") // and repeat nothing: it may be a secret
		}
		if url, err = dereference(w, url); err != nil {
			return fmt.Errorf("--to %s: %w", name, err)
		}
		r.Targets = append(r.Targets, outbox.Target{Name: name, URL: url, Secrets: secrets[name]})
		delete(secrets, name)
	}
	for name := range secrets {
		return fmt.Errorf("--secret: nothing is posted for %q; add --to %s=URL", name, name)
	}
	return r.Validate()
}

// secretsOf reads the secrets, by name.
func (r *relaying) secretsOf(w *world) (map[string][]string, error) {
	secrets := map[string][]string{}
	for _, s := range r.secrets {
		name, from, ok := strings.Cut(s, "=")
		if !ok || name == "" || !isReference(from) {
			return nil, errors.New("--secret: write NAME=env:VARIABLE or NAME=file:PATH, not the secret itself")
		}
		secret, err := dereference(w, from)
		if err != nil {
			return nil, fmt.Errorf("--secret %s: %w", name, err)
		}
		secrets[name] = append(secrets[name], secret)
	}
	return secrets, nil
}

func isReference(s string) bool { return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:") }

// dereference returns what env:NAME or file:PATH holds, and any other text as it is.
func dereference(w *world, s string) (string, error) {
	if !isReference(s) {
		return s, nil
	}
	secret, err := config.ResolveSecret(s, config.Input{Environ: w.environ, ReadFile: os.ReadFile})
	return secret.Reveal(), err
}

const relayNotStarted = "relay: not started"

// run relays until a signal ends it.
func (r *relaying) run(ctx context.Context, w *world, cfg *config.Config) error {
	ctx, stop := untilSignal(ctx, w, nil)
	defer stop()
	queue, end, err := outbox.Open(ctx, cfg)
	if err != nil {
		return logFailure(w, cfg, relayNotStarted, gateway.Explain(cfg.Store, err))
	}
	defer end()
	log := newLogger(w, cfg, cfg.LogLevel)
	worker, err := outbox.NewRelay(queue, r.Settings, log)
	if err != nil {
		return logFailure(w, cfg, relayNotStarted, err)
	}
	log.Info("relay: running", "store", cfg.Store.String(), "effects", len(r.Targets))
	if err := worker.Run(ctx); err != nil {
		return logFailure(w, cfg, "relay: failed", err)
	}
	log.Info("relay: stopped")
	return nil
}
