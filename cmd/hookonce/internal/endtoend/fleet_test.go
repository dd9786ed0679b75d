package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/provider"
)

// fleet is three gateways on one Postgres, whose one destination keeps the order of objects, and senders
// that tell them about objects.
type fleet struct {
	t     *testing.T
	dir   string
	dsn   string
	lease time.Duration // of deliveries
	shop  *witness

	senders  sync.WaitGroup
	stop     chan struct{} // ends the senders
	accepted moments       // when something was acknowledged

	mu       sync.Mutex
	gateways [3]*member
	launches int
	killed   map[int]bool // by launch
	outages  []outage     // of the database
}

// member is one gateway of the fleet.
type member struct {
	*process
	launch int
}

// outage is a time during which the database was away.
type outage struct{ from, to time.Time }

// Each launch delivers to a path of its own, so that the shop knows who tells it something.
const fleetConfig = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: "%s"
delivery: {backoff: 50ms, timeout: 3m, lease: %v}
destinations:
  - {name: ledger, url: "%s/%d", order: by_resource}
sources:
  - name: orders
    provider: custom
    secrets: [` + killSecret + `]
    routes: [{to: ledger}]
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event: {key: [["json:$.id"]], resource: ["json:$.object"]}
      order: {by: "json:$.version"}
`

// usualLease is that of a gateway which is told of none. Where nobody measures how soon others take over, longLease keeps a gateway
// that a busy machine does not let run from losing what it has under way.
const (
	usualLease = 9 * time.Second
	longLease  = 30 * time.Second
)

// newFleet launches the gateways.
func newFleet(t *testing.T, dsn string, lease time.Duration) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), dsn: dsn, lease: lease, shop: newWitness(t), stop: make(chan struct{}), killed: map[int]bool{}}
	for i := range f.gateways {
		f.launch(i)
	}
	return f
}

// launch starts the gateway in a place.
func (f *fleet) launch(i int) {
	f.t.Helper()
	f.mu.Lock()
	f.launches++
	n := f.launches
	f.mu.Unlock()
	file := filepath.Join(f.dir, fmt.Sprintf("launch-%d.yaml", n))
	if err := os.WriteFile(file, fmt.Appendf(nil, fleetConfig, f.dsn, f.lease, f.shop.URL, n), 0o600); err != nil {
		f.t.Fatal(err)
	}
	p := mustLaunch(f.t, f.dir, "serve", "--config", file)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gateways[i] = &member{p, n}
}

// kill kills the gateway in a place as kill -9 does, at a random moment, and launches another.
func (f *fleet) kill(i int) {
	<-time.After(rand.N(300 * time.Millisecond))
	f.mu.Lock()
	g := f.gateways[i]
	f.killed[g.launch] = true
	f.mu.Unlock()
	if err := g.kill(); err != nil {
		f.t.Error(err)
	}
	f.launch(i)
}

// away notes that the database is away while it does something.
func (f *fleet) away(do func() error) {
	f.t.Helper()
	from := time.Now()
	if err := do(); err != nil {
		f.t.Fatal(err)
	}
	f.outages = append(f.outages, outage{from, time.Now()})
}

// send begins to send the versions of so many objects, one after the other, until finish.
func (f *fleet) send(objects int) {
	for n := range objects {
		f.senders.Go(func() { f.tell(fmt.Sprint(n)) })
	}
}

// lead is how far a sender goes ahead of what the shop has done.
const lead = 5

// tell sends the versions of an object, each to one gateway after the other until one acknowledges it.
func (f *fleet) tell(object string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: patience}
	defer client.CloseIdleConnections()
	for version := 1; ; version++ {
		c := change{fmt.Sprintf("%s/%d", object, version), object, version}
		if !f.insist(client, c) {
			return
		}
		f.accepted.add()
		f.shop.acknowledged(c)
		f.shop.await(patience, func() bool { return f.shop.object(object).done > version-lead })
		select {
		case <-f.stop:
			return
		default:
		}
	}
}

// insist posts a change until it is acknowledged, and reports false when that takes too long.
func (f *fleet) insist(client *http.Client, c change) bool {
	signer := provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}})
	body, err := json.Marshal(c)
	if err != nil {
		f.t.Error(err)
		return false
	}
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(look) {
		f.mu.Lock()
		addr := f.gateways[rand.IntN(len(f.gateways))].addr
		f.mu.Unlock()
		status, err := postBody(client, signer, addr, body)
		switch {
		case err == nil && status/100 == 2:
			return true
		case err == nil && status != http.StatusServiceUnavailable:
			f.t.Errorf("%s was answered %d", c.ID, status)
			return false
		}
	}
	f.t.Errorf("%s was not acknowledged in time", c.ID)
	return false
}

// finish ends the senders, waits until everything is delivered, stops the gateways, and judges.
func (f *fleet) finish() {
	f.t.Helper()
	close(f.stop)
	f.senders.Wait()
	f.shop.awaitAll(f.t)
	for _, g := range f.gateways {
		if err := g.end(syscall.SIGTERM); err != nil {
			f.t.Errorf("the last stop: %v", err)
		}
	}
	f.judge(f.recorded())
	f.know(f.stored())
}

// attempt names an attempt on record.
type attempt struct {
	id    string
	token int
}

// recorded returns the outcomes on record.
func (f *fleet) recorded() map[attempt]string {
	f.t.Helper()
	all := map[attempt]string{}
	var a attempt
	var outcome string
	f.each(`SELECT e.key, a.token, a.outcome FROM hookonce.attempts a JOIN hookonce.events e ON e.id = a.event_id`,
		func() { all[a] = outcome }, &a.id, &a.token, &outcome)
	return all
}

// stored returns the ids of the events in the database.
func (f *fleet) stored() map[string]bool {
	f.t.Helper()
	all := map[string]bool{}
	var id string
	f.each(`SELECT key FROM hookonce.events`, func() { all[id] = true }, &id)
	return all
}

// each calls do with each row of an answer in what scan points to.
func (f *fleet) each(sql string, do func(), scan ...any) {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), f.dsn)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(f.t.Context(), sql)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(rows, scan, func() error { do(); return nil }); err != nil {
		f.t.Fatal(err)
	}
}

// know fails the test unless the database knows everything that was acknowledged or delivered.
func (f *fleet) know(stored map[string]bool) {
	f.t.Helper()
	f.shop.mu.Lock()
	defer f.shop.mu.Unlock()
	for name, o := range f.shop.objects {
		for version := range o.acked {
			if id := fmt.Sprintf("%s/%d", name, version); !stored[id] {
				f.t.Errorf("%s was acknowledged, and the database does not know it", id)
			}
		}
	}
	for _, a := range f.shop.arrivals {
		if !stored[a.ID] {
			f.t.Errorf("%s was delivered, and the database does not know it", a.ID)
		}
	}
}

// judge holds what the shop saw against what is on record. An attempt that is not on record has an
// unknown outcome, and there must be a reason for it; one that is on record as done is the last.
func (f *fleet) judge(recorded map[attempt]string) {
	f.t.Helper()
	s := f.shop
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.faults {
		f.t.Error(fault)
	}
	keys, done, unknown := map[string]string{}, map[string]bool{}, 0
	for _, a := range s.arrivals {
		if k := keys[a.ID]; k != "" && k != a.key || a.key == "" {
			f.t.Errorf("%s came under the keys %q and %q", a.ID, k, a.key)
		}
		keys[a.ID] = a.key
		if done[a.ID] {
			f.t.Errorf("%s came again after it was recorded as done", a.ID)
		}
		outcome, known := recorded[attempt{a.ID, a.token}]
		want := map[int]string{http.StatusOK: "done", http.StatusConflict: "failed"}[a.status]
		switch {
		case known && outcome != want:
			f.t.Errorf("attempt %d of %s was answered %d and is on record as %s", a.token, a.ID, a.status, outcome)
		case !known && !f.excused(a):
			f.t.Errorf("attempt %d of %s by launch %d is not on record, without a reason", a.token, a.ID, a.launch)
		case !known:
			unknown++
		}
		done[a.ID] = outcome == "done"
	}
	f.t.Logf("%d events in %d attempts; %d launches killed, %d outages; %d attempts of unknown outcome were repeated",
		len(keys), len(s.arrivals), len(f.killed), len(f.outages), unknown)
}

// recordedIn is how long after an attempt its outcome is on record, also on a machine that is busy.
const recordedIn = 9 * time.Second

// excused reports whether the outcome of an attempt may be unknown: its gateway was killed, or the
// database was away before it was on record.
func (f *fleet) excused(a *arrival) bool {
	for _, o := range f.outages {
		if a.began.Before(o.to) && a.ended.After(o.from.Add(-recordedIn)) {
			return true
		}
	}
	return f.killed[a.launch]
}
