package year

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// Verdict is what a play came to.
type Verdict struct {
	// Broken are the laws that were broken, in this order.
	Broken []string
	// Trace has a line for everything that happened.
	Trace []string
	// Counts is how often everything happened.
	Counts map[string]int
	// Lasted is how long it was in there.
	Lasted time.Duration
}

// world is all that there is in a play.
type world struct {
	*ledger
	network  *network
	plan     *Plan
	machines []*machine
	apps     map[string]*application
	senders  map[string]*sender
	hub      hub
	variant  atomic.Int64
	writers  atomic.Int64
	healed   atomic.Bool
	night    atomic.Int64 // until when no gateway runs, in Unix nanoseconds
	tasks    sync.WaitGroup
	books    chan struct{} // see booking
	quiet    chan struct{} // closed when nothing is disturbed any more
	admin    *http.Client
}

// Play plays a plan. It says of itself in t that it could not be played to its end; broken laws are in its verdict.
func Play(t *testing.T, p *Plan) (v *Verdict) {
	dir := ""
	if p.File {
		dir = folder(t)
	}
	synctest.Test(t, func(*testing.T) {
		sleepUntil(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // identifiers of events count from 2020
		var store book = memoryBook{journaltest.NewMemory()}
		if p.File {
			store = newFileBook(dir)
		}
		w := newWorld(p, store)
		w.run()
		v = &Verdict{Broken: w.broken, Trace: w.lines, Counts: w.counts, Lasted: time.Since(w.begin)}
	})
	return v
}

// folder returns an empty one, in memory where that is possible: nothing in there outlives the machine.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "year")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newWorld(p *Plan, store book) *world {
	l := newLedger(store)
	l.retain = 90 * 24 * time.Hour
	w := &world{ledger: l, network: newNetwork(l), plan: p, apps: map[string]*application{}, senders: map[string]*sender{},
		hub: hub{rings: map[chan struct{}]bool{}}, quiet: make(chan struct{}), books: make(chan struct{}, 1)}
	for i := range p.Gateways {
		w.machines = append(w.machines, w.newMachine(i))
	}
	w.apps[claiming], w.apps[plain], w.apps[direct] = w.newClaiming(), w.newPlain(), w.newDirect()
	for _, s := range sources() {
		w.senders[s] = w.newSender(s)
	}
	for _, e := range p.Events {
		for _, name := range e.names() {
			w.events[name] = &fact{Event: e, called: name, effects: map[string]int{}, attempts: map[string][]attempt{}, keys: map[string]map[string]bool{}}
		}
	}
	w.admin = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return w.network.dial(ctx, "operator", "operator", address)
	}}}
	return w
}

// booking begins what a store does and the ledger books as one, and returns its end: nobody sees the one without the other. It
// is no mutex, for which the time of a bubble would not wait.
func (w *world) booking() (end func()) {
	w.books <- struct{}{}
	return func() { <-w.books }
}

// writer is the number of a process among those that make identifiers.
func (w *world) writer() int { return int(w.writers.Add(1)) % (journal.MaxWriter + 1) }

func (w *world) isCalm() bool {
	select {
	case <-w.quiet:
		return true
	default:
		return false
	}
}

// run plays all of it.
func (w *world) run() {
	var supervisors sync.WaitGroup
	for _, a := range w.apps {
		a.up()
	}
	for _, m := range w.machines {
		m.up()
		supervisors.Go(m.supervise)
	}
	time.Sleep(time.Second)
	var sending sync.WaitGroup
	for _, e := range w.plan.Events {
		sending.Go(func() { w.senders[e.Source].play(e) })
	}
	for _, s := range w.plan.Steps {
		sleepUntil(w.begin.Add(time.Duration(s.At)))
		w.step(s)
	}
	sleepUntil(w.begin.Add(w.plan.end() + 10*time.Second))
	w.heal()
	sending.Wait()
	w.settleDown()
	for _, wait := range w.plan.Later {
		w.later(time.Duration(wait))
	}
	for _, m := range w.machines {
		m.want(false, true)
		m.down()
	}
	supervisors.Wait()
	for _, a := range w.apps {
		a.down()
	}
	w.tasks.Wait()
	w.settle()
	w.counted(w.store.Stored())
}

// later has everything sent once more, after a time in which no gateway ran.
func (w *world) later(wait time.Duration) {
	w.log("", "everything comes once more after "+wait.String())
	w.settle()
	for _, m := range w.machines {
		m.down()
	}
	time.Sleep(wait)
	for _, m := range w.machines {
		m.up()
	}
	time.Sleep(time.Minute) // what is too old is deleted
	var sending sync.WaitGroup
	for i, e := range w.plan.Events {
		w.count("copies/later")
		sending.Go(func() { w.senders[e.Source].insist(&e, e.name(), i) })
	}
	sending.Wait()
	w.settleDown()
}

// heal ends all that disturbs, and has everything run.
func (w *world) heal() {
	w.log("", "nothing is disturbed any more")
	w.healed.Store(true)
	w.variant.Store(0)
	w.network.heal()
	w.plenty()
	for _, m := range w.machines {
		m.faults.clear()
		if m.skew.Swap(0) != 0 {
			w.fired("clock/jumps")
		}
		m.away.Store(0)
		m.up()
	}
	for _, a := range w.apps {
		a.heal()
		a.up()
	}
	time.Sleep(20 * time.Second) // what stalls ends
	for i := range w.machines {
		for try := 0; !w.operate(i, "/reload", nil); try++ {
			if try == 60 {
				w.breaks("all comes to an end", "%s cannot be reloaded", gatewayName(i))
				break
			}
			time.Sleep(2 * time.Second)
		}
	}
	for _, name := range []string{claiming, plain} {
		w.resume(name, true)
	}
	close(w.quiet)
}

// longest is how long anything may stay open when nothing is disturbed any more: a clock that was ahead may have leased it, or
// have told when it is due.
func (w *world) longest() time.Duration {
	if w.skewed {
		return 30*time.Minute + maxSkew
	}
	return 30 * time.Minute
}

// settleDown waits until nothing is open any more.
func (w *world) settleDown() {
	for until := time.Now().Add(w.longest()); time.Now().Before(until); time.Sleep(5 * time.Second) {
		open := false
		for _, state := range w.openWork() {
			open = open || state != journal.Dead
		}
		if !open {
			break
		}
	}
}

// resume has an operator resume a destination, at whichever gateway answers. The last time nothing may keep it from that.
func (w *world) resume(name string, last bool) {
	w.mu.Lock()
	delete(w.paused, name) // before it is true
	w.mu.Unlock()
	for i := range 200 {
		if w.operate(i%len(w.machines), "/destinations/"+name+"/resume", map[string]any{"reason": "simulated"}) {
			return
		}
		time.Sleep(2 * time.Second)
		if healed := w.healed.Load(); healed != last {
			return // whoever heals resumes it
		}
	}
	if last {
		w.breaks("all comes to an end", "%s cannot be resumed", name)
	}
}

// operate asks the API of a gateway for something, and reports whether it was done.
func (w *world) operate(number int, path string, what any) bool {
	var body io.Reader
	if what != nil {
		data, err := json.Marshal(what)
		if err != nil {
			panic(err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+adminAddress(number)+"/api/v1"+path, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := w.admin.Do(req)
	if err != nil {
		w.log("operator", path+" at "+gatewayName(number)+": "+err.Error())
		return false
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	w.log("operator", fmt.Sprintf("%s at %s: %d %s", path, gatewayName(number), res.StatusCode, bytes.TrimSpace(text)))
	w.count("operator" + strings.TrimRight(path, "0123456789") + "/" + strconv.Itoa(res.StatusCode))
	return res.StatusCode/100 == 2
}
