// Package tail follows the journal for people who look on: what any gateway on the store accepts is told as it comes, once, and
// how it stands while it is young. However many look on, the store is asked once a second; while nobody does, it is not asked.
package tail

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// The bounds of what is followed and told.
const (
	// Max is how many tails one gateway has at a time.
	Max = 16
	// Window is how old an event may be, by the clock of this gateway, when it becomes visible in the store, and is told all the
	// same: for so long a commit may take, and clocks may differ. For as long it is told when the state of an event changes.
	Window = 30 * time.Second
	// MaxBacklog is how many earlier events a tail begins with, the newest.
	MaxBacklog = 1000
	// MaxWaiting is how many messages wait for whoever reads slowly. What comes then is left out, and counted.
	MaxWaiting = 256

	every     = time.Second      // between two looks at the store
	piece     = 5000             // events that are read at once
	maxTold   = 500              // of those; of more it is only told how many
	maxSeen   = 100_000          // events that are remembered; with more the window is shorter
	maxRead   = 20_000           // events of the window; with more it is not the whole window that is looked at every time
	wholly    = 10 * time.Second // but this often
	overlap   = 2 * time.Second  // and else so far back behind the look before
	maxOpen   = 1000             // events whose state is followed
	beatEvery = 15 * time.Second // between two signs of life
	askTime   = 5 * time.Second  // for one question to the store
)

// Errors of [Feed.Follow] and [Tail.Next].
var (
	ErrTooMany = errors.New("tail: too many look on already")
	ErrEnded   = errors.New("tail: ended")
)

// Kind says what a message tells.
type Kind string

// The kinds of messages.
const (
	Arrived Kind = "event"      // an event came
	Changed Kind = "state"      // the state of one that came is another; it may be told again after a reconnection
	LeftOut Kind = "left_out"   // so many events were not told, or all before a time
	Away    Kind = "store_away" // the store does not answer
	Back    Kind = "store_back" // and does again
	Beat    Kind = "beat"       // nothing happened

	joined Kind = "joined" // what comes now is told
)

// Message is what a tail is told.
type Message struct {
	Kind  Kind
	Event journal.Summary // of Arrived and Changed
	Count int             // of LeftOut
	// Before is set if LeftOut means the events before that time, which nobody counted.
	Before time.Time
	// At is where the tail is after the message, for [From.After]. Empty: where it was.
	At string

	now *snapshot // of joined
}

// snapshot is what the feed has seen when a tail joins it.
type snapshot struct {
	seen map[int64]bool // nil: it is not needed
	at   position
}

// Filter chooses what is told. The zero Filter chooses everything.
type Filter struct {
	Source string
	Type   string // as in [journal.Filter]
	State  journal.State
}

// wants reports whether the filter chooses an event, its state apart.
func (f *Filter) wants(a *journal.Arrival) bool {
	kind := journal.Filter{Type: f.Type}
	return (f.Source == "" || f.Source == a.Source) && kind.MatchType(a.Type)
}

// in reports whether an event is in the state of the filter, as in a list.
func (f *Filter) in(s *journal.Summary) bool {
	if f.State == "" || f.State == journal.Done && len(s.Deliveries) == 0 {
		return true
	}
	for _, d := range s.Deliveries {
		if d.State == f.State {
			return true
		}
	}
	return false
}

// From is where a tail begins. The zero From is now.
type From struct {
	Since time.Time // with the events accepted since then, MaxBacklog at most
	After string    // where another tail was: [Message.At] of its last message; then Since means nothing
}

// Records is what is read of the journal's store.
type Records interface {
	Arrivals(ctx context.Context, first int64, limit int) ([]journal.Arrival, error)
	Summaries(ctx context.Context, ids []int64) ([]journal.Summary, error)
	List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error)
}

// Feed tells tails. Its methods are safe for concurrent use.
type Feed struct {
	records Records
	now     func() time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	looking sync.WaitGroup

	mu     sync.Mutex
	tails  map[*Tail]bool // whether it is told what comes
	active bool           // somebody looks at the store
}

// New returns a feed, which must be closed.
func New(records Records, now func() time.Time) *Feed {
	f := &Feed{records: records, now: now, tails: map[*Tail]bool{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Close ends all tails, and lets none begin.
func (f *Feed) Close() {
	f.cancel()
	f.Disconnect()
	f.looking.Wait()
}

// Disconnect ends the tails that there are. Whoever may still look on goes on with another one, from where it was.
func (f *Feed) Disconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.tails {
		f.end(t)
	}
}

// end ends a tail. The caller holds the lock.
func (f *Feed) end(t *Tail) {
	if _, there := f.tails[t]; there {
		delete(f.tails, t)
		close(t.ended)
	}
}

// Follow begins a tail, which must be closed. It fails with [ErrTooMany], [ErrPosition] or, when the feed was closed, [ErrEnded].
func (f *Feed) Follow(filter Filter, from From) (*Tail, error) {
	t := &Tail{feed: f, filter: filter, live: make(chan Message, MaxWaiting), ended: make(chan struct{})}
	var err error
	switch {
	case from.After != "":
		if t.after, err = parse(from.After); err != nil {
			return nil, err
		}
	case !from.Since.IsZero():
		since := from.Since
		if now := f.now(); since.After(now) {
			since = now
		}
		t.after = &position{floor: journal.FirstID(since), count: unknown}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ctx.Err() != nil:
		return nil, ErrEnded
	case len(f.tails) >= Max:
		return nil, ErrTooMany
	}
	f.tails[t] = false
	if !f.active {
		f.active = true
		f.looking.Go(f.look)
	}
	return t, nil
}

// Tail is one who looks on. Its methods are for one goroutine.
type Tail struct {
	feed   *Feed
	filter Filter
	after  *position // where it begins; nil: now
	live   chan Message
	ended  chan struct{}
	early  []Message // that come before those of live

	// Of the goroutine that looks at the store.
	missed int       // events that were left out since the last message
	spoken time.Time // when there last was one
}

// Close ends the tail.
func (t *Tail) Close() {
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	t.feed.end(t)
}

// Next waits for a message. It returns ctx's error, [ErrEnded], or why earlier events cannot be read: whoever begins another
// tail, after the last message, misses nothing.
func (t *Tail) Next(ctx context.Context) (Message, error) {
	for {
		if len(t.early) > 0 {
			m := t.early[0]
			t.early = t.early[1:]
			return m, nil
		}
		select {
		case <-t.ended:
			return Message{}, ErrEnded
		case <-ctx.Done():
			return Message{}, ctx.Err()
		case m := <-t.live:
			if m.Kind != joined {
				return m, nil
			}
			if err := t.begin(ctx, m.now); err != nil {
				return Message{}, err
			}
		}
	}
}

// send has a message wait for the reader, or counts it as left out. It is called by the goroutine that looks at the store.
func (t *Tail) send(m Message, now time.Time) {
	if t.missed > 0 {
		select {
		case t.live <- Message{Kind: LeftOut, Count: t.missed}:
			t.missed, t.spoken = 0, now
		default:
		}
	}
	if t.missed == 0 {
		select {
		case t.live <- m:
			t.spoken = now
			return
		default:
		}
	}
	if m.Kind == Arrived || m.Kind == Changed {
		t.missed++
	}
}
