package tail_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/tail"
)

// clock is that of a test, in years that identifiers have.
func clock() time.Time { return time.Now().AddDate(27, 0, 0) }

// store is the reference model, which may be away, and counts how often it is asked.
type store struct {
	*journaltest.Memory
	away  atomic.Bool
	asked atomic.Int64
}

func newStore() *store { return &store{Memory: journaltest.NewMemory()} }

func (s *store) Arrivals(ctx context.Context, first int64, limit int) ([]journal.Arrival, error) {
	s.asked.Add(1)
	if s.away.Load() {
		return nil, errors.New("away")
	}
	return s.Memory.Arrivals(ctx, first, limit)
}

// accept stores an event under an identifier.
func (s *store) accept(t *testing.T, id int64, key string, edit ...func(*journal.Record)) int64 {
	t.Helper()
	now := clock()
	e := &journal.Record{ID: id, Event: &journal.Event{
		Source: "billing", Key: key, Type: "invoice.paid", Digest: []byte(key), Body: []byte(`{}`), Destinations: []string{"app"}, ReceivedAt: now,
	}}
	for _, f := range edit {
		f(e)
	}
	if _, err := s.Accept(t.Context(), []*journal.Record{e}, now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// finish brings the delivery that is due into a state.
func (s *store) finish(t *testing.T, state journal.State) {
	t.Helper()
	work, err := s.Take(t.Context(), clock(), clock().Add(time.Minute), journal.Wanted{Deliveries: 1})
	if err != nil || len(work) != 1 {
		t.Fatal(work, err)
	}
	if _, err := s.Finish(t.Context(), []journal.Outcome{{Held: work[0].Held, State: state, Due: clock().Add(time.Hour), Error: "status 500"}}); err != nil {
		t.Fatal(err)
	}
}

// follower reads a tail.
type follower struct {
	t    *testing.T
	tail *tail.Tail
	at   string // where it is
	left int    // how many were left out
}

func follow(t *testing.T, f *tail.Feed, filter tail.Filter, from tail.From) *follower {
	t.Helper()
	tl, err := f.Follow(filter, from)
	if err != nil {
		t.Fatal(err)
	}
	return &follower{t, tl, from.After, 0}
}

// read returns what the tail is told in so much time, in words. It ends a moment later, for the feed looks at whole seconds: what
// the test does next must not run beside a look.
func (f *follower) read(d time.Duration) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), d+time.Millisecond)
	defer cancel()
	var told []string
	for {
		m, err := f.tail.Next(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return strings.Join(told, " ")
		case err != nil:
			return strings.Join(append(told, err.Error()), " ")
		}
		if m.At != "" {
			f.at = m.At
		}
		switch m.Kind {
		case tail.Beat:
		case tail.Arrived:
			told = append(told, m.Event.Key)
		case tail.Changed:
			told = append(told, m.Event.Key+":"+string(m.Event.State()))
		case tail.LeftOut:
			if !m.Before.IsZero() {
				told = append(told, "older")
				continue
			}
			f.left += m.Count
			told = append(told, fmt.Sprint("left out ", m.Count))
		default:
			told = append(told, string(m.Kind))
		}
	}
}

func (f *follower) reads(d time.Duration, want string) {
	f.t.Helper()
	if got := f.read(d); got != want {
		f.t.Errorf("told %.300q, want %q", got, want)
	}
}

func newFeed(t *testing.T, s *store) *tail.Feed {
	f := tail.New(s, clock)
	t.Cleanup(f.Close)
	return f
}

// inTime runs a test in time of its own.
func inTime(t *testing.T, test func(t *testing.T, s *store, f *tail.Feed)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		test(t, s, newFeed(t, s))
	})
}

// What any gateway accepts is told once, also if its commit becomes visible after that of later identifiers.
func TestLateCommitsAreTold(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		a, b := journal.NewIDs(1, 0), journal.NewIDs(2, 0)
		s.accept(t, a.Next(clock()), "before")
		tl := follow(t, f, tail.Filter{}, tail.From{})
		tl.reads(5*time.Second, "")
		slow, slower := b.Next(clock()), b.Next(clock())
		s.accept(t, a.Next(clock()), "quick")
		tl.reads(5*time.Second, "quick")
		s.accept(t, slow, "slow")
		tl.reads(15*time.Second, "slow")
		s.accept(t, slower, "slower")
		tl.reads(15*time.Second, "slower")
		tl.reads(5*time.Minute, "")
	})
}

// A tail tells what its filter chooses, and what becomes of that while it is young.
func TestFilterAndStates(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		ids := journal.NewIDs(1, 0)
		all, some, dead := follow(t, f, tail.Filter{}, tail.From{}), follow(t, f, tail.Filter{Source: "billing", Type: "invoice.*"}, tail.From{}), follow(t, f, tail.Filter{State: journal.Dead}, tail.From{})
		all.reads(2*time.Second, "")
		s.accept(t, ids.Next(clock()), "a")
		s.accept(t, ids.Next(clock()), "b", func(r *journal.Record) { r.Source = "shop" })
		s.accept(t, ids.Next(clock()), "c", func(r *journal.Record) { r.Type = "charge" })
		all.reads(2*time.Second, "a b c")
		s.finish(t, journal.Dead)
		s.finish(t, journal.Done)
		all.reads(2*time.Second, "a:dead b:done")
		some.reads(time.Second, "a a:dead")
		dead.reads(time.Second, "a:dead")
		all.reads(time.Minute, "")
		s.finish(t, journal.Done) // which nobody follows any more
		all.reads(time.Minute, "")
	})
}

// Who comes back goes on where it was, at whatever gateway: what came meanwhile is told, nothing twice, and states as they are.
func TestReconnect(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		other := newFeed(t, s)
		a, b := journal.NewIDs(1, 0), journal.NewIDs(2, 0)
		tl := follow(t, f, tail.Filter{}, tail.From{})
		tl.reads(2*time.Second, "")
		slow := b.Next(clock())
		s.accept(t, a.Next(clock()), "one")
		tl.reads(2*time.Second, "one")
		tl.tail.Close()
		tl.reads(time.Second, tail.ErrEnded.Error())
		s.finish(t, journal.Failed)
		s.accept(t, slow, "slow") // below what was told, of a gateway of which nothing was
		s.accept(t, a.Next(clock()), "two")
		tl = follow(t, other, tail.Filter{}, tail.From{After: tl.at})
		tl.reads(2*time.Second, "one:failed slow two")
		s.accept(t, a.Next(clock()), "three")
		tl.reads(2*time.Second, "three")
		tl.tail.Close()
		tl = follow(t, f, tail.Filter{}, tail.From{After: tl.at})
		tl.reads(20*time.Second, "one:failed slow:pending two:pending three:pending")
		time.Sleep(time.Hour)
		s.accept(t, b.Next(clock()), "four")
		tl.reads(2*time.Second, "four")
	})
}

// If a commit whose outcome its gateway did not learn becomes visible while nobody looks, nobody can know which event that is:
// then what is young is told again rather than that one not.
func TestLostCommitBetweenTails(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		ids := journal.NewIDs(1, 0)
		tl := follow(t, f, tail.Filter{}, tail.From{})
		tl.reads(2*time.Second, "")
		lost := ids.Next(clock())
		s.accept(t, ids.Next(clock()), "one")
		tl.reads(2*time.Second, "one")
		tl.tail.Close()
		s.accept(t, lost, "lost")
		tl = follow(t, f, tail.Filter{}, tail.From{After: tl.at})
		tl.reads(20*time.Second, "lost one")
	})
}

// A clock that was ahead for a moment hides nothing of what comes after it was set back.
func TestClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		s := newStore()
		f := tail.New(s, func() time.Time { return clock().Add(time.Duration(ahead.Load())) })
		t.Cleanup(f.Close)
		ids := journal.NewIDs(1, 0)
		tl := follow(t, f, tail.Filter{}, tail.From{})
		tl.reads(2*time.Second, "")
		s.accept(t, ids.Next(clock()), "before")
		tl.reads(2*time.Second, "before")
		ahead.Store(int64(5 * 365 * 24 * time.Hour))
		tl.reads(time.Minute, "")
		ahead.Store(0)
		tl.reads(2*time.Second, "")
		s.accept(t, ids.Next(clock()), "after")
		tl.reads(2*time.Second, "after")
	})
}

// A tail can begin with what came before, the newest, and says that there was more.
func TestSince(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		ids := journal.NewIDs(1, 0)
		for i := range tail.MaxBacklog + 2 {
			s.accept(t, ids.Next(clock()), fmt.Sprint(i), func(r *journal.Record) { r.Destinations = nil })
			time.Sleep(time.Second)
		}
		follow(t, f, tail.Filter{}, tail.From{Since: clock().Add(-3 * time.Second)}).reads(2*time.Second, "999 1000 1001")
		got := strings.Fields(follow(t, f, tail.Filter{}, tail.From{Since: clock().Add(-time.Hour)}).read(2 * time.Second))
		if len(got) != tail.MaxBacklog+1 || got[0] != "older" || got[1] != "2" || got[len(got)-1] != "1001" {
			t.Errorf("%d messages, %v", len(got), got[:2])
		}
		follow(t, f, tail.Filter{}, tail.From{Since: clock().Add(1000 * time.Hour)}).reads(2*time.Second, "")
		if _, err := f.Follow(tail.Filter{}, tail.From{After: "nonsense"}); !errors.Is(err, tail.ErrPosition) {
			t.Error(err)
		}
	})
}

// Whoever reads slowly is told how much was left out, and holds nobody up.
func TestSlowReader(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		ids := journal.NewIDs(1, 0)
		slow, quick := follow(t, f, tail.Filter{}, tail.From{}), follow(t, f, tail.Filter{}, tail.From{})
		slow.reads(2*time.Second, "")
		for range 10 {
			for range 100 {
				id := ids.Next(clock())
				s.accept(t, id, fmt.Sprint(id), func(r *journal.Record) { r.Destinations = nil })
			}
			if n := len(strings.Fields(quick.read(2 * time.Second))); n != 100 {
				t.Errorf("the quick one was told of %d", n)
			}
		}
		told := strings.Fields(slow.read(20 * time.Second))
		if n := len(told) - 3; n != tail.MaxWaiting-1 && n != tail.MaxWaiting || strings.Join(told[n:], " ") != fmt.Sprint("left out ", 1000-n) {
			t.Errorf("the slow one was told of %d, and then %q", n, told[n:])
		}
		for i := range 700 {
			id := ids.Next(clock())
			s.accept(t, id, fmt.Sprint(i), func(r *journal.Record) { r.Destinations = nil })
		}
		quick.left = 0
		at := strings.Fields(strings.ReplaceAll(quick.read(20*time.Second), "left out ", "-"))
		at = slices.DeleteFunc(at, func(word string) bool { return word[0] == '-' })
		if n := len(at); n < tail.MaxWaiting || n+quick.left != 700 {
			t.Errorf("of 700 at once it was told of %d, and that %d were left out", n, quick.left)
		}
	})
}

// While the store is away a tail says so, and afterwards tells what others accepted meanwhile, however long it was.
func TestStoreAway(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		ids := journal.NewIDs(1, 0)
		s.away.Store(true)
		tl := follow(t, f, tail.Filter{}, tail.From{})
		tl.reads(10*time.Second, "store_away")
		s.away.Store(false)
		tl.reads(10*time.Second, "store_back")
		s.away.Store(true)
		tl.reads(time.Minute, "store_away")
		s.accept(t, ids.Next(clock()), "meanwhile")
		tl.reads(10*time.Minute, "")
		s.away.Store(false)
		tl.reads(10*time.Second, "meanwhile store_back")
	})
}

// There are so many tails and no more; without any the store is not asked; and all end with the feed.
func TestBounds(t *testing.T) {
	inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
		time.Sleep(time.Hour)
		if s.asked.Load() != 0 {
			t.Errorf("with nobody there the store was asked %d times", s.asked.Load())
		}
		var all []*follower
		for range tail.Max {
			all = append(all, follow(t, f, tail.Filter{}, tail.From{}))
		}
		if _, err := f.Follow(tail.Filter{}, tail.From{}); !errors.Is(err, tail.ErrTooMany) {
			t.Errorf("one too many: %v", err)
		}
		time.Sleep(100 * time.Second)
		if n := s.asked.Load(); n < 90 || n > 110 {
			t.Errorf("with all there the store was asked %d times in 100 seconds", n)
		}
		all[0].tail.Close()
		all[0].tail.Close()
		all[0] = follow(t, f, tail.Filter{}, tail.From{})
		f.Disconnect()
		all[0].read(time.Second)
		all[0].reads(time.Second, tail.ErrEnded.Error())
		time.Sleep(2 * time.Second)
		s.asked.Store(0)
		time.Sleep(time.Hour)
		if s.asked.Load() != 0 {
			t.Errorf("when all had gone the store was asked %d times", s.asked.Load())
		}
		last := follow(t, f, tail.Filter{}, tail.From{})
		f.Close()
		last.reads(time.Second, tail.ErrEnded.Error())
		if _, err := f.Follow(tail.Filter{}, tail.From{}); !errors.Is(err, tail.ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// Whatever three gateways accept, in whatever order it becomes visible, and however often somebody comes back at another gateway:
// every event is told once.
func TestEveryEventOnce(t *testing.T) {
	for seed := range uint64(20) {
		inTime(t, func(t *testing.T, s *store, f *tail.Feed) {
			random := rand.New(rand.NewPCG(seed, 1))
			feeds := []*tail.Feed{f, newFeed(t, s), newFeed(t, s)}
			writers := []*journal.IDs{journal.NewIDs(1, 0), journal.NewIDs(2, 0), journal.NewIDs(3, 0)}
			tl := follow(t, f, tail.Filter{}, tail.From{})
			tl.read(2 * time.Second)
			pending := make([][]int64, len(writers)) // commits, in order for each gateway
			var accepted, told []string
			drain := func(d time.Duration) {
				for _, word := range strings.Fields(tl.read(d)) {
					if !strings.Contains(word, ":") {
						told = append(told, word)
					}
				}
			}
			for range 150 {
				switch w := random.IntN(len(writers)); random.IntN(6) {
				case 0, 1:
					for range 1 + random.IntN(5) {
						pending[w] = append(pending[w], writers[w].Next(clock()))
					}
				case 2, 3:
					for _, id := range pending[w] {
						accepted = append(accepted, fmt.Sprint(id))
						s.accept(t, id, fmt.Sprint(id))
					}
					pending[w] = nil
				case 4:
					drain(time.Duration(random.IntN(3000)) * time.Millisecond)
				case 5:
					tl.tail.Close()
					tl = follow(t, feeds[random.IntN(len(feeds))], tail.Filter{}, tail.From{After: tl.at})
				}
				if random.IntN(10) == 0 { // no commit takes longer than the window
					for w, ids := range pending {
						for _, id := range ids {
							accepted = append(accepted, fmt.Sprint(id))
							s.accept(t, id, fmt.Sprint(id))
						}
						pending[w] = nil
					}
				}
			}
			drain(30 * time.Second)
			slices.Sort(accepted)
			slices.Sort(told)
			if !slices.Equal(accepted, told) {
				t.Errorf("seed %d: %d were accepted, and %d told", seed, len(accepted), len(told))
			}
		})
	}
}
