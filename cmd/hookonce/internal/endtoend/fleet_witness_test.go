package endtoend

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// change is the event that an object has come to a version. Its id is made of both.
type change struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Version int    `json:"version"`
}

// arrival is an attempt as the shop saw it.
type arrival struct {
	change
	launch, token int // who made it, and the number that it bore
	key           string
	began, ended  time.Time
	status        int
}

// witness is a shop that writes down who tells it what, and watches the order of each object.
type witness struct {
	*httptest.Server
	mu       sync.Mutex
	more     chan struct{} // closed and replaced at every change
	arrivals []*arrival
	objects  map[string]*objectState
	faults   []string
}

// objectState is what the shop knows of an object.
type objectState struct {
	busy    bool
	done    int               // the newest version that was answered 200
	last    time.Time         // when the last attempt ended
	acked   map[int]time.Time // when the sender was told that a version is stored
	waiting time.Duration     // the longest time that a version waited for its turn to be used
}

func newWitness(t *testing.T) *witness {
	w := &witness{more: make(chan struct{}), objects: map[string]*objectState{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

// ServeHTTP takes a moment, so that gateways are killed while an attempt is under way, and fails now and
// then. The path is the number of the launch.
func (s *witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &arrival{key: r.Header.Get("Idempotency-Key")}
	var err error
	if a.launch, err = strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
		a.token, err = strconv.Atoi(r.Header.Get("Hookonce-Attempt"))
	}
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&a.change)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.begin(a)
	<-time.After(rand.N(5 * time.Millisecond))
	s.end(a)
	w.WriteHeader(a.status)
}

// object returns the state of an object. The caller holds the lock.
func (s *witness) object(name string) *objectState {
	if s.objects[name] == nil {
		s.objects[name] = &objectState{acked: map[int]time.Time{}}
	}
	return s.objects[name]
}

func (s *witness) begin(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.object(a.Object)
	a.began, a.status = time.Now(), http.StatusOK
	if rand.IntN(50) == 0 {
		a.status = http.StatusConflict // which is tried again, and says nothing about the shop's health
	}
	if o.busy {
		s.faults = append(s.faults, a.ID+" begins while another event of its object is under way")
	}
	if a.Version != o.done+1 && a.Version != o.done {
		s.faults = append(s.faults, fmt.Sprintf("%s comes after version %d", a.ID, o.done))
	}
	o.busy = true
	if acked, told := o.acked[a.Version]; told { // before that nobody knows since when there is something to deliver
		o.waiting = max(o.waiting, a.began.Sub(latest(o.last, acked)))
	}
	s.arrivals = append(s.arrivals, a)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *witness) end(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.object(a.Object)
	a.ended = time.Now()
	o.busy, o.last = false, a.ended
	if a.status == http.StatusOK {
		o.done = max(o.done, a.Version)
	}
	close(s.more)
	s.more = make(chan struct{})
}

// acknowledged notes what a sender was told.
func (s *witness) acknowledged(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object(c.Object).acked[c.Version] = time.Now()
}

// await waits until done, which is called under the lock, and reports false when it took too long.
func (s *witness) await(limit time.Duration, done func() bool) bool {
	for timeout := time.After(limit); ; {
		s.mu.Lock()
		ok, more := done(), s.more
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-more:
		case <-timeout:
			return false
		}
	}
}

// awaitMore waits for n more attempts.
func (s *witness) awaitMore(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	target := len(s.arrivals) + n
	s.mu.Unlock()
	if !s.await(2*patience, func() bool { return len(s.arrivals) >= target }) {
		t.Fatalf("nothing is delivered any more")
	}
}

// awaitAll waits until everything that was acknowledged is done.
func (s *witness) awaitAll(t *testing.T) {
	t.Helper()
	all := func() bool {
		for _, o := range s.objects {
			if len(o.acked) > o.done {
				return false
			}
		}
		return true
	}
	if s.await(2*patience, all) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, o := range s.objects {
		if len(o.acked) > o.done {
			t.Errorf("object %s: %d versions were acknowledged, and %d are done", name, len(o.acked), o.done)
		}
	}
	t.FailNow()
}

// longest returns the longest time for which an object stood still although it had something to deliver.
func (s *witness) longest() (d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		d = max(d, o.waiting)
	}
	return d
}

// An object stands still from the moment when its sender was told of something to deliver: not while there is nothing, nor when
// the delivery comes before the sender knows.
func TestStandingStillBeginsWithTheAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &witness{more: make(chan struct{}), objects: map[string]*objectState{}}
		deliver := func(version int) {
			a := &arrival{change: change{Object: "a", Version: version}}
			s.begin(a)
			s.end(a)
		}
		deliver(1)
		time.Sleep(time.Minute)
		deliver(2)
		if d := s.longest(); d != 0 {
			t.Errorf("an object with nothing to deliver stood still for %v", d)
		}
		s.acknowledged(change{Object: "a", Version: 3})
		time.Sleep(time.Second)
		deliver(3)
		if d := s.longest(); d != time.Second {
			t.Errorf("an object with something to deliver stood still for %v, want a second", d)
		}
	})
}
