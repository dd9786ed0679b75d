package endtoend

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// planted is a run in which nothing is wrong, with two gateways that were never there.
type planted struct {
	*stage
	db   *sql.DB // of the store
	lost []int
}

// newPlanted has 40 events go through, and one harm.
func newPlanted(t *testing.T) *planted {
	p := &planted{stage: &stage{accounts: newAccounts(t, 30), faults: map[string]int{"gateway killed": 1}, stop: make(chan struct{}),
		gateways: []*member{standing(), standing()}}}
	p.halt = sync.OnceFunc(func() { close(p.stop) })
	p.alone = true
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // there is one for each connection
	p.db = db
	// Without the keys that keep rows apart: whether they did is what is asked.
	p.exec(`CREATE TABLE hookonce_events (id integer, source text, key text)`)
	p.exec(`CREATE TABLE hookonce_deliveries (event_id integer)`)
	p.exec(`CREATE TABLE hookonce_attempts (event_id integer, token integer, outcome text)`)
	for n := range p.load {
		p.stored(n)
		p.exec(`INSERT INTO hookonce_attempts VALUES (?, 1, 'failed'), (?, 2, 'done')`, n, n)
		p.acknowledged(n, 0, time.Now())
		p.deliver(n, 2, nil)
	}
	p.again("duplicate")
	p.remembers()
	p.recovering.Store(p.recovery(time.Now(), true))
	p.acknowledged(1, 0, time.Now())
	p.acknowledged(1, 1, time.Now())
	return p
}

// standing is a gateway that runs.
func standing() *member {
	return &member{process: &process{log: new(transcript), ended: make(chan struct{})}}
}

func (p *planted) exec(query string, args ...any) {
	if _, err := p.db.Exec(query, args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *planted) stored(n int) {
	p.exec(`INSERT INTO hookonce_events VALUES (?, ?, ?)`, n, sourceOf(n), fmt.Sprintf("evt_%d", n))
}

// deliver has an event come to its destination; change may falsify the request.
func (p *planted) deliver(n, attempt int, change func(h http.Header, body *string)) {
	h, body := http.Header{}, string(event(n))
	h.Set("Idempotency-Key", fmt.Sprintf("%s:evt_%d", sourceOf(n), n))
	h.Set("Hookonce-Attempt", fmt.Sprint(attempt))
	if change != nil {
		change(h, &body)
	}
	if sourceOf(n) == "claims" {
		p.arrives(h, "claims")
		p.effects(n)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header = h
	p.count(httptest.NewRecorder(), r)
}

// effects has the application do what event n is about.
func (p *planted) effects(n int) {
	if _, err := p.accounts.db.Exec(`INSERT INTO effects (n) VALUES (?)`, n); err != nil {
		p.t.Fatal(err)
	}
}

// gateway answers every event with the word.
func (p *planted) gateway(word string) (addr string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Hookonce-Status", word) }))
	p.t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// again sends a copy to a gateway that answers so.
func (p *planted) again(word string) { p.sender([]string{p.gateway(word)}, nil).copy(0, 1, event(1)) }

// remembers sends copies in the end.
func (p *planted) remembers() { p.recall([]string{p.gateway("duplicate")}) }

// recovery begins one, from a harm to the store or to a gateway.
func (p *planted) recovery(since time.Time, store bool) *recovery {
	r := newRecovery("standby promoted", since, since, -1, len(p.gateways), store)
	r.commits.Store(since.UnixNano())
	return r
}

// gone is an address where nobody is.
func (p *planted) gone() string {
	s := httptest.NewServer(nil)
	s.Close()
	return strings.TrimPrefix(s.URL, "http://")
}

// wrong judges.
func (p *planted) wrong() []string {
	r := record{Faults: p.faults}
	var err error
	if r.Stored, err = p.holdings(p.db, "hookonce_"); err != nil {
		p.t.Fatal(err)
	}
	p.book(&r, p.lost)
	return r.wrong()
}

// TestRecordSeesWhatIsPlanted: a run of record that has nothing wrong is judged so, and each single thing that may be wrong is seen.
func TestRecordSeesWhatIsPlanted(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for name, c := range map[string]struct {
		plant func(p *planted)
		want  string // empty: nothing is wrong
	}{
		"nothing": {func(*planted) {}, ""},

		"an event is not delivered": {func(p *planted) { p.delivered.words[0].And(^uint64(1 << 1)) }, "1 events lost"},
		"an event is delivered when all gateways began anew, and not before": {func(p *planted) { p.lost = []int{3} }, "1 events lost"},
		"an effect is there twice": {func(p *planted) { p.effects(20) }, "1 effects doubled"},
		"a copy is taken for new":  {func(p *planted) { p.again("accepted") }, "1 copies taken for new"},
		"a copy is a conflict":     {func(p *planted) { p.again("conflict") }, "1 copies taken for new"},
		"an event goes past the store": {func(p *planted) {
			p.sender([]string{p.gateway("unprotected")}, nil).insist(1, func(int) int { return 0 })
		}, `"unprotected"`},
		"an event comes under another key": {func(p *planted) {
			p.deliver(31, 1, func(h http.Header, _ *string) { h.Set("Idempotency-Key", "orders:evt_32") })
		}, "1 deliveries under another key"},
		"an event comes to the wrong application": {func(p *planted) {
			h := http.Header{"Idempotency-Key": {"claims:evt_1"}, "Hookonce-Attempt": {"1"}}
			p.arrives(h, "claims")
		}, "1 deliveries under another key"},
		"an event comes with another amount": {func(p *planted) {
			p.deliver(31, 1, func(_ http.Header, body *string) { *body = strings.Replace(*body, `"amount":31`, `"amount":30`, 1) })
		}, "1 deliveries under another key, or with another body"},
		"an event comes again, and nothing was harmed": {func(p *planted) { p.deliver(1, 2, nil) }, "1 deliveries repeated although nothing"},
		"an event comes again, and nothing was harmed, beside other tests": {func(p *planted) {
			p.alone = false
			p.deliver(1, 2, nil)
		}, ""},
		"an event comes again after a harm": {func(p *planted) {
			p.disturb()()
			p.deliver(1, 2, nil)
		}, ""},
		"an event comes again after a harm, although it was on record as done": {func(p *planted) {
			p.disturb()()
			p.deliver(1, 3, nil)
		}, "1 events delivered again after that was on record as done"},
		"an application is told again what is on record as done": {func(p *planted) {
			p.arrives(http.Header{"Idempotency-Key": {"claims:evt_20"}, "Hookonce-Attempt": {"3"}}, "claims")
		}, "1 events delivered again after that was on record as done"},

		"an event is not in the store":     {func(p *planted) { p.exec(`DELETE FROM hookonce_events WHERE id = 1`) }, "1 events acknowledged that the store does not know"},
		"an event is in the store twice":   {func(p *planted) { p.exec(`INSERT INTO hookonce_events VALUES (100, 'orders', 'evt_1')`) }, "1 events stored twice"},
		"an event is stored for another":   {func(p *planted) { p.exec(`INSERT INTO hookonce_events VALUES (100, 'claims', 'evt_1')`) }, "1 events stored that nobody sent"},
		"an event is stored without a key": {func(p *planted) { p.exec(`INSERT INTO hookonce_events VALUES (100, 'orders', NULL)`) }, "1 events stored that nobody sent"},
		"a delivery is still to be made":   {func(p *planted) { p.exec(`INSERT INTO hookonce_deliveries VALUES (1)`) }, "1 deliveries still to be made"},
		"a delivery is not on record":      {func(p *planted) { p.exec(`DELETE FROM hookonce_attempts WHERE event_id = 1`) }, "1 events delivered without a word of it"},
		"a delivery is on record twice":    {func(p *planted) { p.exec(`INSERT INTO hookonce_attempts VALUES (1, 3, 'done')`) }, "1 deliveries twice on record as done"},

		"a gateway does not come back, and the events go on": {func(p *planted) {
			p.recovers(p.recovery(time.Now(), false), nil, time.Millisecond)
		}, "acknowledge nothing: [0 1]"},
		"a gateway does not come back, and the events end": {func(p *planted) {
			sent := make(chan struct{})
			close(sent)
			p.recovers(p.recovery(time.Now(), false), sent, time.Hour)
			p.rollCall([]string{p.gateway("accepted"), p.gone()}, 50*time.Millisecond)
			for i := range p.called {
				p.stored(p.load + i)
				p.exec(`INSERT INTO hookonce_attempts VALUES (?, 1, 'done')`, p.load+i)
				p.deliver(p.load+i, 1, nil)
			}
		}, "gateway 1 acknowledges nothing"},
		"one gateway is long in coming back, and another is not": {func(p *planted) {
			r := p.recovery(ago(promptly+time.Second), true)
			p.recovering.Store(r)
			r.gateways[0].Store(r.since.Add(time.Millisecond).UnixNano())
			r.silent.Add(-1)
			p.acknowledged(1, 1, time.Now())
		}, "after all that it needs was there"},
		"a gateway is long in coming back to a store that was never away": {func(p *planted) {
			r := p.recovery(ago(promptly+time.Second), false)
			r.commits.Store(0)
			p.recovering.Store(r)
			p.acknowledged(1, 0, time.Now())
			p.acknowledged(1, 1, time.Now())
		}, "after all that it needs was there"},
		"the store is long in coming back": {func(p *planted) {
			r := p.recovery(ago(time.Minute), true)
			r.commits.Store(time.Now().UnixNano())
			p.recovering.Store(r)
			p.acknowledged(1, 0, time.Now())
			p.acknowledged(1, 1, time.Now())
		}, ""},
		"a gateway that was killed is long in starting": {func(p *planted) { p.starts.Record(startsWithin + 1) }, "to start"},
		"a gateway is long in coming back, and in starting, beside other tests": {func(p *planted) {
			p.alone = false
			p.starts.Record(startsWithin + 1)
			r := p.recovery(ago(promptly+time.Second), true)
			p.recovering.Store(r)
			p.acknowledged(1, 0, time.Now())
			p.acknowledged(1, 1, time.Now())
		}, ""},
		"a gateway ends by itself": {func(p *planted) {
			p.gateways[1].err = errors.New("exit status 2")
			close(p.gateways[1].ended)
			p.running()
		}, "gateway 1 ended by itself: exit status 2"},
		"a gateway that was killed had written of a race": {func(p *planted) {
			fmt.Fprintln(p.gateways[0].log, "WARNING: DATA RACE")
			p.read(0)
		}, "gateway 0: it wrote"},

		"no copy was sent under load": {func(p *planted) { p.copies.Add(-1) }, "nothing was tried: no copies under load"},
		"no copy was sent in the end": {func(p *planted) { p.copies.Add(-p.recalled.Swap(0)) }, "nothing was tried: no copies in the end"},
		"nothing was harmed":          {func(p *planted) { clear(p.faults) }, "nothing was tried: no harm"},
		"nothing recovered":           {func(p *planted) { p.recovered = newAccounts(p.t, 1).recovered }, "nothing was tried: no recoveries"},
		"the application did nothing": {func(p *planted) { p.noEffects() }, "nothing was tried: no effects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanted(t)
			c.plant(p)
			switch wrong := p.wrong(); {
			case c.want == "" && len(wrong) == 0:
			case c.want == "" || len(wrong) != 1 || !strings.Contains(wrong[0], c.want):
				t.Errorf("the judge says %q, want %q alone", wrong, c.want)
			}
		})
	}
}

// noEffects takes back what the application did.
func (p *planted) noEffects() {
	if _, err := p.accounts.db.Exec(`DELETE FROM effects`); err != nil {
		p.t.Fatal(err)
	}
	p.delivered.set(0)
	p.delivered.set(20)
}

// Copies go to both sources, under load and in the end, and in the end to every gateway.
func TestCopiesReachEverySourceAndGateway(t *testing.T) {
	for _, load := range []int{3000, 200_000, 1_000_000, 1_500_000, 5_000_000} {
		step := recallStep(load)
		under, end, doors := map[string]int{}, map[string]int{}, map[int]int{}
		for n := range 50 * copiedPart * claimedPart {
			if copied(n) {
				under[sourceOf(n)]++
			}
		}
		for i := 0; i*step < load; i++ {
			end[sourceOf(i*step)]++
			doors[i%3]++
		}
		if len(under) != 2 || len(end) != 2 || len(doors) != 3 {
			t.Errorf("of %d events, copies under load %v, in the end %v, to gateways %v", load, under, end, doors)
		}
	}
}
