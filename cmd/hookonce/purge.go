package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/outbox"
)

const purgeHelp = `Purge deletes what the library recorded in an application's database and finished long ago: by default claims of
events and requests, with the answers that are kept with them. What is gone is not recognised any more: a
copy that comes afterwards is handled as new. So go back at least twice as far as the sender goes on sending
('hookonce providers' knows how far that is).

--kind chooses something else: failed (claims of events and requests that failed or were given up, and were not
tried again since: 'hookonce doctor' counts them, so look at them first), once (the keys of hookonce.Once: such work is done again when it is asked for
again), versions and states (of Newer and Transition), or effects (of the outbox, that are done). Nothing
of these is ever deleted by a purge of another kind. Work that is open is never deleted.

--source narrows it to one source, and with --kind once to one scope; --except leaves some alone. The gateway's
own tables have a retention of their own, in its configuration. A Go program can run a janitor instead.

Rows that were changed before 2020, or in the future, are left alone: no clock that is right wrote them.
'hookonce doctor' names them.`

const purgeExample = `  hookonce purge --store postgres://app@localhost/shop --older-than 90d --dry-run
  hookonce purge --store postgres://app@localhost/shop --older-than 90d --except audit
  hookonce purge --store sqlite:shop.db --older-than 400d --source audit
  hookonce purge --store sqlite:shop.db --older-than 90d --kind effects
  hookonce purge --store sqlite:shop.db --older-than 400d --kind failed`

// leastAge is younger than anybody can mean.
const leastAge = 24 * time.Hour

func newPurgeCommand(w *env) *cobra.Command {
	var older, kind string
	var req hookonce.PurgeRequest
	c := &cobra.Command{
		Use:     "purge --older-than AGE [flags]",
		Short:   "Delete what the library finished long ago",
		Long:    purgeHelp,
		Example: purgeExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			var err error
			req.Kind = hookonce.PurgeKind(kind)
			if req.Before, err = moment("older-than", older, now); err == nil {
				err = purgeable(req, now)
			}
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return withOutbox(w, c, func(ctx context.Context, queue outbox.Store) error {
				return purge(ctx, w, queue, req)
			})
		},
	}
	storeFlags(c)
	f := c.Flags()
	f.StringVar(&older, "older-than", "", "delete what was last changed before this `time`: 90d (ago), 2026-08-21, or 2026-08-21T12:00:00Z")
	f.StringVar(&kind, "kind", string(hookonce.PurgeEvents), "what to delete, a `kind`: events, failed, once, versions, states or effects")
	f.StringVar(&req.Source, "source", "", "only of this `source`, or scope of once")
	f.StringArrayVar(&req.Except, "except", nil, "not of this `source`, or scope of once; may be repeated")
	f.BoolVar(&req.Dry, "dry-run", false, "delete nothing, only count")
	return c
}

// purgeable returns an error that names the flag that is wrong.
func purgeable(req hookonce.PurgeRequest, now time.Time) error {
	switch {
	case req.Before.IsZero():
		return errors.New("say with --older-than how old what is deleted must be, such as 90d")
	case now.Sub(req.Before) < leastAge:
		return fmt.Errorf("--older-than: less than %v is younger than copies that are still on their way", leastAge)
	case !slices.Contains(hookonce.PurgeKinds(), req.Kind):
		return fmt.Errorf("--kind: %q is not a kind of rows; write one of %v", req.Kind, hookonce.PurgeKinds())
	}
	if err := req.Validate(now); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "hookonce: purge: "))
	}
	return nil
}

// purge deletes in steps, each of which is quick, and says how much it was.
func purge(ctx context.Context, w *env, store hookonce.Purger, req hookonce.PurgeRequest) error {
	req.Limit = 1000
	verb := "deleted"
	if req.Dry {
		req.Limit, verb = math.MaxInt32, "would be deleted"
	}
	what := map[hookonce.PurgeKind]string{
		hookonce.PurgeEvents: "claim(s)", hookonce.PurgeFailed: "failed claim(s)", hookonce.PurgeOnce: "key(s) of Once",
		hookonce.PurgeVersions: "version(s)", hookonce.PurgeStates: "state(s)", hookonce.PurgeEffects: "effect(s)",
	}[req.Kind]
	for total := 0; ; {
		n, err := store.Purge(ctx, req)
		total += n
		if err != nil {
			return fmt.Errorf("after %d: %w", total, err)
		}
		if n < req.Limit {
			_, err := fmt.Fprintf(w.out, "%d %s %s.\n", total, what, verb)
			return err
		}
	}
}
