package alerting

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// A commit of which nobody hears what came of it changes nothing about what is told: each alert once, and that it is over once.
func TestUnknownOutcomes(t *testing.T) {
	for _, op := range []journaltest.Op{journaltest.OpAlerts, journaltest.OpNotices} {
		for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
			t.Run(fmt.Sprint(op, mode), func(t *testing.T) {
				w := newWorld(t, 2)
				faulty := journaltest.NewFaulty(journaltest.NewMemory())
				w.store = faulty
				w.dead(1, "ledger")
				faulty.Fail(op, 1, mode)
				w.pass(leaseTime + 2*Every)
				w.told("firing died/ledger")
				w.dead(0)
				w.pass(DefaultKeepFiring - leaseTime)
				faulty.Fail(op, 2, mode)
				w.pass(2 * leaseTime)
				w.told("firing died/ledger", "resolved died/ledger")
				if n := faulty.Calls(op); n < 2 {
					t.Errorf("%s was called %d times: nothing failed", op, n)
				}
			})
		}
	}
}

// Three gateways on one Postgres evaluate and send at the same moments. One is killed while it sends what fires: a receiver
// that groups by key has one incident, that is resolved once.
func TestThreeGatewaysOnPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	w := newWorld(t, 0)
	dsn := pgtest.DSN(t)
	var stores []journal.Alerter
	for i := range 3 {
		s, err := pg.Open(t.Context(), dsn, pg.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
		g := w.gateway(fmt.Sprint("gw-", i))
		g.opt.Store, g.senders[0].queue = s, s
		w.gateways = append(w.gateways, g)
	}
	w.store = stores[0]
	together := func(do func(g *Alerting)) {
		var all sync.WaitGroup
		for _, g := range w.gateways {
			all.Go(func() { do(g) })
		}
		all.Wait()
	}
	tick := func(n int) {
		for range n {
			w.now = w.now.Add(Every)
			together(func(g *Alerting) { g.Evaluate(t.Context()) })
			together(func(g *Alerting) { g.Flush(t.Context()) })
		}
	}
	w.dead(1, "ledger", "mail")
	w.now = w.now.Add(Every)
	together(func(g *Alerting) { g.Evaluate(t.Context()) })
	w.now = w.now.Add(10 * time.Second) // whoever decided it, by whichever clock: it is due
	dying, kill := context.WithCancel(t.Context())
	victim := w.gateways[0]
	deaf := &killed{ops: w.ops, kill: kill}
	w.settings.Addresses[0].Notifier = deaf
	victim.senders[0].queue = lastWord{stores[0]} // its last words do not arrive
	victim.Flush(dying)
	w.settings.Addresses[0].Notifier = w.ops
	w.gateways = w.gateways[1:]
	tick(int(leaseTime/Every) + 1)
	w.messages(2) // the one of the gateway that was killed, and the one of who took it over
	if a, b := w.ops.got[0], w.ops.got[1]; a.Key != b.Key || len(a.Notifications) != 2 {
		t.Errorf("the messages are %q and %q", a.Key, b.Key)
	}
	w.dead(0)
	tick(int(DefaultKeepFiring/Every) + 2)
	w.told("firing died/ledger", "firing died/mail", "resolved died/ledger", "resolved died/mail")
	want := []string{"fired", "fired", "told", "told", "resolved", "resolved", "told", "told"}
	if got := w.happened("died"); !slices.Equal(got, want) {
		t.Errorf("on record: %q, want %q", got, want)
	}
}

// killed is an address that has the message when the gateway that sends it is killed.
type killed struct {
	ops  *receiver
	kill context.CancelFunc
}

func (k *killed) Notify(ctx context.Context, m Message) error {
	err := k.ops.Notify(ctx, m)
	k.kill()
	return err
}

// lastWord is the queue of a gateway that is killed before it can record what came of a message.
type lastWord struct{ journal.Alerter }

func (lastWord) FinishNotices(context.Context, []journal.NoticeOutcome) ([]bool, error) {
	return nil, context.Canceled
}
