package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/outbox"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

const relayHelp = `Relay takes the effects that applications stored with hookonce.Enqueue or the SQL function enqueue, and
posts each to the URL that its name is given, until the answer is 2xx: at least once, always under the
same Idempotency-Key. It runs until it receives SIGTERM or SIGINT, finishes what is under way, and hands
back the rest. Effects of other names are left alone, so several relays can share an outbox. A URL
that hangs does not hold up what goes to others: give --concurrency at least twice as many as there are names.

410 and the statuses of --permanent give an effect up; so does the last of the --attempts. What was given
up is listed by 'relay list', and tried again after 'relay redrive'.

A URL can be env:NAME or file:PATH, because it may hold a secret. So must a secret of --secret, with which
requests are signed as Standard Webhooks describe it, and a key of --http-signature: a private key in PEM, or a
shared secret, with which they are signed with HTTP message signatures (RFC 9421). They are read at the start, and
again at SIGHUP: what cannot be read then, or makes no sense, changes nothing. In a terminal SIGHUP ends the relay as
SIGTERM does.`

const relayExample = `  hookonce relay --store postgres://app@localhost/shop --to mail.receipt=https://mailer.example/send
  hookonce relay --store sqlite:shop.db --to crm=env:CRM_URL --secret crm=env:CRM_SECRET --permanent 404
  hookonce relay --store sqlite:shop.db --to crm=https://crm.example/in --http-signature crm=shop-2026=file:crm-key.pem
  hookonce relay list --store sqlite:shop.db
  hookonce relay redrive --all-dead --store sqlite:shop.db`

// relaying is what the command line of relay says.
type relaying struct {
	outbox.Settings
	to, secrets, httpKeys []string
}

func newRelayCommand(w *env) *cobra.Command {
	r := relaying{Settings: outbox.Defaults()}
	c := &cobra.Command{
		Use:     "relay --to NAME=URL [flags]",
		Short:   "Carry out the effects in an outbox by posting them",
		Long:    relayHelp,
		Example: relayExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if r.Settings, err = r.read(w); err != nil {
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
	c.AddCommand(newRelayListCommand(w), newRelayRedriveCommand(w))
	return c
}

func (r *relaying) declare(c *cobra.Command) {
	storeFlags(c)
	fs := c.Flags()
	fs.StringArrayVar(&r.to, "to", nil, "post the effects of a name to a URL, as `NAME=URL`; may be repeated")
	fs.StringArrayVar(&r.secrets, "secret", nil, "sign what is posted for a name, as `NAME=env:VARIABLE` or NAME=file:PATH; repeated for one name while a secret is rotated")
	fs.StringArrayVar(&r.httpKeys, "http-signature", nil, "sign what is posted for a name with HTTP message signatures, as `NAME=KEYID=file:PATH` or NAME=KEYID=env:VARIABLE; repeated for one name while a key is rotated")
	fs.IntSliceVar(&r.Permanent, "permanent", nil, "give effects up that are answered with this `status`, from 300 to 499, besides 410; may be repeated")
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

// read returns what the command line says, with what it refers to as that is now.
func (r *relaying) read(w *env) (s outbox.Settings, err error) {
	s = r.Settings
	if s.Targets, err = r.targets(w); err != nil {
		return s, err
	}
	return s, s.Validate()
}

// targets reads where to post, and the secrets and keys of each target.
func (r *relaying) targets(w *env) (all []outbox.Target, err error) {
	secrets, err := r.secretsOf(w)
	if err != nil {
		return nil, err
	}
	keys, err := r.httpKeysOf(w)
	if err != nil {
		return nil, err
	}
	for _, to := range r.to {
		name, url, ok := strings.Cut(to, "=")
		if !ok || name == "" {
			return nil, errors.New("--to: write NAME=URL") // and repeat nothing: it may be a secret
		}
		if url, err = dereference(w, url); err != nil {
			return nil, fmt.Errorf("--to %s: %w", name, err)
		}
		all = append(all, outbox.Target{Name: name, URL: url, Secrets: secrets[name], HTTPKeys: keys[name]})
		delete(secrets, name)
		delete(keys, name)
	}
	for name := range secrets {
		return nil, fmt.Errorf("--secret: nothing is posted for %q; add --to %s=URL", name, name)
	}
	for name := range keys {
		return nil, fmt.Errorf("--http-signature: nothing is posted for %q; add --to %s=URL", name, name)
	}
	return all, nil
}

// httpKeysOf reads the keys of HTTP message signatures, by name.
func (r *relaying) httpKeysOf(w *env) (map[string][]outbox.HTTPKey, error) {
	keys := map[string][]outbox.HTTPKey{}
	for _, s := range r.httpKeys {
		name, rest, _ := strings.Cut(s, "=")
		id, from, ok := strings.Cut(rest, "=")
		if !ok || name == "" || id == "" || !isReference(from) {
			return nil, errors.New("--http-signature: write NAME=KEYID=file:PATH or NAME=KEYID=env:VARIABLE, not the key itself")
		}
		key, err := dereference(w, from)
		if err != nil {
			return nil, fmt.Errorf("--http-signature %s=%s: %w", name, id, err)
		}
		keys[name] = append(keys[name], outbox.HTTPKey{ID: id, Key: key})
	}
	return keys, nil
}

// secretsOf reads the secrets, by name.
func (r *relaying) secretsOf(w *env) (map[string][]string, error) {
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

const relayNotStarted = "relay: not started"

// run relays until a signal ends it. In a terminal SIGHUP does so, because it means that the
// terminal was closed: nobody would see that the relay goes on.
func (r *relaying) run(ctx context.Context, w *env, cfg *config.Config) error {
	signal.Ignore(syscall.SIGPIPE) // whoever collects its log may leave
	var reading chan os.Signal
	if !isTerminal(w.err) {
		reading = make(chan os.Signal, 1)
	}
	ctx, stop := untilSignal(ctx, w, nil, reading)
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
	if reading != nil {
		go func() {
			for range reading {
				r.readAgain(w, worker, log)
			}
		}()
	}
	log.Info("relay: running", "store", cfg.Store.String(), "effects", len(r.Targets))
	if err := worker.Run(ctx); err != nil {
		return logFailure(w, cfg, "relay: failed", err)
	}
	log.Info("relay: stopped")
	return nil
}

// readAgain has what is posted from now on go where, and be signed with what, the references of the
// command line say by now.
func (r *relaying) readAgain(w *env, worker *outbox.Relay, log *slog.Logger) {
	s, err := r.read(w)
	if err == nil {
		err = worker.Follow(s)
	}
	if err != nil {
		log.Error("relay: the addresses and secrets could not be read again; those that it has stay", "error", err)
		return
	}
	log.Info("relay: the addresses and secrets were read again")
}

// withOutbox runs do on the outbox that the flags name.
func withOutbox(w *env, c *cobra.Command, do func(context.Context, outbox.Store) error) error {
	cfg, err := loadStoreConfig(w, c.Flags())
	if err != nil {
		return err
	}
	tellStore(w, cfg)
	queue, end, err := outbox.Open(c.Context(), cfg)
	if err != nil {
		return gateway.Explain(cfg.Store, err)
	}
	defer end()
	return do(c.Context(), queue)
}

// effectStates are those that effects can be listed by.
var effectStates = []hookonce.State{
	hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed, hookonce.StateDead, hookonce.StateDone,
}

func newRelayListCommand(w *env) *cobra.Command {
	var state string
	var after int64
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List effects by state, those that were given up unless told otherwise",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case !slices.Contains(effectStates, hookonce.State(state)):
				return &usageError{c.CommandPath(), fmt.Errorf("--state: %q is not a state of effects; write one of %v", state, effectStates)}
			case limit < 1 || limit > maxListed:
				return &usageError{c.CommandPath(), fmt.Errorf("--limit: write a number from 1 to %d", maxListed)}
			}
			return withOutbox(w, c, func(ctx context.Context, queue outbox.Store) error {
				list, err := listEffects(ctx, queue, hookonce.State(state), after, limit+1)
				if err != nil {
					return err
				}
				more := len(list) > limit
				list = list[:min(limit, len(list))]
				show := func() error { return printEffects(w, list) }
				if asJSON {
					show = func() error { return printJSON(w, list) }
				}
				if err := show(); err != nil {
					return err
				}
				switch {
				case len(list) == 0:
					fmt.Fprintf(w.err, "No effect is %s; ask for others with --state: %s\n", state, strings.Trim(fmt.Sprint(effectStates), "[]"))
				case more:
					fmt.Fprintf(w.err, "There are more: raise --limit, or go on with --after %d\n", list[len(list)-1].ID)
				}
				return nil
			})
		},
	}
	storeFlags(c)
	c.Flags().StringVar(&state, "state", string(hookonce.StateDead), "list effects in this `state`: pending, processing, failed, dead or done")
	c.Flags().Int64Var(&after, "after", 0, "begin after the effect with this `number`")
	c.Flags().IntVar(&limit, "limit", 50, "list at most this `number` of effects")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printEffects(w *env, list []effectJSON) error {
	t := newTable(w, "", "ID | ENQUEUED | STATE | NAME | SOURCE | KEY | STEP | TRIES | DEATHS | DUE | LEASED UNTIL | LAST ERROR")
	for _, e := range list {
		t.row("", e.ID, clock(e.EnqueuedAt), e.State, e.Name, e.Source, e.Key, e.Step, e.Tries, e.Deaths, clock(e.Due), clock(e.LeaseUntil),
			cut(clean(e.LastError), 80))
	}
	return t.Flush()
}

// effectJSON is an effect for programs. Its payload stays where it is.
type effectJSON struct {
	ID             int64          `json:"id"`
	State          hookonce.State `json:"state"`
	Name           string         `json:"name"`
	Source         string         `json:"source"`
	Key            string         `json:"key,omitempty"`
	Step           string         `json:"step"`
	IdempotencyKey string         `json:"idempotency_key"`
	Attempts       int64          `json:"attempts"`
	Tries          int            `json:"tries"`
	Deaths         int            `json:"deaths,omitempty"`
	EnqueuedAt     time.Time      `json:"enqueued_at"`
	Due            time.Time      `json:"due,omitzero"`
	LeaseUntil     time.Time      `json:"lease_until,omitzero"`
	LastError      string         `json:"last_error,omitempty"`
	PayloadBytes   int            `json:"payload_bytes"`
}

// payloadsAtOnce bounds the payloads that are read to tell how large they are: each may have a mebibyte.
const payloadsAtOnce = 32

// listEffects lists effects as [hookonce.EffectAdmin] does, without keeping the payloads.
func listEffects(ctx context.Context, queue hookonce.EffectAdmin, state hookonce.State, after int64, limit int) ([]effectJSON, error) {
	all := []effectJSON{}
	for len(all) < limit {
		some := min(payloadsAtOnce, limit-len(all))
		page, err := queue.Effects(ctx, state, after, some)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			all = append(all, effectJSON{
				ID: e.ID, State: e.State, Name: e.Name, Source: e.Source, Key: e.Key, Step: e.Step, IdempotencyKey: e.IdempotencyKey(),
				Attempts: e.Token, Tries: e.Tries, Deaths: e.Deaths, EnqueuedAt: e.EnqueuedAt, Due: e.Due, LeaseUntil: e.Lease,
				LastError: e.LastError, PayloadBytes: len(e.Payload),
			})
			after = e.ID
		}
		if len(page) < some {
			break
		}
	}
	return all, nil
}

func newRelayRedriveCommand(w *env) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "redrive {ID | --all-dead} [flags]",
		Short: "Have effects tried again that were given up",
		Long: `Redrive makes effects that were given up due at once, with their tries and deaths counted from nothing. They keep their
Idempotency-Key, so that whoever carries one out can tell that it is not new.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			id, err := redriving(args, all)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return withOutbox(w, c, func(ctx context.Context, queue outbox.Store) error {
				if all {
					return redriveAll(ctx, w, queue)
				}
				return redrive(ctx, w, queue, id)
			})
		},
	}
	storeFlags(c)
	c.Flags().BoolVar(&all, "all-dead", false, "redrive every effect that was given up")
	return c
}

// redriving returns the number of the effect to redrive, or 0 for all.
func redriving(args []string, all bool) (int64, error) {
	if all && len(args) == 0 {
		return 0, nil
	}
	if all || len(args) != 1 {
		return 0, errors.New("name one effect by its number, or write --all-dead")
	}
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, fmt.Errorf("%q is not the number of an effect; 'hookonce relay list' prints them", args[0])
	}
	return id, nil
}

func redrive(ctx context.Context, w *env, queue outbox.Store, id int64) error {
	err := queue.RedriveEffect(ctx, id)
	switch {
	case errors.Is(err, hookonce.ErrNotFound):
		return fmt.Errorf("there is no effect %d; 'hookonce relay list' prints those that were given up", id)
	case errors.Is(err, hookonce.ErrStale):
		return fmt.Errorf("effect %d was not given up, and is left alone", id)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(w.out, "Effect %d is due.\n", id)
	return err
}

// redriveAll redrives what is dead now, page by page. What somebody else redrives meanwhile is not counted.
func redriveAll(ctx context.Context, w *env, queue outbox.Store) error {
	redriven := 0
	next := hookonce.EffectQuery{Dead: true, Limit: pageSize}
	for {
		dead, err := queue.ListEffects(ctx, next) // which reads no payloads
		if err != nil {
			return err
		}
		for _, e := range dead {
			err := queue.RedriveEffect(ctx, e.ID)
			switch {
			case err == nil:
				redriven++
			case !errors.Is(err, hookonce.ErrStale) && !errors.Is(err, hookonce.ErrNotFound):
				return fmt.Errorf("after %d effects: %w", redriven, err)
			}
			next.After = &e
		}
		if len(dead) < pageSize {
			_, err := fmt.Fprintf(w.out, "%d effect(s) are due.\n", redriven)
			return err
		}
	}
}
