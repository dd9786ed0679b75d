package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// listed returns the event of a key as the provider's list has it.
func listed(key string) *journal.Event {
	e := entry(key)
	e.Listed, e.Digest, e.Header = true, nil, nil
	return e
}

// What comes from a list is delivered as any other event, and the webhooks that come after it are copies, of which the
// first says what the content is: while the work is under way, when it is done, and when that is remembered.
func TestListed_isDeliveredOnce(t *testing.T) {
	for name, finish := range map[string]bool{"under way": false, "done": true} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{}, func(t *testing.T, r *rig) {
				id := r.want(r.accept(listed("evt_1")), journal.Accepted).ID
				w := r.receive()
				if w.Origin != journal.OriginReconciled || w.EventID != id || w.Key != "evt_1" {
					t.Errorf("the work is %+v", w)
				}
				if finish {
					r.finish(w, journal.Done, time.Time{})
				}
				for range 2 {
					if res := r.want(r.accept(entry("evt_1")), journal.Duplicate); res.ID != id || res.Done != finish {
						t.Errorf("a webhook: %+v", res)
					}
					r.want(r.accept(forged("evt_1")), journal.Conflict)
					r.want(r.accept(listed("evt_1")), journal.Duplicate)
				}
				r.idle()
				if !finish {
					r.finish(w, journal.Done, time.Time{})
				}
				r.want(r.accept(entry("evt_1")), journal.Duplicate)
				r.want(r.accept(forged("evt_1")), journal.Conflict)
			})
		})
	}
}

// An event without a destination is done at once, and that must not be remembered with the digest that a list does not have.
func TestListed_withoutADestination(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		e := listed("evt_1")
		e.Destinations = nil
		r.want(r.accept(e), journal.Accepted)
		r.want(r.accept(e), journal.Duplicate)
		r.want(r.accept(entry("evt_1")), journal.Duplicate)
		r.want(r.accept(forged("evt_1")), journal.Conflict)
		if res := r.want(r.accept(listed("evt_1")), journal.Duplicate); !res.Done {
			t.Errorf("%+v", res)
		}
	})
}

// A webhook and a list that come together are one event, whichever is first, and none takes the other for other content.
func TestListed_besideItsWebhook(t *testing.T) {
	for name, order := range map[string][]func(string) *journal.Event{
		"the list first": {listed, entry, forged}, "the webhook first": {entry, listed, forged},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, engine.Options{}, func(t *testing.T, r *rig) {
				gate := r.fault.Block(journaltest.OpAccept)
				blocked := r.goAccept(entry("other"))
				<-gate.Arrived
				var answers []<-chan answer
				for _, make := range order {
					answers = append(answers, r.goAccept(make("evt_1")))
				}
				gate.Open()
				r.want(<-blocked, journal.Accepted)
				for i, want := range []journal.Status{journal.Accepted, journal.Duplicate, journal.Conflict} {
					r.want(<-answers[i], want)
				}
				if n := r.store.Events(); n != 2 {
					t.Errorf("%d events", n)
				}
				r.receive()
				r.receive()
				r.idle()
			})
		})
	}
}

// What comes from a list re-drives nothing, and nobody is told that a copy came.
func TestListed_isNoCopy(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		id := r.want(r.accept(entry("evt_1")), journal.Accepted).ID
		r.finish(r.receive(), journal.Dead, time.Time{})
		r.want(r.accept(listed("evt_1")), journal.Duplicate)
		r.idle()
		sleep(5 * time.Second)
		h, err := r.store.History(context.Background(), id)
		if err != nil || len(h.Duplicates) != 0 {
			t.Errorf("receipts %+v, %v", h.Duplicates, err)
		}
		if res := r.want(r.accept(entry("evt_1")), journal.Duplicate); !res.Redriven {
			t.Errorf("a webhook: %+v", res)
		}
		r.receive()
	})
}

// A webhook that has no digest either is a copy all the same, and does not wait for what comes from a list, which re-drives
// nothing.
func TestListed_takesNoWebhookAlong(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		bare := entry("evt_1")
		bare.Digest = nil
		r.want(r.accept(bare), journal.Accepted)
		r.finish(r.receive(), journal.Dead, time.Time{})
		gate := r.fault.Block(journaltest.OpAccept)
		blocked := r.goAccept(entry("other"))
		<-gate.Arrived
		fromList, fromWebhook := r.goAccept(listed("evt_1")), r.goAccept(bare)
		gate.Open()
		r.want(<-blocked, journal.Accepted)
		r.want(<-fromList, journal.Duplicate)
		if res := r.want(<-fromWebhook, journal.Duplicate); !res.Redriven {
			t.Errorf("the webhook: %+v", res)
		}
	})
}

// A pause, and the bounds of what may be in flight, hold for what comes from a list as well.
func TestListed_waitsWhereOneIsPaused(t *testing.T) {
	run(t, engine.Options{Destinations: map[string]journal.Destination{"app": {}}}, func(t *testing.T, r *rig) {
		p := journal.Pause{Destination: "app", By: "ops", Reason: "upgrade", At: time.Now()}
		if _, err := r.SetPaused(context.Background(), p, true); err != nil {
			t.Fatal(err)
		}
		r.want(r.accept(listed("evt_1")), journal.Accepted)
		sleep(10 * time.Second)
		r.idle()
		if _, err := r.SetPaused(context.Background(), p, false); err != nil {
			t.Fatal(err)
		}
		r.receive()
	})
}

// A process that delivers nothing stores for those that do: in order where they want that, and they are told.
func TestBeside(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		told := 0
		e, ordered := listed("evt_1"), listed("evt_2")
		ordered.Destinations, ordered.Resource = []string{"app", "ledger"}, "acct_1"
		b := engine.Beside{
			Store: r.store, Notifier: notify(func() { told++ }), IDs: journal.NewIDs(7, 0), Now: time.Now,
			Destinations: map[string]journal.Destination{"app": {}, "ledger": {Ordered: true}},
		}
		for _, want := range []journal.Status{journal.Accepted, journal.Duplicate} {
			results, err := b.Ingest(context.Background(), []*journal.Event{e, ordered})
			if err != nil || len(results) != 2 || results[0].Status != want || results[1].Status != want {
				t.Fatalf("Ingest = %+v, %v, want %s", results, err, want)
			}
		}
		if told != 2 {
			t.Errorf("others were told %d times", told)
		}
		for _, d := range r.store.Deliveries() {
			if want := map[string]string{"ledger": "billing/acct_1"}[d.Destination]; d.State != journal.Pending || d.Group != want || d.Origin != journal.OriginReconciled {
				t.Errorf("the delivery is %+v, in order of %q", d, want)
			}
		}
		sleep(10 * time.Second) // somebody polls
		for range 3 {
			r.receive()
		}
		r.fault.Fail(journaltest.OpAccept, 1, journaltest.Persisted)
		b.Store = r.fault
		if _, err := b.Ingest(context.Background(), []*journal.Event{listed("evt_3")}); !errors.Is(err, journaltest.ErrInjected) || told != 2 {
			t.Errorf("a failure: %v, others were told %d times", err, told)
		}
	})
}

// notify is a notifier that others are told by.
type notify func()

func (n notify) Notify(context.Context) error         { n(); return nil }
func (n notify) Listen(ctx context.Context, _ func()) { <-ctx.Done() }

// What went past the store is known before it is on record, and after; what nobody took is not.
func TestKnown_pastTheStore(t *testing.T) {
	run(t, engine.Options{DoneKeys: journaltest.NoDoneKeys}, func(t *testing.T, r *rig) {
		known := func() map[string]journal.Known {
			t.Helper()
			all, err := r.Known(context.Background(), "billing", []string{"evt_1", "evt_2"})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		gate := r.fault.Block(journaltest.OpPing) // what is delivered past the store is recorded behind it
		r.fault.Fail(journaltest.OpAccept, -1, journaltest.NotPersisted)
		a := newApp()
		a.gate = make(chan struct{})
		passing := make(chan answer, 1)
		go func() { passing <- r.bypass(a, entry("evt_1")) }()
		synctest.Wait()
		if all := known(); len(all) != 0 {
			t.Errorf("while nobody has taken it: %+v", all)
		}
		close(a.gate)
		r.want(<-passing, journal.Unprotected)
		synctest.Wait()
		if all := known(); len(all) != 1 || all["evt_1"].State != journal.Done || !all["evt_1"].Verified || r.store.Events() != 0 {
			t.Errorf("before it is on record: %+v", all)
		}
		r.want(r.accept(listed("evt_1")), journal.Duplicate)
		r.fault.Fail(journaltest.OpAccept, 0, journaltest.NotPersisted)
		gate.Open()
		sleep(10 * time.Second)
		if all := known(); len(all) != 1 || all["evt_1"].State != journal.Done || r.store.Events() != 1 {
			t.Errorf("on record: %+v", all)
		}
		r.fault.Fail(journaltest.OpKnown, 1, journaltest.NotPersisted)
		if _, err := r.Known(context.Background(), "billing", []string{"evt_1"}); !errors.Is(err, journaltest.ErrInjected) {
			t.Errorf("Known = %v", err)
		}
	})
}
