package bypass_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/bypass"
	"github.com/hookonce/hookonce/internal/journal/inflight"
)

// store is back when it answers a ping, and refuses to record as often as it is told, and some events for good.
type store struct {
	journal.Accepter
	away     bool
	refusals int
	results  map[string]journal.Result // by the keys of events that are not accepted
	accepted []*journal.Record
	bypassed []journal.Outcome
}

func (s *store) Ping(context.Context) error {
	if s.away {
		return errors.New("away")
	}
	return nil
}

func (s *store) Accept(_ context.Context, batch []*journal.Record, _, _ time.Time) ([]journal.Result, error) {
	if s.refusals > 0 {
		s.refusals--
		return nil, errors.New("the answer was lost")
	}
	s.accepted = append(s.accepted, batch...)
	results := make([]journal.Result, len(batch))
	for i, r := range batch {
		results[i] = journal.Result{Status: journal.Accepted, ID: r.ID}
		if res, is := s.results[r.Key]; is {
			results[i] = res
		}
	}
	return results, nil
}

func (s *store) RecordBypassed(_ context.Context, outcomes []journal.Outcome) error {
	s.bypassed = append(s.bypassed, outcomes...)
	return nil
}

const timeout = 10 * time.Second // of a call of the store

// poller keeps what it is told: how many events are recorded.
type poller struct {
	mu   sync.Mutex
	told []int
}

func (p *poller) recorded(events int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, events)
}

func (p *poller) all() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// passing returns a bypass of a store, and what its poller was told.
func passing(s *store, maxEvents int) (*bypass.Bypass, *poller) {
	told := &poller{}
	return bypass.New(bypass.Options{
		Store:    s,
		Call:     func(_ int, do func(context.Context) error) error { return do(context.Background()) },
		InFlight: inflight.New(inflight.Options{MaxDeliveries: 8, MaxBytes: 1 << 20, MaxBatch: 8, Now: time.Now}, func() {}),
		Done:     func(*journal.Event) (journal.Result, bool) { return journal.Result{}, false },
		Recorded: told.recorded,
		Timeout:  timeout, MaxEvents: maxEvents, MaxBytes: 1 << 30, MaxBatch: 8, Lease: time.Minute,
		IDs: journal.NewIDs(1, 0), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}), told
}

func event(key string, destinations ...string) *journal.Event {
	return &journal.Event{Source: "stripe", Key: key, Destinations: destinations, ReceivedAt: time.Now(), Digest: []byte(key)}
}

// takes is an attempter whose destinations take everything, but for one.
func takes(refusing string) journal.Attempter {
	return func(_ context.Context, w *journal.Work) journal.Outcome {
		if w.Destination == refusing {
			return journal.Outcome{Held: w.Held, State: journal.Failed, Error: "status 500"}
		}
		return journal.Outcome{Held: w.Held, State: journal.Done}
	}
}

// What failed may be stored all the same, so whoever looks for work is told of a record that failed, too: with no event,
// and with all of them once they are on record.
func TestPollerIsToldOfEveryRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{refusals: 1}
		b, told := passing(s, 8)
		if _, err := b.Deliver(t.Context(), []*journal.Event{event("evt_1", "app")}, takes("")); err != nil {
			t.Fatal(err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { defer close(stopped); b.Record(stop) }()
		defer func() { close(stop); <-stopped }()
		synctest.Wait()
		if got := told.all(); !slices.Equal(got, []int{0}) || b.Unrecorded() != 1 {
			t.Fatalf("after a record that failed: told %v, %d unrecorded; want [0] and 1", got, b.Unrecorded())
		}
		time.Sleep(time.Second) // of the bubble: the next try is due
		synctest.Wait()
		if got := told.all(); !slices.Equal(got, []int{0, 1}) || b.Unrecorded() != 0 || len(s.bypassed) != 1 {
			t.Errorf("after the record: told %v, %d unrecorded, recorded %v", got, b.Unrecorded(), s.bypassed)
		}
	})
}

// What the store refuses for good, or has under its key with other content, is not on record, and does not count as that.
func TestRefusedIsNotRecorded(t *testing.T) {
	s := &store{results: map[string]journal.Result{
		"refused": {Err: errors.New("the row is refused")}, "conflict": {Status: journal.Conflict, ID: 1},
	}}
	b, told := passing(s, 8)
	for _, key := range []string{"refused", "evt_1", "conflict"} {
		if _, err := b.Deliver(t.Context(), []*journal.Event{event(key, "app")}, takes("")); err != nil {
			t.Fatal(err)
		}
	}
	b.RecordRest(t.Context())
	if got := told.all(); !slices.Equal(got, []int{1}) || b.Unrecorded() != 0 || len(s.bypassed) != 1 {
		t.Errorf("events on record: %v, want one; %d unrecorded, recorded %v", got, b.Unrecorded(), s.bypassed)
	}
}

// What is recorded at once is bounded in bytes: what it is sent in has a limit of its own.
func TestRecordIsBoundedInBytes(t *testing.T) {
	b, told := passing(&store{}, 8)
	body := make([]byte, journal.MaxBatchBytes/2)
	for _, key := range []string{"evt_1", "evt_2", "evt_3"} {
		e := event(key, "app")
		e.Body = body
		if _, err := b.Deliver(t.Context(), []*journal.Event{e}, takes("")); err != nil {
			t.Fatal(err)
		}
	}
	b.RecordRest(t.Context())
	if got := told.all(); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("events on record at once: %v, want two and then one", got)
	}
}

// Until it is on record an event is known here: a copy is answered, other work for its key is not handed out, and after
// a part was refused only the rest is delivered again.
func TestDeliveredEventsAreRemembered(t *testing.T) {
	s := &store{away: true}
	b, _ := passing(s, 1)
	e := event("evt_1", "app", "crm")
	if _, err := b.Deliver(t.Context(), []*journal.Event{e}, takes("crm")); !errors.Is(err, journal.ErrUnavailable) {
		t.Fatalf("one of two destinations refused: %v", err)
	}
	if _, _, err := b.Lookup(e); !errors.Is(err, journal.ErrUnavailable) || !b.Has("stripe", "evt_1", "crm") {
		t.Errorf("an event that one destination has is neither new nor done: %v", err)
	}
	var again []string
	if _, err := b.Deliver(t.Context(), []*journal.Event{e}, func(ctx context.Context, w *journal.Work) journal.Outcome {
		again = append(again, w.Destination)
		return takes("")(ctx, w)
	}); err != nil || len(again) != 1 || again[0] != "crm" {
		t.Errorf("delivered again to %v, %v; want crm alone", again, err)
	}
	if res, known, err := b.Lookup(e); err != nil || !known || res.Status != journal.Duplicate {
		t.Errorf("a copy is %v, %v, %v", res.Status, known, err)
	}
	if _, err := b.Deliver(t.Context(), []*journal.Event{event("evt_2", "app")}, takes("")); !errors.Is(err, journal.ErrFull) {
		t.Errorf("more is remembered than allowed: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	b.RecordRest(ended)
	if b.Unrecorded() != 1 {
		t.Error("it was forgotten while the store is away")
	}
	s.away = false
	if b.RecordRest(t.Context()); b.Unrecorded() != 0 || len(s.bypassed) != 2 {
		t.Errorf("%d unrecorded, recorded %v", b.Unrecorded(), s.bypassed)
	}
}

// What is on record is the store's to answer for, but for work that may have been leased before: of that nothing is handed out
// which a destination has taken, and nothing goes past the store once more, as long as the answer to a call may take. It has a
// place among what is remembered until then.
func TestRecordedIsRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		b, _ := passing(s, 1)
		e := event("evt_1", "app", "crm")
		if _, err := b.Deliver(t.Context(), []*journal.Event{e}, takes("crm")); !errors.Is(err, journal.ErrUnavailable) {
			t.Fatalf("one of two destinations refused: %v", err)
		}
		b.RecordRest(t.Context())
		if _, known, err := b.Lookup(e); known || err != nil || b.Known("stripe", []string{"evt_1"})["evt_1"].ID != 0 || b.Unrecorded() != 0 {
			t.Errorf("what is on record is answered for: %v, %v, %d unrecorded", known, err, b.Unrecorded())
		}
		time.Sleep(timeout + time.Second) // of the bubble: the answer came, and took its time to be worked on
		if !b.Has("stripe", "evt_1", "app") || b.Has("stripe", "evt_1", "crm") || b.Has("stripe", "evt_2", "app") {
			t.Error("work is held back of what a destination has not taken, or handed out of what it has")
		}
		for _, key := range []string{"evt_1", "evt_2"} {
			if _, err := b.Deliver(t.Context(), []*journal.Event{event(key, "app")}, func(context.Context, *journal.Work) journal.Outcome {
				t.Errorf("%s was delivered", key)
				return journal.Outcome{}
			}); err == nil {
				t.Errorf("%s went past the store", key)
			}
		}
		time.Sleep(timeout)
		synctest.Wait()
		if b.Has("stripe", "evt_1", "app") {
			t.Error("it is held back for ever")
		}
		if _, err := b.Deliver(t.Context(), []*journal.Event{event("evt_2", "app")}, takes("")); err != nil {
			t.Errorf("there is no room for another one: %v", err)
		}
	})
}
