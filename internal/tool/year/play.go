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
	sites    []*site
	atlas    atlas
	asked    atomic.Int64 // how often a name was looked up
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
		w := newWorld(p, newSites(p, dir))
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

// newSites returns the stores of a plan, with what tells those on each of work.
func newSites(p *Plan, dir string) (all []*site) {
	for i := range max(1, len(p.Cells)) {
		m := journaltest.NewMemory()
		s := &site{store: memoryBook{m}, hub: hub{rings: map[chan struct{}]bool{}}}
		m.Now = func() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }
		if p.File {
			s.store = newFileBook(dir)
		}
		if len(p.Cells) > 0 {
			s.name = cellNames[i]
		}
		all = append(all, s)
	}
	return all
}

func newWorld(p *Plan, sites []*site) *world {
	l := newLedger(sites)
	l.retain = 90 * 24 * time.Hour
	w := &world{ledger: l, network: newNetwork(l), plan: p, apps: map[string]*application{}, senders: map[string]*sender{},
		sites: sites, quiet: make(chan struct{}), books: make(chan struct{}, 1)}
	w.atlas.busy, w.routes = make(chan struct{}, 1), w.atlas.numbered
	first := drawn{1, map[string]int{}}
	for i, s := range sites { // one owns all at first, as it has to
		first.weights[s.name] = max(0, 1-i)
	}
	w.atlas.add(first)
	for i := range p.Gateways {
		m := w.newMachine(i)
		w.machines = append(w.machines, m)
		w.homes[m.name] = m.site.name
	}
	w.apps[claiming], w.apps[plain], w.apps[direct] = w.newClaiming(), w.newPlain(), w.newDirect()
	for _, s := range sources() {
		w.senders[s] = w.newSender(s)
	}
	for _, e := range p.Events {
		for _, name := range e.names() {
			w.events[name] = &fact{Event: e, called: name, effects: map[string]int{}, attempts: map[string][]attempt{}}
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
	w.atlas.loses.Wait()
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
	for i, m := range w.machines {
		m.told.Store(int64(w.atlas.last()))
		for try := 0; !m.site.gone.Load() && !w.operate(i, "/reload", nil); try++ {
			if try == 60 {
				w.breaks("all comes to an end", "%s cannot be reloaded", gatewayName(i))
				break
			}
			time.Sleep(2 * time.Second)
		}
	}
	for _, s := range w.sites {
		for _, name := range []string{claiming, plain} {
			w.resume(s, name, true)
		}
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

// resume has an operator resume a destination of a store, at whichever gateway answers. The last time nothing may keep it from
// that.
func (w *world) resume(s *site, name string, last bool) {
	w.mu.Lock()
	delete(w.paused, place{s.name, name}) // before it is true
	w.mu.Unlock()
	for i := range 200 {
		m := w.machines[i%len(w.machines)]
		switch {
		case s.gone.Load():
			return
		case m.site != s:
			continue
		case w.operate(m.number, "/destinations/"+name+"/resume", map[string]any{"reason": "simulated"}):
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
