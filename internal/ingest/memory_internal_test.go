package ingest

import (
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/quota"
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
	p := &quota.Pool{}
	p.Resize(bytes, false)
	return newBodyMemory(p.Share())
}

var here, there = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")

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

func isEmpty(t *testing.T, s *bodyMemory) {
	t.Helper()
	if s.share.Used() != 0 || s.leaving != 0 || s.wanted != 0 {
		t.Errorf("held %d, leaving %d, wanted %d", s.share.Used(), s.leaving, s.wanted)
	}
	if len(s.senders)+s.arriving.Len()+len(s.weights)+s.queue.Len() != 0 {
		t.Errorf("%d senders, %d bodies, %d weights, %d waiting are remembered", len(s.senders), s.arriving.Len(), len(s.weights), s.queue.Len())
	}
}
