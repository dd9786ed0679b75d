package ingest

import (
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// socket is a connection whose reads can be ended.
type socket struct {
	*httptest.ResponseRecorder
	ended chan struct{}
}

func newSocket() *socket { return &socket{httptest.NewRecorder(), make(chan struct{}, 1)} }

func (s *socket) SetReadDeadline(time.Time) error {
	s.ended <- struct{}{}
	return nil
}

func newMemoryOf(bytes int64) *bodyMemory {
	all := &bodies{}
	all.Resize(bytes, false)
	return all.source()
}

var here, there, elsewhere = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("203.0.113.1")

// What was verified counts no more towards its address: a sender whose events wait for the store has more of them taken.
func TestVerifiedCountsNoMore(t *testing.T) {
	s := newMemoryOf(3000)
	first, second := s.hold(here, httptest.NewRecorder()), s.hold(here, httptest.NewRecorder())
	if !first.Take(1000) || !first.complete() {
		t.Fatal("no room in an empty one")
	}
	if second.Take(700) {
		t.Fatal("an address holds more than is left beside it")
	}
	first.verified()
	if !second.Take(700) {
		t.Error("what is verified still counts towards its address")
	}
	second.release()
	first.release()
	isEmpty(t, s)
}

// Whoever needs room waits for that of whoever is given up, and nothing of it is lost.
func TestRoomOfThoseGivenUp(t *testing.T) {
	for name, end := range map[string]func(*requestState){
		"all at once":   func(h *requestState) { h.release() },
		"by and by":     func(h *requestState) { h.Give(500); h.release() },
		"as it arrives": func(h *requestState) { h.complete(); h.release() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newMemoryOf(3000)
			idle, quick := newSocket(), newSocket()
			stalled, asks := s.hold(here, idle), s.hold(there, quick)
			if !stalled.Take(2000) {
				t.Fatal("no room in an empty one")
			}
			got := make(chan bool)
			go func() { got <- asks.Take(2000) }()
			<-idle.ended // it is told to go
			if stalled.Take(1) {
				t.Error("who was given up gets more")
			}
			select {
			case <-got:
				t.Fatal("the room is given away twice")
			default:
			}
			end(stalled)
			if !<-got {
				t.Fatal("the room that was left is not given to who asked for it")
			}
			asks.release()
			isEmpty(t, s)
		})
	}
}

// Who stalled goes, and then the oldest of the address that holds the most; and nobody goes for an
// address that holds more than any other.
func TestWhoGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration // that the older one grew, the younger one did
		complete bool          // the younger one, and waits to be verified
		from     netip.Addr    // asks
		goes     string
	}{
		"neither stalled":                  {0, false, elsewhere, "heavy"},
		"the older one almost":             {stallTime - 1, false, elsewhere, "heavy"},
		"the older one did":                {stallTime, false, elsewhere, "light"},
		"for one of its own address":       {0, false, there, "heavy"},
		"for the address that holds less":  {0, false, here, "heavy"},
		"for the address that holds more":  {0, true, there, ""},
		"that, and the older one stalled":  {stallTime, true, there, "light"},
		"the one that holds more complete": {0, true, elsewhere, "light"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMemoryOf(3000)
				sockets := map[string]*socket{"light": newSocket(), "heavy": newSocket()}
				light, heavy := s.hold(here, sockets["light"]), s.hold(there, sockets["heavy"])
				if !light.Take(1000) {
					t.Fatal("no room in an empty one")
				}
				time.Sleep(c.after)
				if !heavy.Take(1300) {
					t.Fatal("no room beside another one")
				}
				if c.complete {
					heavy.complete()
				}
				asks, got := s.hold(c.from, newSocket()), make(chan bool, 1)
				go func() { got <- asks.Take(900) }()
				synctest.Wait()
				for which, told := range sockets {
					if (len(told.ended) > 0) != (which == c.goes) {
						t.Errorf("the %s one was told to go: %v", which, len(told.ended) > 0)
					}
				}
				heavy.release()
				light.release()
				if ok := <-got; ok != (c.goes != "") {
					t.Errorf("there was room: %v", ok)
				}
				asks.release()
				isEmpty(t, s)
			})
		})
	}
}

// Where nothing of its own source makes room, a body that has stalled in a source that holds more goes.
func TestWhichSourceGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration // that the noisy source's body grew, another one asks
		complete bool          // is the noisy source's body
		own      bool          // the quiet source has a body that has stalled, too
		noisy    bool          // asks
		goes     string
	}{
		"one that stalled":                    {after: stallTime, goes: "noisy"},
		"one that almost has":                 {after: stallTime - 1},
		"one that is complete":                {after: stallTime, complete: true},
		"one of the same source":              {after: stallTime, own: true, goes: "quiet"},
		"none, for a source that holds more":  {after: stallTime, own: true, complete: true, noisy: true},
		"one of its own, where it holds more": {after: stallTime, own: true, noisy: true, goes: "noisy"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &bodies{}
				all.Resize(4000, true)
				noisy, quiet := all.source(), all.source()
				sockets := map[string]*socket{"noisy": newSocket(), "quiet": newSocket()}
				large, small := noisy.hold(here, sockets["noisy"]), quiet.hold(there, sockets["quiet"])
				if !large.Take(3500) || c.own && !small.Take(300) {
					t.Fatal("no room for the first")
				}
				time.Sleep(c.after)
				if c.complete {
					large.complete()
				}
				in, n := quiet, int64(600)
				if c.own {
					n = 300
				}
				if c.noisy {
					in = noisy
				}
				asks, got := in.hold(elsewhere, newSocket()), make(chan bool, 1)
				go func() { got <- asks.Take(n) }()
				synctest.Wait()
				for which, told := range sockets {
					if (len(told.ended) > 0) != (which == c.goes) {
						t.Errorf("the body of the %s source was told to go: %v", which, len(told.ended) > 0)
					}
				}
				small.release()
				large.release()
				if ok := <-got; ok != (c.goes != "") {
					t.Errorf("there was room: %v", ok)
				}
				asks.release()
				isEmpty(t, noisy)
				isEmpty(t, quiet)
			})
		})
	}
}

// Bodies that never end, at many sources, leave room for one of 1 MiB at a source that nobody attacks.
func TestStalledSourcesStarveNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attacked, addresses, step, usual = 12, 4, 32 << 10, 1 << 20
		all := &bodies{}
		all.Resize(128<<20, true)
		var held sync.WaitGroup
		stop := make(chan struct{})
		for range attacked {
			s := all.source()
			for full := 0; full < addresses; { // until none of them gets more
				told := newSocket()
				h := s.hold(netip.AddrFrom4([4]byte{192, 0, 2, byte(full)}), told)
				all.mu.Lock()
				ok := s.grab(h, step)
				all.mu.Unlock()
				if !ok {
					full++
					continue
				}
				held.Go(func() {
					select {
					case <-told.ended:
					case <-stop:
					}
					h.release()
				})
			}
		}
		if left := all.Size() - all.Used(); left > usual/2 {
			t.Fatalf("%d bytes are left", left)
		}
		time.Sleep(stallTime)
		h := all.source().hold(elsewhere, newSocket())
		for n := int64(4 << 10); n <= usual; n *= 2 { // as a body grows
			if !h.Take(n) {
				t.Errorf("no room for %d bytes", n)
				break
			}
			if n > 4<<10 {
				h.Give(n / 2)
			}
		}
		h.release()
		close(stop)
		held.Wait()
		for _, s := range all.sources {
			isEmpty(t, s)
		}
	})
}

func isEmpty(t *testing.T, s *bodyMemory) {
	t.Helper()
	if s.share.Used() != 0 || s.leaving != 0 || s.wanted != 0 {
		t.Errorf("held %d, leaving %d, wanted %d", s.share.Used(), s.leaving, s.wanted)
	}
	if len(s.senders)+s.arriving.Len()+len(s.weights)+s.queue.Len() != 0 {
		t.Errorf("%d senders, %d bodies, %d weights, %d waiting are remembered", len(s.senders), s.arriving.Len(), len(s.weights), s.queue.Len())
	}
}
