package endtoend

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
)

var numbers = flag.Int("numbers", 1200, "how many events the test has whose numbers must agree")

const numbersConfig = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: "%s"
delivery: {backoff: 50ms, attempts: 3}
destinations:
  - {name: ledger, url: "%s/ledger"}
  - {name: mail, url: "%[2]s/mail"}
sources:
  - name: orders
    routes: [{to: ledger}, {to: mail}]` + numbersSource + `
  - name: bills
    routes: [{to: ledger}]` + numbersSource

const numbersSource = `
    provider: custom
    secrets: [` + killSecret + `]
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event: {key: [["json:$.id"]]}
`

// TestNumbersAgree lets a storm of events, copies, conflicts, forgeries and failures pass through three gateways on one
// Postgres, one of which is killed in the middle. Then every page of each gateway shows what the journal's tables hold. Of what
// was counted by the minute the killed gateway may take the last seconds with it; before and after, every count is exact.
//
// The usual run has 1 200 events; more: go test ./cmd/hookonce/internal/endtoend -run TestNumbersAgree -numbers 50000
func TestNumbersAgree(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	s := &numbersStorm{t: t, dsn: pgtest.DSN(t), dir: t.TempDir(), random: rand.New(rand.NewPCG(12, *seedOfNumbers))}
	s.receiver = httptest.NewServer(http.HandlerFunc(s.receive))
	t.Cleanup(s.receiver.Close)

	s.launch()
	third := *numbers / 3
	s.blow(0, third, nil)
	s.settle()
	s.stop()
	before := s.truth()
	s.sameCounts("before", before, s.counted(), nil)

	s.launch()
	killed := s.launched[1]
	s.blow(third, 2*third, killed)
	s.settle()
	s.stop()
	between := s.truth()
	lost := difference(between, s.counted())
	t.Logf("with the killed gateway went %v", lost)
	for what, n := range lost {
		most := s.toKilled.Load()
		if strings.HasPrefix(what, "stored_bytes ") {
			most *= 1 << 10
		}
		if n < 0 || n > most {
			t.Errorf("after the kill %s misses %d, and the killed gateway was sent %d requests", what, n, s.toKilled.Load())
		}
	}

	s.launch()
	s.blow(2*third, *numbers, nil)
	s.settle()
	after := s.untilCounted(lost)
	for _, g := range s.launched {
		s.pages(g, after, lost)
	}
	s.stop()
}

var seedOfNumbers = flag.Uint64("numbers-seed", 34, "what the storm of numbers is drawn from")

// counts are numbers by what they count: words of the journal with a source or destination.
type counts map[string]int64

func difference(a, b counts) counts {
	d := counts{}
	for k, n := range a {
		if n != b[k] {
			d[k] = n - b[k]
		}
	}
	for k, n := range b {
		if _, ok := a[k]; !ok && n != 0 {
			d[k] = -n
		}
	}
	return d
}

type numbersStorm struct {
	t        *testing.T
	dsn, dir string
	receiver *httptest.Server
	random   *rand.Rand
	launched []*process

	mu       sync.Mutex
	gone     *process // was killed
	failed   sync.Map // events whose first attempt failed where later ones do not
	forged   counts   // refused forgeries by source
	toKilled atomic.Int64
}

// receive is both destinations: what they answer follows from the event's number alone.
func (s *numbersStorm) receive(w http.ResponseWriter, r *http.Request) {
	var event struct{ N int }
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch mail := r.URL.Path == "/mail"; {
	case !mail && event.N%50 == 7:
		w.WriteHeader(http.StatusConflict) // always, until it is given up
	case mail && event.N%40 == 4:
		w.WriteHeader(http.StatusGone) // given up at once
	case mail && event.N%30 == 6:
		if _, again := s.failed.LoadOrStore(event.N, true); !again {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	}
}

// launch starts three gateways.
func (s *numbersStorm) launch() {
	s.launched, s.gone = nil, nil
	if s.forged == nil {
		s.forged = counts{}
	}
	file := filepath.Join(s.dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, numbersConfig, s.dsn, s.receiver.URL), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for range 3 {
		s.launched = append(s.launched, mustLaunch(s.t, s.dir, "serve", "--config", file))
	}
}

// stop ends the gateways that run, each of which stores what it counted.
func (s *numbersStorm) stop() {
	for _, g := range s.launched {
		if g == s.gone {
			continue
		}
		if err := g.end(syscall.SIGTERM); err != nil {
			s.t.Errorf("the stop: %v", err)
		}
	}
}

// request is one of the storm: an event, a copy of it, one with other content, or a forgery.
type request struct {
	n      int
	other  bool
	forged bool
}

// blow sends events with all that belongs to them, in an order that the seed says, and kills a gateway in the middle.
func (s *numbersStorm) blow(from, to int, doomed *process) {
	var first, again []request
	for n := from; n < to; n++ {
		first = append(first, request{n: n})
		if n%30 == 0 || n%30 == 1 {
			first = append(first, request{n: n, forged: true})
		}
		for range map[bool]int{n%5 == 0: 1}[true] + map[bool]int{n%20 == 0: 1}[true] {
			again = append(again, request{n: n})
		}
		if n%97 == 0 {
			again = append(again, request{n: n, other: true})
		}
	}
	for _, wave := range [][]request{first, again} {
		s.random.Shuffle(len(wave), func(i, j int) { wave[i], wave[j] = wave[j], wave[i] })
		work := make(chan request)
		var senders sync.WaitGroup
		for range 12 {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: patience}
			senders.Go(func() {
				defer client.CloseIdleConnections()
				for r := range work {
					s.send(client, r)
				}
			})
		}
		for i, r := range wave {
			if i == len(wave)/2 && doomed != nil {
				s.mu.Lock()
				s.gone = doomed
				s.mu.Unlock()
				if err := doomed.kill(); err != nil {
					s.t.Error(err)
				}
				doomed = nil
			}
			work <- r
		}
		close(work)
		senders.Wait()
	}
}

// send posts a request to one gateway after the other until it is answered.
func (s *numbersStorm) send(client *http.Client, r request) {
	source := [2]string{"orders", "bills"}[r.n%2]
	body := fmt.Appendf(nil, `{"id":"evt_%d","n":%d,"other":%t}`, r.n, r.n, r.other)
	signer := provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}})
	if r.forged {
		signer = provider.HMAC(provider.HMACConfig{Secrets: []string{"not_the_secret_of_this_test"}})
	}
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(look) {
		s.mu.Lock()
		g := s.launched[rand.IntN(len(s.launched))]
		gone := g == s.gone
		s.mu.Unlock()
		if gone {
			continue
		}
		if g == s.launched[1] {
			s.toKilled.Add(1)
		}
		status, err := postTo(client, signer, "http://"+g.addr+"/in/"+source, body)
		switch {
		case err != nil || status == http.StatusServiceUnavailable: // again
		case r.forged && status == http.StatusUnauthorized:
			s.mu.Lock()
			s.forged["rejected:signature_mismatch "+source]++
			s.mu.Unlock()
			return
		case !r.forged && status/100 == 2:
			return
		default:
			s.t.Errorf("event %d was answered %d", r.n, status)
			return
		}
	}
	s.t.Errorf("event %d was not answered in time", r.n)
}

// settle waits until nothing is under way and nothing waits for another try.
func (s *numbersStorm) settle() {
	s.t.Helper()
	for deadline := time.Now().Add(2 * patience); ; <-time.After(50 * time.Millisecond) {
		open := s.query(`SELECT 'open', count(*) FROM hookonce.deliveries WHERE state <> 'dead'`)["open"]
		if open == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d deliveries are still open", open)
		}
	}
}

// query returns numbers by their names.
func (s *numbersStorm) query(sql string) counts {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context())
	rows, err := conn.Query(s.t.Context(), sql)
	if err != nil {
		s.t.Fatal(err)
	}
	all, name, n := counts{}, "", int64(0)
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { all[name] = n; return nil }); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// truth is what the tables of the journal hold, by the words that tallies have for it, and what the senders of forgeries know.
func (s *numbersStorm) truth() counts {
	s.t.Helper()
	// What was handed back without an attempt, or failed while the destination was ill, has its first attempt under a later token.
	all := s.query(`
		WITH firsts AS (
			SELECT DISTINCT ON (a.event_id, a.destination) e.source, a.destination, a.outcome
			FROM hookonce.attempts a JOIN hookonce.events e ON e.id = a.event_id
			WHERE a.error NOT LIKE '%` + journal.SparedNote + `' ORDER BY a.event_id, a.destination, a.token)
		SELECT 'accepted ' || source, count(*) FROM hookonce.events GROUP BY 1
		UNION ALL SELECT 'stored ' || source, count(*) FROM hookonce.events GROUP BY 1
		UNION ALL SELECT 'stored_bytes ' || e.source, sum(length(b.header) + length(b.body))
			FROM hookonce.events e JOIN hookonce.bodies b ON b.event_id = e.id GROUP BY 1
		UNION ALL SELECT CASE g.kind WHEN 'conflict' THEN 'conflicts ' ELSE 'copies ' END || e.source, sum(g.copies)
			FROM hookonce.sightings g JOIN hookonce.events e ON e.id = g.event_id GROUP BY 1
		UNION ALL SELECT 'attempts ' || e.source || ' ' || a.destination, count(*)
			FROM hookonce.attempts a JOIN hookonce.events e ON e.id = a.event_id GROUP BY 1
		UNION ALL SELECT a.outcome || ' ' || e.source || ' ' || a.destination, count(*)
			FROM hookonce.attempts a JOIN hookonce.events e ON e.id = a.event_id GROUP BY 1
		UNION ALL SELECT 'first ' || source || ' ' || destination, count(*) FROM firsts GROUP BY 1
		UNION ALL SELECT 'first_failed ' || source || ' ' || destination, count(*) FROM firsts WHERE outcome <> 'done' GROUP BY 1`)
	maps.Copy(all, s.forged)
	return all
}

// counted is what was counted by the minute of the same.
func (s *numbersStorm) counted() counts {
	s.t.Helper()
	return s.query(`SELECT trim(what || ' ' || source || ' ' || destination), sum(n) FROM hookonce.tallies
		WHERE what IN ('accepted', 'stored', 'stored_bytes', 'copies', 'conflicts', 'attempts', 'done', 'failed', 'dead', 'first', 'first_failed',
			'rejected:signature_mismatch') GROUP BY 1`)
}

func (s *numbersStorm) sameCounts(when string, want, got, lost counts) {
	s.t.Helper()
	for what, n := range difference(difference(want, got), lost) {
		s.t.Errorf("%s: %s is counted %d, and %d of them are missing", when, what, got[what], n)
	}
}

// untilCounted waits until the gateways stored what they counted, and which copies came, and returns the truth.
func (s *numbersStorm) untilCounted(lost counts) counts {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		truth, got := s.truth(), s.counted()
		switch {
		case len(difference(difference(truth, got), lost)) == 0:
			return truth
		case time.Now().After(deadline):
			s.sameCounts("after", truth, got, lost)
			return truth
		}
	}
}

// page reads a page of the dashboard as the data that it shows.
func (s *numbersStorm) page(g *process, path string, into any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+g.admin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, into)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v\n%s", path, res.Status, err, body)
	}
}

// sum adds up the counts whose names begin with one word and contain others.
func (c counts) sum(what string, names ...string) (n int64) {
next:
	for k, count := range c {
		fields := strings.Fields(k)
		if fields[0] != what {
			continue
		}
		for _, name := range names {
			if !strings.Contains(" "+k+" ", " "+name+" ") {
				continue next
			}
		}
		n += count
	}
	return n
}

// pages holds every number of every page of a gateway against the truth.
func (s *numbersStorm) pages(g *process, truth, lost counts) {
	s.t.Helper()
	same := func(where string, got, want int64) {
		s.t.Helper()
		if got != want {
			s.t.Errorf("%s: %s is %d, and in truth %d", g.admin, where, got, want)
		}
	}
	counted := difference(truth, lost)
	dead := s.query(`SELECT destination || ' ' || error_kind || ' ' || status, count(*) FROM hookonce.deliveries WHERE state = 'dead' GROUP BY 1`)
	deadAt := counts{}
	for k, n := range dead {
		deadAt["dead "+k] = n
	}

	var failures struct {
		Open []struct {
			Destination, Error string
			Status             int
			Count, Dead        int64
		}
	}
	s.page(g, "/failures", &failures)
	groups := counts{}
	for _, f := range failures.Open {
		name := fmt.Sprintf("%s %s %d", f.Destination, f.Error, f.Status)
		groups[name] = f.Count
		same("/failures: dead of "+name, f.Dead, dead[name])
	}
	for name, n := range difference(dead, groups) {
		s.t.Errorf("%s: /failures: %s misses %d", g.admin, name, n)
	}

	var now struct {
		Sources []struct {
			Name string
			Hour struct{ Received, Verified, Accepted, Copies, Conflicts int64 } `json:"last_1h"`
		}
		Destinations []struct {
			Name          string
			Hour          struct{ First, First_failed, Attempts, Done, Failed, Dead int64 } `json:"last_1h"`
			Backlog, Dead int64
			Failures      []struct {
				Kind   string
				Status int
				Count  int64
			}
		}
		Numbers struct {
			First  struct{ First, First_failed int64 } `json:"first_attempts"`
			Events int64
			Rows   int64
		}
	}
	for deadline := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) { // counts of minutes are read every ten seconds
		s.page(g, "/", &now)
		var shown, want int64
		for _, o := range now.Sources {
			shown, want = shown+o.Hour.Accepted+o.Hour.Copies+o.Hour.Conflicts, want+counted.sum("accepted", o.Name)+counted.sum("copies", o.Name)+counted.sum("conflicts", o.Name)
		}
		for _, d := range now.Destinations {
			shown, want = shown+d.Hour.Attempts+d.Hour.First, want+counted.sum("attempts", d.Name)+counted.sum("first", d.Name)
		}
		if shown == want || time.Now().After(deadline) {
			break
		}
	}
	for _, o := range now.Sources {
		same("/: accepted of "+o.Name, o.Hour.Accepted, counted.sum("accepted", o.Name))
		same("/: copies of "+o.Name, o.Hour.Copies, counted.sum("copies", o.Name))
		same("/: conflicts of "+o.Name, o.Hour.Conflicts, counted.sum("conflicts", o.Name))
	}
	for _, d := range now.Destinations {
		same("/: backlog of "+d.Name, d.Backlog, 0)
		same("/: dead of "+d.Name, d.Dead, deadAt.sum("dead", d.Name))
		same("/: attempts at "+d.Name, d.Hour.Attempts, counted.sum("attempts", d.Name))
		same("/: done at "+d.Name, d.Hour.Done, counted.sum("done", d.Name))
		same("/: failed at "+d.Name, d.Hour.Failed, counted.sum("failed", d.Name))
		same("/: first at "+d.Name, d.Hour.First, counted.sum("first", d.Name))
		same("/: first failed at "+d.Name, d.Hour.First_failed, counted.sum("first_failed", d.Name))
		for _, f := range d.Failures {
			same("/: failures at "+d.Name, f.Count, dead[fmt.Sprintf("%s %s %d", d.Name, f.Kind, f.Status)])
		}
	}

	for _, d := range []string{"ledger", "mail"} {
		var one struct {
			Open []struct {
				State string
				Count int64
			}
		}
		s.page(g, "/destinations/"+d, &one)
		open := counts{}
		for _, o := range one.Open {
			open[o.State] = o.Count
		}
		same("/destinations/"+d+": dead", open["dead"], deadAt.sum("dead", d))
		same("/destinations/"+d+": open", open["pending"]+open["processing"]+open["failed"], 0)
	}

	var store struct {
		Stats struct{ Events, Pending, Processing, Failed, Dead int64 }
	}
	s.page(g, "/store", &store)
	same("/store: dead", store.Stats.Dead, deadAt.sum("dead"))
	same("/store: open", store.Stats.Pending+store.Stats.Processing+store.Stats.Failed, 0)

	for _, list := range []struct {
		filter, sql string
	}{
		{"state=dead", `EXISTS (SELECT FROM hookonce.deliveries d WHERE d.event_id = e.id AND d.state = 'dead')`},
		{"destination=mail&status=410", `EXISTS (SELECT FROM hookonce.deliveries d WHERE d.event_id = e.id AND d.destination = 'mail' AND d.status = 410)`},
		{"error=status&destination=ledger", `EXISTS (SELECT FROM hookonce.deliveries d WHERE d.event_id = e.id AND d.destination = 'ledger' AND d.error_kind = 'status')`},
		{"seen=conflict", `EXISTS (SELECT FROM hookonce.sightings g WHERE g.event_id = e.id AND g.kind = 'conflict')`},
	} {
		same("/events?"+list.filter, s.listed(g, list.filter), s.query(`SELECT 'n', count(*) FROM hookonce.events e WHERE ` + list.sql)["n"])
	}
	if g == s.launched[0] { // all of them is many pages
		same("/events", s.listed(g, ""), truth.sum("accepted"))
	}

	var history struct {
		Series []struct {
			Source, Destination, What string
			Sum                       int64
		}
	}
	s.page(g, "/api/v1/history?what="+url.QueryEscape("accepted,stored,stored_bytes,copies,conflicts,attempts,done,failed,dead,first,first_failed,rejected:signature_mismatch"), &history)
	shown := counts{}
	for _, one := range history.Series {
		shown[strings.TrimSpace(one.What+" "+one.Source+" "+one.Destination)] = one.Sum
	}
	for what, n := range difference(counted, shown) {
		s.t.Errorf("%s: history: %s misses %d", g.admin, what, n)
	}
}

// listed counts the events of a list over all its pages.
func (s *numbersStorm) listed(g *process, filter string) (n int64) {
	s.t.Helper()
	for cursor := ""; ; {
		var list struct {
			Events []struct{ ID string }
			Cursor string
		}
		s.page(g, "/events?"+filter+"&cursor="+url.QueryEscape(cursor), &list)
		n += int64(len(list.Events))
		if cursor = list.Cursor; cursor == "" {
			return n
		}
	}
}
